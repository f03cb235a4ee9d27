#include "ops/linear_logp/cuda/backward_plan.h"

#include <algorithm>

#include "ops/linear_logp/cuda/backward_launch.h"

namespace isobit::linear_logp::cuda {
namespace {

constexpr int64_t kMostRows = kPiece;  // of a chunk that makes both gradients: then chunks are pieces of d_weight
constexpr int64_t kIdsGranule = 192;   // of chunks of ids that are no segments: a tile
constexpr int64_t kLeastIds = 8 * kIdsGranule;
constexpr int64_t kMostIds = int64_t{1} << 16;

int64_t round_up(int64_t x, int64_t granule) { return (x + granule - 1) / granule * granule; }

Sweep segment_sweep(const BackwardParams& p, bool weight, int64_t rows, int32_t slices) {
  const auto ids = static_cast<int32_t>(segment_ids(p.forward.vocab));
  return {true, weight, std::min(rows, p.forward.rows), slices, ids, static_cast<int32_t>(round_up(ids, kDzColumns))};
}

Sweep weight_sweep(const BackwardParams& p, int64_t ids) {
  const auto size = static_cast<int32_t>(std::min(ids, round_up(p.forward.count, kDzColumns)));
  return {false, true, p.forward.rows, 1, size, size};
}

// d_weight may pass through the caller's buffer between chunks of rows.
bool weight_takes_pieces(const BackwardParams& p) {
  return (!p.wants_weight || p.d_weight.dtype == ISOBIT_FP32) && (!p.wants_bias || p.d_bias.dtype == ISOBIT_FP32);
}

bool makes_weight(const BackwardParams& p) { return p.wants_weight || p.wants_bias; }

size_t sweep_bytes(const BackwardParams& p, const Sweep& sweep) {
  Arena arena(nullptr);
  lay_out_chunk(p, sweep, &arena);
  return arena.used();
}

}  // namespace

int64_t hidden_stride(const BackwardParams& p) { return round_up(p.forward.width + (p.wants_bias ? 1 : 0), 8); }
int64_t partial_stride(const BackwardParams& p) { return round_up(p.forward.width, 4); }

CallArrays lay_out_call(const BackwardParams& p, size_t scratch_bytes, Arena* arena) {
  const int64_t rows = p.forward.rows;
  CallArrays call{};
  call.valid = arena->take<int32_t>(1);
  call.row_of = arena->take<int32_t>(rows);
  call.gradient = arena->take<GradientRow>(std::max<int64_t>(rows, 1));
  call.hidden = arena->take<uint16_t>(round_up(std::max<int64_t>(rows, 1), kRowPadding) * hidden_stride(p));
  call.target_dot = arena->take<float>(rows * p.forward.targets);
  call.scratch = arena->take<unsigned char>(static_cast<int64_t>(scratch_bytes));
  call.saved = arena->take<unsigned char>(saved_bytes(rows));
  return call;
}

ChunkArrays lay_out_chunk(const BackwardParams& p, const Sweep& sweep, Arena* arena) {
  ChunkArrays chunk{};
  const int64_t rows = std::max<int64_t>(sweep.rows, 1);
  chunk.dz = arena->take<uint16_t>(round_up(rows, kRowPadding) * sweep.slices * sweep.slice_pitch);
  if (!sweep.hidden) return chunk;
  const int64_t partial = rows * partial_stride(p);
  chunk.partial = arena->take<float>(partial * sweep.slices);
  for (int i = 0; (sweep.slices << i) < kSegments; ++i) chunk.level[i] = arena->take<float>(partial);
  return chunk;
}

size_t plan_bytes(const BackwardParams& p, const BackwardPlan& plan, size_t scratch_bytes) {
  Arena arena(nullptr);
  lay_out_call(p, scratch_bytes, &arena);
  size_t largest = 0;
  for (int i = 0; i < plan.count; ++i) largest = std::max(largest, sweep_bytes(p, plan.sweeps[i]));
  return arena.used() + largest;
}

BackwardPlan smallest_plan(const BackwardParams& p) {
  BackwardPlan plan{};
  if (p.wants_hidden) plan.sweeps[plan.count++] = segment_sweep(p, false, kRowPadding, 1);
  if (makes_weight(p)) plan.sweeps[plan.count++] = weight_sweep(p, kLeastIds);
  return plan;
}

BackwardPlan choose_plan(const BackwardParams& p, size_t scratch_bytes, size_t workspace_bytes) {
  const auto fits = [&](const BackwardPlan& plan) { return plan_bytes(p, plan, scratch_bytes) <= workspace_bytes; };
  const bool both = p.wants_hidden && makes_weight(p);
  if (both && (p.forward.rows <= kMostRows || weight_takes_pieces(p))) {
    for (int32_t slices = kMostSlices; slices > 0; slices /= 2) {
      const BackwardPlan plan{{segment_sweep(p, true, kMostRows, slices), {}}, 1};
      if (fits(plan)) return plan;
    }
  }
  BackwardPlan plan = smallest_plan(p);
  if (!fits(plan)) return {};
  // Each sweep as large as fits beside the call's arrays.
  for (int64_t rows = kMostRows; p.wants_hidden && rows >= kRowPadding; rows /= 2) {
    int32_t slices = kMostSlices;
    for (; slices > 0; slices /= 2) {
      BackwardPlan larger = plan;
      larger.sweeps[0] = segment_sweep(p, false, rows, slices);
      if (!fits(larger)) continue;
      plan = larger;
      break;
    }
    if (slices > 0) break;
  }
  for (int64_t ids = kMostIds / kIdsGranule * kIdsGranule; makes_weight(p) && ids >= kLeastIds; ids -= kIdsGranule) {
    BackwardPlan larger = plan;
    larger.sweeps[plan.count - 1] = weight_sweep(p, ids);
    if (!fits(larger)) continue;
    return larger;
  }
  return plan;
}

}  // namespace isobit::linear_logp::cuda
