// Layout of what a forward pass saves for the backward pass; docs/bit-contract.md section 3.7.
#pragma once

#include "ops/linear_logp/gradient.h"

namespace isobit::linear_logp {

// Arrays of 4-byte elements, one per row; `stride` elements from array to array, a multiple of 16 bytes.
struct SavedArrays {
  int32_t* r;
  float* s;
  float* q;
  int32_t* others_r;
  float* others_s;
  int32_t* lead;
};

inline constexpr int kSavedArrays = 6;

ISOBIT_HD constexpr int64_t saved_stride(int64_t rows) { return (rows + 3) / 4 * 4; }
ISOBIT_HD constexpr int64_t saved_bytes(int64_t rows) { return kSavedArrays * 4 * saved_stride(rows); }

ISOBIT_HD SavedArrays saved_arrays(void* saved, int64_t rows) {
  const int64_t stride = saved_stride(rows);
  auto* const words = static_cast<int32_t*>(saved);
  auto* const floats = static_cast<float*>(saved);
  return {words, floats + stride, floats + 2 * stride, words + 3 * stride, floats + 4 * stride, words + 5 * stride};
}

ISOBIT_HD RowRecord load_record(const SavedArrays& saved, int64_t row) {
  return {
      {saved.r[row], saved.s[row], saved.q[row]}, {saved.others_r[row], saved.others_s[row], 0.0f}, saved.lead[row]};
}

ISOBIT_HD void store_record(const SavedArrays& saved, int64_t row, const RowRecord& record) {
  saved.r[row] = record.row.r;
  saved.s[row] = record.row.s;
  saved.q[row] = record.row.q;
  saved.others_r[row] = record.others.r;
  saved.others_s[row] = record.others.s;
  saved.lead[row] = record.lead;
}

// Of rows that the backward pass does not look at: ignored, or without a valid target or temperature.
ISOBIT_HD constexpr RowRecord idle_record() { return {identity_node(), identity_node(), -1}; }

}  // namespace isobit::linear_logp
