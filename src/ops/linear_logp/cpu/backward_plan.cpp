#include "ops/linear_logp/cpu/backward_plan.h"

#include <algorithm>

#include "cpu/mma/multiply_tile.h"
#include "cpu/parallel_for.h"
#include "ops/linear_logp/cpu/carver.h"
#include "ops/linear_logp/cpu/kernel.h"
#include "ops/linear_logp/saved.h"

namespace isobit::linear_logp::cpu {
namespace {

// A block shares the decoding of the other operand's tiles, as in the forward pass.
constexpr int64_t kBlock = 128;
constexpr int64_t kSmallestBlock = 16;
constexpr size_t kMostRecommended = size_t{1} << 30;

BackwardData carve_call(const BackwardParams& p, Carver* carver) {
  const bool own = p.saved == nullptr || p.purpose == BackwardPurpose::kQuery;
  BackwardData data{};
  data.saved = own ? carver->take<char>(saved_bytes(p.forward.rows)) : p.saved;
  data.valid = carver->take<int64_t>(p.forward.rows);
  return data;
}

JobData carve_job(const BackwardParams& p, const BackwardPieces& pieces, Carver* carver) {
  const int64_t block = pieces.block;
  const int64_t width = p.forward.width;
  const int64_t rows = std::max<int64_t>(block, isobit::cpu::kTileColumns);
  JobData data;
  data.packed = carver->take<uint16_t>(rows * width);
  data.decoded = carver->take<char>(static_cast<int64_t>(isobit::cpu::decoded_rows_bytes(block, width)));
  data.dot = carver->take<float>(block * isobit::cpu::kTileColumns);
  data.dt = carver->take<uint16_t>(block * kChainTile);
  data.decoded_dt = carver->take<char>(static_cast<int64_t>(isobit::cpu::decoded_rows_bytes(block, kChainTile)));
  data.transposed = carver->take<uint16_t>(isobit::cpu::kTileColumns * kChainTile);
  data.chain = carver->take<float>(block * width);
  data.sums = carver->take<float>((kSegmentLevels + 1) * block * width);
  data.bias_chain = carver->take<float>(block);
  data.bias_sum = carver->take<float>(block);
  data.rows = carver->take<RowGradient>(rows);
  data.scratch = carver->take<char>(static_cast<int64_t>(isobit::cpu::tile_scratch_bytes(block)));
  return data;
}

size_t own_forward_bytes(const BackwardParams& p, bool recommended) {
  const WorkspaceBytes bytes = workspace(forward_of(p, nullptr, nullptr, 0));
  return recommended ? bytes.recommended : bytes.minimum;
}

}  // namespace

Params forward_of(const BackwardParams& p, void* saved, void* workspace, size_t bytes) {
  Params forward = p.forward;
  forward.saves = true;
  forward.finds_lead = !p.subtract_p;
  forward.wants_entropy = true;  // q is part of the record
  forward.saved = saved;
  forward.workspace = workspace;
  forward.workspace_bytes = bytes;
  return forward;
}

BackwardPieces smallest_backward_pieces(const BackwardParams&) { return {1, kSmallestBlock}; }

BackwardPieces best_backward_pieces(const BackwardParams& p) {
  BackwardPieces pieces = {isobit::cpu::thread_count(p.forward.threads), kBlock};
  while (pieces.threads > 1 && backward_bytes(p, pieces, own_forward_bytes(p, true)) > kMostRecommended) {
    --pieces.threads;
  }
  return pieces;
}

BackwardPieces choose_backward_pieces(const BackwardParams& p, size_t bytes) {
  const BackwardPieces best = best_backward_pieces(p);
  for (BackwardPieces pieces = best; pieces.threads > 0; --pieces.threads) {
    for (pieces.block = best.block; pieces.block >= kSmallestBlock; pieces.block /= 2) {
      if (backward_bytes(p, pieces, 0) <= bytes) return pieces;
    }
  }
  return smallest_backward_pieces(p);
}

size_t backward_bytes(const BackwardParams& p, const BackwardPieces& pieces, size_t forward_bytes) {
  Carver call(nullptr);
  carve_call(p, &call);
  Carver jobs(nullptr);
  for (int thread = 0; thread < pieces.threads; ++thread) carve_job(p, pieces, &jobs);
  return call.used() + std::max(jobs.used(), forward_bytes);
}

BackwardData backward_data(const BackwardParams& p) {
  Carver carver(p.forward.workspace);
  BackwardData data = carve_call(p, &carver);
  data.forward = static_cast<char*>(p.forward.workspace) + carver.used();
  data.forward_bytes = p.forward.workspace_bytes - carver.used();
  return data;
}

JobData job_data(const BackwardParams& p, const BackwardPieces& pieces, int thread) {
  Carver carver(p.forward.workspace);
  carve_call(p, &carver);
  JobData data;
  for (int i = 0; i <= thread; ++i) data = carve_job(p, pieces, &carver);
  return data;
}

}  // namespace isobit::linear_logp::cpu
