// How a backward call is cut into jobs, and where they keep their data in the caller's workspace.
//
// A job is a block of valid rows against all ids (d_hidden) or a block of ids against all valid rows (d_weight,
// d_bias). Both recompute the logits of their tiles, so nothing grows with N times V and jobs share no sums.
#pragma once

#include "ops/linear_logp/backward_contract.h"
#include "ops/linear_logp/gradient.h"

namespace isobit::linear_logp::cpu {

// Terms of a chain that are decoded together; a whole number of the tensor cores' groups.
inline constexpr int64_t kChainTile = 256;

// What the gradients of a row's logits are made of.
struct RowGradient {
  int64_t row;
  float temperature;
  GradientRow gradient;
  RowRecord record;
};

struct BackwardPieces {
  int threads;
  int64_t block;  // rows or ids of a job
};

// Data of the whole call.
struct BackwardData {
  void* saved;     // the caller's, or of the call's own forward pass
  int64_t* valid;  // [N] the valid rows, ascending
  void* forward;   // workspace of that forward pass, before any job's data, which takes the same place
  size_t forward_bytes;
};

// Data of one job.
struct JobData {
  uint16_t* packed;      // [max(block, kTileColumns)][H] hidden states
  char* decoded;         // of the block's operand, k = H
  float* dot;            // [block][kTileColumns]
  uint16_t* dt;          // [block][kChainTile]
  char* decoded_dt;      // of dt
  uint16_t* transposed;  // [kTileColumns][kChainTile] the other operand, or ones
  float* chain;          // [block][H]
  float* sums;           // [kSegmentLevels + 1][block][H]
  float* bias_chain;     // [block]
  float* bias_sum;       // [block]
  RowGradient* rows;     // [max(block, kTileColumns)]
  char* scratch;         // of multiply_tile
};

// The forward call that leaves the record of every row; `bytes` of workspace.
Params forward_of(const BackwardParams& p, void* saved, void* workspace, size_t bytes);

BackwardPieces smallest_backward_pieces(const BackwardParams& p);
BackwardPieces best_backward_pieces(const BackwardParams& p);
// The best pieces that fit into `bytes`; the smallest pieces if none do.
BackwardPieces choose_backward_pieces(const BackwardParams& p, size_t bytes);

size_t backward_bytes(const BackwardParams& p, const BackwardPieces& pieces, size_t forward_bytes);

BackwardData backward_data(const BackwardParams& p);
JobData job_data(const BackwardParams& p, const BackwardPieces& pieces, int thread);

}  // namespace isobit::linear_logp::cpu
