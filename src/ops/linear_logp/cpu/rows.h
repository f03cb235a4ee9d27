// What a row's targets and temperature ask for, and how its outputs are written.
#pragma once

#include "ops/linear_logp/contract.h"
#include "ops/linear_logp/node.h"

namespace isobit::linear_logp::cpu {

inline int64_t target_id(const Params& p, int64_t row, int64_t k) {
  const int64_t offset = row * p.target_row_stride + k * p.target_column_stride;
  return p.target_is_int64 ? static_cast<const int64_t*>(p.target)[offset]
                           : static_cast<const int32_t*>(p.target)[offset];
}

inline bool is_ignored(const Params& p, int64_t id) { return p.use_ignore_index && id == p.ignore_index; }

// A target that has a logit: neither ignored nor outside the vocabulary.
inline bool has_logit(const Params& p, int64_t id) { return !is_ignored(p, id) && id >= 0 && id < p.vocab; }

inline bool is_ignored_row(const Params& p, int64_t row) {
  for (int64_t k = 0; k < p.targets; ++k) {
    if (!is_ignored(p, target_id(p, row, k))) return false;
  }
  return true;
}

// Whether a target that is not ignored lies outside the vocabulary.
inline bool has_outside_target(const Params& p, int64_t row) {
  for (int64_t k = 0; k < p.targets; ++k) {
    const int64_t id = target_id(p, row, k);
    if (!is_ignored(p, id) && !has_logit(p, id)) return true;
  }
  return false;
}

inline float row_temperature(const Params& p, int64_t row) {
  return p.temperature != nullptr ? p.temperature[row * p.temperature_stride] : p.temperature_value;
}

// One entry of the top list.
struct TopEntry {
  float z;
  int32_t id;
};

// What the outputs of a row are made of.
struct RowValues {
  Node node;
  const float* target_z;  // [K], of the targets that have a logit
  const int32_t* rank;    // [K], if rank is wanted
  const TopEntry* top;    // [T], if a top list is wanted
};

void write_row(const Params& p, int64_t row, const RowValues& values);
void write_ignored_row(const Params& p, int64_t row);

}  // namespace isobit::linear_logp::cpu
