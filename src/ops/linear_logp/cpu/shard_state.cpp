#include "ops/linear_logp/cpu/shard_state.h"

#include "ops/linear_logp/cpu/rows.h"
#include "ops/linear_logp/state.h"

namespace isobit::linear_logp::cpu {
namespace {

StateLayout layout_of(const Params& p) {
  return state_layout(p.shard_ids(), p.vocab, p.rows, p.targets, p.wants_entropy, p.wants_rank);
}

}  // namespace

void write_node_state(const Params& p, int64_t row, int64_t slot, const Node& node) {
  const StateArrays arrays = state_arrays(layout_of(p), p.state);
  const int64_t at = slot * p.rows + row;
  arrays.r[at] = node.r;
  arrays.s[at] = numerics::canonical_nan(node.s);
  if (p.wants_entropy) arrays.q[at] = numerics::canonical_nan(node.q);
}

void write_target_state(const Params& p, int64_t row, int64_t k, float z) {
  state_arrays(layout_of(p), p.state).target_logit[k * p.rows + row] = numerics::canonical_nan(z);
}

void write_rank_state(const Params& p, int64_t row, const int32_t* rank) {
  if (!p.wants_rank) return;
  const StateArrays arrays = state_arrays(layout_of(p), p.state);
  for (int64_t k = 0; k < p.targets; ++k) arrays.rank[k * p.rows + row] = rank[k];
}

void write_idle_state(const Params& p, int64_t row, const Node& node) {
  const StateLayout layout = layout_of(p);
  const StateArrays arrays = state_arrays(layout, p.state);
  const IdRange ids = p.shard_ids();
  const float z = is_identity(node) ? numerics::bits_float(0xFF800000u) : numerics::bits_float(numerics::kNanBits);
  for (int64_t slot = 0; slot < layout.raw_slots; ++slot) arrays.raw[slot * p.rows + row] = z;
  for (int64_t slot = 0; slot < layout.node_slots; ++slot) write_node_state(p, row, slot, node);
  for (int64_t k = 0; k < p.targets; ++k) {
    const int64_t id = target_id(p, row, k);
    const bool owned = has_logit(p, id) && id >= ids.begin && id < ids.end;
    write_target_state(p, row, k, owned ? z : 0.0f);
    if (p.wants_rank) arrays.rank[k * p.rows + row] = 0;
  }
}

}  // namespace isobit::linear_logp::cpu
