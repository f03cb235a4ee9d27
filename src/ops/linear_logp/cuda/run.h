// The launch sequence of a call, the same for every architecture: rows go in chunks that fit the workspace; per chunk
// [target logits] -> big product into slots -> merge into outputs.
#pragma once

#include <cstddef>

#include "core/kernel_table.h"
#include "core/status.h"
#include "ops/linear_logp/contract.h"
#include "ops/linear_logp/cuda/job.h"

namespace isobit::linear_logp::cuda {

inline constexpr size_t kMaxScratchBytes = 16384;

// How an architecture computes slots.
struct Producer {
  SlotKind kind;
  bool row_major;        // slots of a row are neighbours; else rows of a slot are
  size_t scratch_bytes;  // per chunk, for the producer itself
  Status (*launch)(const Job& job, void* scratch, void* stream);
};

// An architecture's choice for a chunk of this many rows. No choice needs more workspace than kTriple slots with
// kMaxScratchBytes.
using ChooseProducer = Producer (*)(int64_t rows);

// A whole call, a shard or a merge, as p.purpose says.
Status run(const Params& p, ChooseProducer choose, void* stream);

}  // namespace isobit::linear_logp::cuda
