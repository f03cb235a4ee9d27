#include "ptx/engine/memory_access.h"

#include <algorithm>
#include <cstring>

namespace isobit::ptx {

void misaligned(uint64_t address, uint32_t alignment) {
  throw ExecutionFault{FindingKind::kMisaligned,
                       "address " + hex(address) + " is not aligned to " + std::to_string(alignment) + " bytes"};
}

SharedPlace locate_shared(Cta& own, uint32_t address, uint32_t bytes, const char* what) {
  const uint32_t rank = shared_rank(address), offset = shared_offset(address);
  Cta* cta = own.cluster.cta(rank);
  if (!cta) {
    throw ExecutionFault{FindingKind::kOutOfBounds, std::string(what) + " at shared address " + hex(address) +
                                                        ": no CTA of rank " + std::to_string(rank) + " in the cluster"};
  }
  const uint64_t size = cta->shared.size();
  constexpr uint32_t kReserved = 1024;
  if (offset < kReserved || uint64_t{offset} + bytes > size) {
    throw ExecutionFault{FindingKind::kOutOfBounds, std::string(what) + " of " + std::to_string(bytes) +
                                                        " bytes at shared offset " + std::to_string(offset) + " of " +
                                                        std::to_string(size)};
  }
  if (cta != &own && cta->done()) {
    throw ExecutionFault{FindingKind::kRace, std::string(what) + " touches the shared memory of CTA rank " +
                                                 std::to_string(rank) + ", which has ended"};
  }
  return {cta, offset};
}

namespace {

// Writes make bytes valid; a read of invalid ones is a finding, after which they count as valid.
void check_valid(Engine& engine, Cta& cta, uint32_t offset, uint32_t bytes, bool write, int32_t pc) {
  uint8_t* valid = cta.shared_valid.data() + offset;
  if (write) {
    std::memset(valid, 1, bytes);
  } else if (engine.options().check_initialised && std::find(valid, valid + bytes, 0) != valid + bytes) {
    engine.add_finding(FindingKind::kUninitialisedRead, pc, -1,
                       "shared offset " + std::to_string(offset) + " was never written");
  }
}

}  // namespace

std::byte* access_shared(Warp& w, uint32_t address, uint32_t bytes, bool write, bool atomic) {
  const SharedPlace place = locate_shared(w.cta, address, bytes, write ? "write" : "read");
  check_valid(w.engine, *place.cta, place.offset, bytes, write, w.pc);
  if (RaceChecker* races = w.cta.cluster.races.get()) {
    races->access(place.cta->rank, place.offset, bytes, write, {&w.clock, w.agent, false, w.pc, atomic});
  }
  return place.data();
}

std::byte* access_shared_async(const SharedPlace& place, uint32_t bytes, bool write, const AsyncOperation& operation,
                               bool proxy) {
  Cta& cta = *place.cta;
  check_valid(cta.engine, cta, place.offset, bytes, write, operation.pc);
  if (RaceChecker* races = cta.cluster.races.get()) {
    races->access(cta.rank, place.offset, bytes, write, {&operation.clock, operation.agent, proxy, operation.pc});
  }
  return place.data();
}

std::byte* access_global(Engine& engine, uint64_t address, uint64_t bytes, bool write, int32_t pc) {
  bool uninitialised = false;
  std::byte* data = engine.memory().access(address, bytes, write, uninitialised);
  if (uninitialised && engine.options().check_initialised) {
    engine.add_finding(FindingKind::kUninitialisedRead, pc, -1,
                       "global address " + hex(address) + " was never written");
  }
  return data;
}

std::byte* access_memory(Warp& w, Space space, uint64_t address, int lane, uint32_t bytes, bool write, bool atomic) {
  if (address % bytes != 0) misaligned(address, bytes);
  if (space == Space::kGeneric) {
    const uint64_t window = address & kWindowMask;
    space = window == kSharedWindow ? Space::kShared : window == kLocalWindow ? Space::kLocal : Space::kGlobal;
    address &= ~kWindowMask;
  }
  switch (space) {
    case Space::kShared:
      if (address >> 32) break;
      return access_shared(w, static_cast<uint32_t>(address), bytes, write, atomic);
    case Space::kLocal: {
      const uint64_t size = w.engine.kernel().local_bytes;
      if (address > size || bytes > size - address) break;
      return w.local.data() + size * static_cast<uint64_t>(lane) + address;
    }
    default:
      return access_global(w.engine, address, bytes, write, w.pc);
  }
  throw ExecutionFault{FindingKind::kOutOfBounds, "address " + hex(address) + " is outside of its state space"};
}

}  // namespace isobit::ptx
