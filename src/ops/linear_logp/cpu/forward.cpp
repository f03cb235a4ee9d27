#include <algorithm>
#include <cstring>

#include "cpu/parallel_for.h"
#include "cpu/simd_target.h"
#include "ops/linear_logp/cpu/kernel.h"
#include "ops/linear_logp/cpu/operands.h"
#include "ops/linear_logp/cpu/plan.h"
#include "ops/linear_logp/cpu/shard_state.h"
#include "ops/linear_logp/cpu/span_job.h"
#include "ops/linear_logp/cpu/top_list.h"
#include "ops/linear_logp/saved.h"

namespace isobit::linear_logp::cpu {
namespace {

constexpr float kNan = numerics::bits_float(numerics::kNanBits);

// A whole or shard call: chunk after chunk of active rows.
template <bool kEntropy>
class Forward {
 public:
  explicit Forward(const Params& p)
      : p_(p),
        pieces_(choose_pieces(p, p.workspace_bytes)),
        chunk_(chunk_data(p, pieces_, p.workspace)),
        nodes_(range_parts(p.shard_ids(), p.vocab).nodes),
        simd_(isobit::cpu::best_simd_target() != isobit::cpu::SimdTarget::kScalar) {}

  void run() {
    for (int64_t next = 0; next < p_.rows;) {
      next = collect(next);
      if (active_ == 0) continue;
      clear_counts();
      const int threads = pieces_.threads;
      const int64_t blocks = (active_ + pieces_.block_rows - 1) / pieces_.block_rows;
      isobit::cpu::parallel_for(active_, threads, [&](int64_t at, int) { load_row(at); });
      isobit::cpu::parallel_for(blocks, threads, [&](int64_t block, int) { decode(block); });
      const IdRange spans = spans_of(p_.shard_ids());
      isobit::cpu::parallel_for(spans.size() * blocks, threads, [&](int64_t job, int thread) {
        multiply(spans.begin + job / blocks, job % blocks, thread);
      });
      isobit::cpu::parallel_for(active_, threads, [&](int64_t at, int) { finish_row(at); });
    }
  }

 private:
  ThreadData thread(int index) const { return thread_data(p_, pieces_, p_.workspace, index); }
  bool shard() const { return p_.purpose == Purpose::kShard; }

  // Fills the chunk with active rows from `next` on, answers the others, and returns where the next chunk starts.
  int64_t collect(int64_t next) {
    active_ = 0;
    for (; next < p_.rows && active_ < pieces_.chunk_rows(); ++next) {
      if (p_.saves) store_record(saved_arrays(p_.saved, p_.rows), next, idle_record());
      if (is_ignored_row(p_, next)) {
        shard() ? write_idle_state(p_, next, identity_node()) : write_ignored_row(p_, next);
      } else if (!(row_temperature(p_, next) > 0.0f)) {
        write_nan_row(next);
      } else {
        chunk_.row[active_++] = next;
      }
    }
    return next;
  }

  void write_nan_row(int64_t row) const {
    if (shard()) return write_idle_state(p_, row, nan_node());
    float z[kMaxTargets];
    std::fill_n(z, p_.targets, kNan);
    write_row(p_, row, {nan_node(), z, nullptr, nullptr});
  }

  void clear_counts() const {
    for (int i = 0; i < pieces_.threads; ++i) {
      const ThreadData data = thread(i);
      if (p_.wants_rank) std::fill_n(data.rank, active_ * p_.targets, 0);
      if (p_.top > 0) std::fill_n(data.top_size, active_, 0);
    }
  }

  // A row's hidden state next to the chunk's others, and the logits of its targets.
  void load_row(int64_t at) const {
    const int64_t row = chunk_.row[at];
    const uint16_t* const hidden = static_cast<const uint16_t*>(p_.hidden) + row * p_.hidden_stride;
    std::memcpy(chunk_.packed + at * p_.width, hidden, static_cast<size_t>(p_.width) * sizeof(uint16_t));
    const IdRange ids = p_.shard_ids();
    for (int64_t k = 0; k < p_.targets; ++k) {
      const int64_t id = target_id(p_, row, k);
      float& z = chunk_.target_z[at * p_.targets + k];
      z = 0.0f;
      if (!has_logit(p_, id)) continue;
      if (id >= ids.begin && id < ids.end) z = single_logit(p_, row, id, row_temperature(p_, row));
      if (shard()) {
        write_target_state(p_, row, k, z);
        if (p_.wants_rank) z = p_.target_logit.at(row, k);
      }
    }
    if (p_.saves) find_lead(at);
  }

