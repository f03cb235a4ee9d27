#include "ops/linear_logp/cpu/span_job.h"

#include <algorithm>

#include "cpu/mma/multiply_tile.h"
#include "ops/linear_logp/cpu/operands.h"
#include "ops/linear_logp/cpu/top_list.h"
#include "ops/linear_logp/cpu/unit_simd.h"
#include "ops/linear_logp/logit.h"
#include "ops/linear_logp/state.h"
#include "ops/linear_logp/unit.h"

namespace isobit::linear_logp::cpu {
namespace {

IdRange intersect(IdRange a, IdRange b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

template <bool kEntropy>
class SpanWork {
 public:
  explicit SpanWork(const SpanJob& job)
      : job_(job),
        p_(*job.params),
        chunk_(*job.chunk),
        t_(*job.thread),
        parts_(range_parts(p_.shard_ids(), p_.vocab)) {}

  void run() {
    const int64_t ids = node_ids(kSpanLevel);
    span_ = intersect({job_.span * ids, (job_.span + 1) * ids}, p_.shard_ids());
    const IdRange span = span_;
    // Before the span, slots are counted as if it were not there: a span's nodes never reach over its border.
    slot_ = count_nodes({parts_.nodes.begin, std::max(parts_.nodes.begin, std::min(span.begin, parts_.nodes.end))},
                        p_.vocab, kSpanLevel);
    const IdRange nodes = intersect(span, parts_.nodes);
    complete_ = nodes.size() > 0 && first_node(nodes, p_.vocab, kSpanLevel).level == kSpanLevel;
    for (int64_t begin = span.begin; begin < span.end;) {
      const IdRange leaf = intersect({begin, (begin / kLeaf + 1) * kLeaf}, span);
      run_leaf(leaf, leaf.begin == span.begin, leaf.end == span.end);
      begin = leaf.end;
    }
  }

 private:
  void run_leaf(IdRange leaf, bool first, bool last) {
    const bool raw = leaf.begin < parts_.nodes.begin || leaf.begin >= parts_.nodes.end;
    for (int64_t begin = leaf.begin; begin < leaf.end;) {
      const IdRange unit = intersect({begin, (begin / kUnit + 1) * kUnit}, leaf);
      multiply(unit);
      for (int64_t r = 0; r < job_.rows; ++r) {
        const float* const z = t_.z + r * kUnit;
        inspect(unit, r, z);
        if (raw) {
          store_raw(unit, r, z);
        } else {
          const Node node = reduce(z, static_cast<int>(unit.size()));
          chain(t_.leaf, 0, r, node, unit.begin == leaf.begin);
          if (p_.saves) chain(t_.leaf, 1, r, without_lead(unit, r, z, node), unit.begin == leaf.begin);
        }
      }
      begin = unit.end;
    }
    if (raw) return;
    const IdRange ids = complete_ ? intersect(span_, parts_.nodes) : leaf;
    for (int64_t r = 0; r < job_.rows; ++r) {
      for (int64_t variant = 0; variant < node_variants(p_) && complete_; ++variant) {
        chain(t_.span, variant, r, at(t_.leaf, variant, r), first);
      }
      if (!complete_ || last) publish(r, ids, complete_ ? t_.span : t_.leaf);
    }
    if (!complete_ || last) ++slot_;
  }

  Node& at(Node* nodes, int64_t variant, int64_t r) const { return nodes[variant * job_.pieces->block_rows + r]; }

  // nodes[r] = node, or merged with it.
  void chain(Node* nodes, int64_t variant, int64_t r, const Node& node, bool first) const {
    Node& value = at(nodes, variant, r);
    value = first ? node : merge<kEntropy>(value, node);
  }

  // The unit as it is with the lead's logit at -inf; `node` is the unit.
  Node without_lead(IdRange unit, int64_t r, const float* z, const Node& node) const {
    const int64_t lead = chunk_.lead[job_.first_row + r];
    if (lead < unit.begin || lead >= unit.end) return node;
    float others[kUnit];
    std::copy_n(z, unit.size(), others);
    others[lead - unit.begin] = numerics::bits_float(0xFF800000u);
    return reduce(others, static_cast<int>(unit.size()));
  }

  // Leaves the node that holds `ids`.
  void publish(int64_t r, IdRange ids, Node* nodes) {
    slot(r) = at(nodes, 0, r);
    if (!p_.saves) return;
    const int64_t lead = chunk_.lead[job_.first_row + r];
    if (lead >= ids.begin && lead < ids.end) chunk_.others[job_.first_row + r] = at(nodes, 1, r);
  }

  // The unit's logits of all rows, into the thread's z.
  void multiply(IdRange unit) {
    const char* const decoded = chunk_.decoded + job_.first_row / job_.pieces->block_rows * chunk_.decoded_bytes;
    const auto count = static_cast<int>(unit.size());
    isobit::cpu::multiply_tile(decoded, job_.rows, weight_matrix(p_), unit.begin - p_.first_id, count, t_.z, kUnit,
                               t_.scratch);
    float bias[kUnit];
    if (p_.bias != nullptr) {
      for (int i = 0; i < count; ++i) bias[i] = bias_of(p_, unit.begin + i);
    }
    const float* const bias_or_null = p_.bias != nullptr ? bias : nullptr;
    for (int64_t r = 0; r < job_.rows; ++r) {
      float* const z = t_.z + r * kUnit;
      const float temperature = row_temperature(p_, row(r));
      if (job_.simd) {
        finish_logits(z, count, bias_or_null, p_.softcap, temperature);
      } else {
        for (int i = 0; i < count; ++i) {
          z[i] = finish_logit(z[i], p_.bias != nullptr ? bias + i : nullptr, p_.softcap, temperature);
        }
      }
    }
  }

  Node reduce(const float* z, int count) const {
    return job_.simd ? reduce_unit_simd<kEntropy>(z, count) : reduce_unit<kEntropy>(z, count);
  }

  // What ranks and the top list want to know of a row's logits.
  void inspect(IdRange unit, int64_t r, const float* z) {
    const auto count = static_cast<int>(unit.size());
    const int64_t at = job_.first_row + r;
    if (p_.wants_rank) {
      for (int64_t k = 0; k < p_.targets; ++k) {
        const int64_t id = target_id(p_, row(r), k);
        if (!has_logit(p_, id)) continue;
        t_.rank[at * p_.targets + k] += count_before(z, count, unit.begin, chunk_.target_z[at * p_.targets + k], id);
      }
    }
    if (p_.top > 0) {
      TopList list(t_.top + at * p_.top, t_.top_size + at, p_.top);
      if (list.full() && !any_at_least(z, count, list.smallest())) return;
      for (int i = 0; i < count; ++i) list.add({z[i], static_cast<int32_t>(unit.begin + i)});
    }
  }

  void store_raw(IdRange unit, int64_t r, const float* z) {
    float* const raw = static_cast<float*>(p_.state);
    for (int64_t id = unit.begin; id < unit.end; ++id) {
      raw[raw_slot(parts_, id) * p_.rows + row(r)] = numerics::canonical_nan(z[id - unit.begin]);
    }
  }

  Node& slot(int64_t r) { return chunk_.slots[slot_ * job_.pieces->chunk_rows() + job_.first_row + r]; }
  int64_t row(int64_t r) const { return chunk_.row[job_.first_row + r]; }

  const SpanJob& job_;
  const Params& p_;
  const ChunkData& chunk_;
  const ThreadData& t_;
  RangeParts parts_;
  IdRange span_{};
  int64_t slot_ = 0;
  bool complete_ = false;  // the span is one node
};

}  // namespace

template <bool kEntropy>
void run_span_job(const SpanJob& job) {
  SpanWork<kEntropy>(job).run();
}

template void run_span_job<false>(const SpanJob& job);
template void run_span_job<true>(const SpanJob& job);

}  // namespace isobit::linear_logp::cpu
