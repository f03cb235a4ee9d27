// The table of kernels of geglu, and the rules that choose between the CUDA schedules.
#pragma once

#include "core/kernel_table.h"
#include "ops/geglu/cuda/config.h"

namespace isobit::geglu {

enum class Schedule { kRow, kTile };

// One rule; the first that matches decides. It cannot show in the bits.
struct Rule {
  int min_capability, max_capability;  // inclusive
  int64_t min_rows;
  int64_t min_columns_pow2;  // compared with the next power of two of the columns
  Schedule schedule;
  cuda::Tile tile;  // of kTile
  const char* reason;
  const char* measurement;
};

const Rule& rule_for(int capability, int64_t rows, int64_t columns);

// Rule `index` of the table, or nullptr past its end.
const Rule* rule_at(int index);

// Row `index` of the table of kernels, or nullptr past its end.
const KernelInfo* kernel_at(int index);

}  // namespace isobit::geglu
