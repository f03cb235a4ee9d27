// What one launch sequence of the backward pass works on: a chunk of valid rows against a chunk of ids, and where its
// intermediate results lie. Plain data that goes to kernels by value.
//
// Valid rows (docs/bit-contract.md section 3.6) are numbered without gaps, in order, and everything but the call's own
// tensors is indexed by that number. How many there are is known on the device alone: launches are as large as if all
// were valid, and `rows` is what a chunk could hold.
#pragma once

#include <cstdint>

#include "ops/linear_logp/cuda/backward_plan.h"
#include "ops/linear_logp/saved.h"

namespace isobit::linear_logp::cuda {

struct BackwardJob {
  BackwardParams p;

  // Of the whole call.
  SavedArrays saved;            // by row of the call
  const int32_t* valid;         // how many rows are
  const int32_t* row_of;        // [valid] their rows in the call
  const GradientRow* gradient;  // [valid]
  const uint16_t* hidden;       // [kRowPadding steps, hidden_stride] bf16, +0 beyond the valid rows and H
  int64_t hidden_stride;        // a multiple of 8
  float* target_dot;            // [valid, K] dot products of the targets whose chunk has been met
  int32_t weight_columns;       // of the product for d_weight: H, or H + 1 with a column of ones for d_bias

  // Of the chunk: valid rows first_row, ...; `slices` ranges of slice_ids ids each from row first_id of weight on, in
  // the product for d_hidden the segments of section 3.6. Of an id from V on only dz exists, and is +0.
  int64_t first_row;
  int64_t first_id;
  int32_t rows;
  int32_t slices;
  int32_t slice_ids;
  int32_t slice_pitch;  // columns of dz from slice to slice, a multiple of kDzColumns
  uint16_t* dz;         // bf16, in blocks: dz_at
  float* partial;       // [slices, rows, partial_stride] d_hidden of each slice
  int64_t partial_stride;
  void* scratch;  // of the architecture's kernels

  // dz lies in blocks of kRowPadding rows x kDzColumns columns, each one piece of memory, row tile by row tile: both
  // products that read it meet whole pages of memory, where rows as long as the chunk would scatter every tile over
  // 128 of them.
  ISOBIT_HD constexpr int64_t dz_blocks() const { return int64_t{slices} * slice_pitch / kDzColumns; }  // of a row tile
  ISOBIT_HD constexpr int64_t dz_block(int32_t row, int32_t slice, int32_t column) const {
    return row / kRowPadding * dz_blocks() + (int64_t{slice} * slice_pitch + column) / kDzColumns;
  }
  // The same as rows of 128 bytes, all blocks below each other: what a copy of a block names, and how many a row tile
  // has.
  ISOBIT_HD constexpr int32_t dz_map_row(int32_t row, int32_t slice, int32_t column) const {
    return static_cast<int32_t>(dz_block(row, slice, column) * kRowPadding);
  }
  ISOBIT_HD constexpr int32_t dz_map_rows() const { return static_cast<int32_t>(dz_blocks() * kRowPadding); }
  ISOBIT_HD constexpr uint16_t* dz_at(int32_t row, int32_t slice, int32_t column) const {
    return dz + dz_block(row, slice, column) * kDzBlock + row % kRowPadding * kDzColumns + column % kDzColumns;
  }
  // Ids of a slice that exist.
  ISOBIT_HD constexpr int32_t ids_of(int32_t slice) const {
    const int64_t left = p.forward.count - (first_id + int64_t{slice} * slice_ids);
    return static_cast<int32_t>(left < 0 ? 0 : left < slice_ids ? left : slice_ids);
  }
};

// The same chunk as one slice where nothing lies between the slices: what has no use for segments need not end tiles
// at their borders.
inline BackwardJob without_slices(BackwardJob job) {
  if (job.slice_pitch != job.slice_ids) return job;
  job.slice_ids *= job.slices;
  job.slice_pitch = job.slice_ids;
  job.slices = 1;
  return job;
}

}  // namespace isobit::linear_logp::cuda