  void find_lead(int64_t at) const {
    int64_t& lead = chunk_.lead[at];
    float largest = 0.0f;
    lead = -1;
    for (int64_t k = 0; k < p_.targets && p_.finds_lead; ++k) {
      const int64_t id = target_id(p_, chunk_.row[at], k);
      const float z = chunk_.target_z[at * p_.targets + k];
      if (!has_logit(p_, id) || !(lead < 0 || z > largest || (z == largest && id < lead))) continue;
      lead = id;
      largest = z;
    }
  }

  void decode(int64_t block) const {
    const int64_t first = block * pieces_.block_rows;
    const int64_t rows = std::min(pieces_.block_rows, active_ - first);
    const isobit::cpu::Matrix16 packed = {chunk_.packed, active_, p_.width, p_.width, operand_format(p_)};
    isobit::cpu::decode_rows(packed, first, rows, chunk_.decoded + static_cast<size_t>(block) * chunk_.decoded_bytes);
  }

  void multiply(int64_t span, int64_t block, int thread_index) const {
    const int64_t first = block * pieces_.block_rows;
    const ThreadData data = thread(thread_index);
    run_span_job<kEntropy>(
        {&p_, &pieces_, &chunk_, &data, span, first, std::min(pieces_.block_rows, active_ - first), simd_});
  }

  void finish_row(int64_t at) const {
    int32_t rank[kMaxTargets] = {};
    for (int i = 0; i < pieces_.threads && p_.wants_rank; ++i) {
      const int32_t* const counts = thread(i).rank + at * p_.targets;
      for (int64_t k = 0; k < p_.targets; ++k) rank[k] += counts[k];
    }
    if (shard()) return write_nodes(at, rank);
    TopEntry top[kMaxTop];
    int32_t top_size = 0;
    TopList list(top, &top_size, p_.top);
    for (int i = 0; i < pieces_.threads && p_.top > 0; ++i) {
      const ThreadData data = thread(i);
      for (int32_t t = 0; t < data.top_size[at]; ++t) list.add(data.top[at * p_.top + t]);
    }
    int64_t slot = 0;
    const Node node = climb(nodes_, row_level(p_.vocab), at, &slot);
    if (p_.saves) save_row(at, node);
    write_row(p_, chunk_.row[at], {node, chunk_.target_z + at * p_.targets, rank, top});
  }

  // Rows with a target outside the vocabulary keep the idle record.
  void save_row(int64_t at, const Node& node) const {
    const int64_t row = chunk_.row[at];
    if (has_outside_target(p_, row)) return;
    RowRecord record = {node, identity_node(), static_cast<int32_t>(chunk_.lead[at])};
    int64_t slot = 0;
    if (record.lead >= 0) record.others = climb(nodes_, row_level(p_.vocab), at, &slot, record.lead);
    store_record(saved_arrays(p_.saved, p_.rows), row, record);
  }

  void write_nodes(int64_t at, const int32_t* rank) const {
    int64_t slot = 0;
    IdRange rest = nodes_;
    for (int64_t index = 0; rest.begin < rest.end; ++index) {
      const NodeId id = first_node(rest, p_.vocab);
      const int64_t end = node_end(id, p_.vocab);
      write_node_state(p_, chunk_.row[at], index, climb({rest.begin, end}, id.level, at, &slot));
      rest.begin = end;
    }
    write_rank_state(p_, chunk_.row[at], rank);
  }

  // The node of a level that `ids` are, from the slots of its spans or leaves; without the logit of an id `left_out`.
  Node climb(IdRange ids, int level, int64_t at, int64_t* slot, int64_t left_out = -1) const {
    Climb<kEntropy> climb(p_.vocab, level);
    while (ids.begin < ids.end) {
      const NodeId id = first_node(ids, p_.vocab, kSpanLevel);
      const Node& node = chunk_.slots[(*slot)++ * pieces_.chunk_rows() + at];
      const int64_t end = node_end(id, p_.vocab);
      climb.push(id, left_out >= ids.begin && left_out < end ? chunk_.others[at] : node);
      ids.begin = end;
    }
    return climb.value();
  }

  const Params& p_;
  Pieces pieces_;
  ChunkData chunk_;
  IdRange nodes_;
  bool simd_;
  int64_t active_ = 0;  // rows in the chunk
};

}  // namespace

void run_forward(const Params& params) {
  params.wants_entropy ? Forward<true>(params).run() : Forward<false>(params).run();
}

Status takes(const Params&, const DeviceProperties&) { return Status(); }

WorkspaceBytes workspace(const Params& params) {
  if (params.purpose == Purpose::kMerge) return {};
  return {workspace_bytes(params, smallest_pieces(params)), workspace_bytes(params, best_pieces(params))};
}

Status run(const Params& params, void*) {
  params.purpose == Purpose::kMerge ? run_merge(params) : run_forward(params);
  return Status();
}

}  // namespace isobit::linear_logp::cpu
