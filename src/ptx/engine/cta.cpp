#include "ptx/engine/cta.h"

#include "ptx/engine/engine.h"

namespace isobit::ptx {
namespace {

constexpr std::byte kPoisonByte{0xCD};

}  // namespace

Cta::Cta(Engine& owner, Cluster& group, uint32_t cta_rank, const uint32_t (&position)[3])
    : engine(owner), cluster(group), rank(cta_rank), id{position[0], position[1], position[2]} {
  shared.assign(owner.shared_bytes(), kPoisonByte);
  shared_valid.assign(owner.shared_bytes(), 0);
  threads = static_cast<uint32_t>(owner.config().block.volume());
  const uint32_t count = owner.warps_per_cta();
  warpgroups.resize((count + 3) / 4);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t left = threads - i * kLanes;
    warps.push_back(std::make_unique<Warp>(*this, static_cast<int>(i), left >= kLanes ? kAllLanes : (1u << left) - 1));
    warps.back()->agent = static_cast<int>(rank * count + i);
  }
}

uint32_t Cta::live_threads() const {
  uint32_t count = 0;
  for (const auto& w : warps) count += w->done() ? 0 : kLanes;
  return count;
}

bool Cta::done() const {
  for (const auto& w : warps) {
    if (!w->done()) return false;
  }
  return true;
}

Cluster::Cluster(Engine& owner, const uint32_t (&position)[3])
    : engine(owner), first{position[0], position[1], position[2]} {
  const Extent& c = owner.config().cluster;
  const uint32_t count = static_cast<uint32_t>(c.volume());
  if (owner.options().check_races) {
    races = std::make_unique<RaceChecker>(owner, count, owner.warps_per_cta(), owner.shared_bytes());
  }
  for (uint32_t rank = 0; rank < count; ++rank) {
    const uint32_t id[3] = {first[0] + rank % c.x, first[1] + rank / c.x % c.y, first[2] + rank / c.x / c.y};
    ctas.push_back(std::make_unique<Cta>(owner, *this, rank, id));
    if (!races) continue;
    for (auto& w : ctas.back()->warps) {
      w->clock = races->initial_clock(w->agent);
      w->released = w->acquired = races->empty_clock();
      w->tensor.start(*races, w->agent);
    }
  }
}

bool Cluster::done() const {
  for (const auto& c : ctas) {
    if (!c->done()) return false;
  }
  return true;
}

}  // namespace isobit::ptx
