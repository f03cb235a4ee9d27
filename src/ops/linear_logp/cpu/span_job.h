// The work of one job: a span of 1,024 ids against a block of rows, from weights to nodes.
#pragma once

#include "ops/linear_logp/cpu/plan.h"

namespace isobit::linear_logp::cpu {

struct SpanJob {
  const Params* params;
  const Pieces* pieces;
  const ChunkData* chunk;
  const ThreadData* thread;
  int64_t span;       // span index: ids [span * 1024, span * 1024 + 1024)
  int64_t first_row;  // of the block, in the chunk
  int64_t rows;
  bool simd;  // false: the scalar definitions
};

template <bool kEntropy>
void run_span_job(const SpanJob& job);

}  // namespace isobit::linear_logp::cpu
