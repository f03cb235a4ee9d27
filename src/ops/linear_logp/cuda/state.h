// How shard states reach the kernels. Plain data that goes to kernels by value.
#pragma once

#include <cstdint>

#include "ops/linear_logp/contract.h"
#include "ops/linear_logp/state.h"

namespace isobit::linear_logp::cuda {

// Node arrays of a state at a chunk's first row, [slot][row].
struct NodeOutput {
  int32_t* r;
  float* s;
  float* q;  // nullptr without entropy
  int64_t slot_stride;
};

struct Shard {
  IdRange ids;
  const unsigned char* data;
};

// All shards with ids, in ascending order; together they partition [0, V).
struct ShardList {
  Shard shard[kMaxShards];
  int32_t count;
};
static_assert(sizeof(ShardList) + sizeof(Params) <= 4096, "kernel parameters");

}  // namespace isobit::linear_logp::cuda
