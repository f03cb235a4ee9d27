#include <algorithm>

#include "cpu/parallel_for.h"
#include "ops/linear_logp/cpu/kernel.h"
#include "ops/linear_logp/cpu/rows.h"
#include "ops/linear_logp/saved.h"
#include "ops/linear_logp/state.h"
#include "ops/linear_logp/unit.h"

namespace isobit::linear_logp::cpu {
namespace {

struct Shard {
  IdRange ids;
  RangeParts parts;
  StateArrays arrays;
};

// Rebuilds one row's tree from the states of all shards.
template <bool kEntropy>
class RowMerge {
 public:
  RowMerge(const Params& p, const Shard* shards, int64_t row)
      : p_(p), shards_(shards), row_(row), climb_(p.vocab, row_level(p.vocab)) {}

  void run() {
    if (p_.saves) store_record(saved_arrays(p_.saved, p_.rows), row_, idle_record());
    if (is_ignored_row(p_, row_)) return write_ignored_row(p_, row_);
    for (int32_t i = 0; i < p_.state_count; ++i) {
      const Shard& shard = shards_[i];
      take_raw(shard, shard.parts.front);
      take_nodes(shard);
      take_raw(shard, shard.parts.back);
    }
    float z[kMaxTargets];
    int32_t rank[kMaxTargets];
    for (int64_t k = 0; k < p_.targets; ++k) take_target(k, &z[k], &rank[k]);
    write_row(p_, row_, {climb_.value(), z, rank, nullptr});
    if (p_.saves && !has_outside_target(p_, row_)) {
      store_record(saved_arrays(p_.saved, p_.rows), row_, {climb_.value(), identity_node(), -1});
    }
  }

 private:
  // Raw logits collect, over any number of shards, until their leaf is full.
  void take_raw(const Shard& shard, IdRange ids) {
    for (int64_t id = ids.begin; id < ids.end; ++id) {
      leaf_[id % kLeaf] = shard.arrays.raw[raw_slot(shard.parts, id) * p_.rows + row_];
      const NodeId leaf = {0, id / kLeaf};
      if (id + 1 < node_end(leaf, p_.vocab)) continue;
      climb_.push(leaf, reduce_leaf<kEntropy>(leaf_, static_cast<int>(id % kLeaf) + 1));
    }
  }

  void take_nodes(const Shard& shard) {
    IdRange rest = shard.parts.nodes;
    for (int64_t slot = 0; rest.begin < rest.end; ++slot) {
      const NodeId id = first_node(rest, p_.vocab);
      const int64_t at = slot * p_.rows + row_;
      climb_.push(id, {shard.arrays.r[at], shard.arrays.s[at], kEntropy ? shard.arrays.q[at] : 0.0f});
      rest.begin = node_end(id, p_.vocab);
    }
  }

  void take_target(int64_t k, float* z, int32_t* rank) const {
    const int64_t id = target_id(p_, row_, k);
    *z = 0.0f;
    *rank = 0;
    for (int32_t i = 0; i < p_.state_count; ++i) {
      const Shard& shard = shards_[i];
      if (id >= shard.ids.begin && id < shard.ids.end) *z = shard.arrays.target_logit[k * p_.rows + row_];
      if (p_.wants_rank) *rank += shard.arrays.rank[k * p_.rows + row_];
    }
  }

  const Params& p_;
  const Shard* shards_;
  int64_t row_;
  Climb<kEntropy> climb_;
  float leaf_[kLeaf];
};

template <bool kEntropy>
void merge_rows(const Params& p) {
  Shard shards[kMaxShards];
  for (int32_t i = 0; i < p.state_count; ++i) {
    const IdRange ids = p.states[i].ids;
    const StateLayout layout = state_layout(ids, p.vocab, p.rows, p.targets, p.wants_entropy, p.wants_rank);
    shards[i] = {ids, range_parts(ids, p.vocab), state_arrays(layout, const_cast<void*>(p.states[i].data))};
  }
  const int64_t threads = std::min<int64_t>(isobit::cpu::thread_count(p.threads), p.rows);
  isobit::cpu::parallel_for(p.rows, static_cast<int>(threads),
                            [&](int64_t row, int) { RowMerge<kEntropy>(p, shards, row).run(); });
}

}  // namespace

void run_merge(const Params& params) { params.wants_entropy ? merge_rows<true>(params) : merge_rows<false>(params); }

}  // namespace isobit::linear_logp::cpu
