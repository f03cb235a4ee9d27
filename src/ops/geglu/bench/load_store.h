// The memory traffic of geglu and nothing else: what a perfect kernel of this schedule would take.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace isobit::geglu::bench {

struct Streams {
  const void* inputs[3];
  void* outputs[2];
};

// Reads two (backward: three) buffers of `bytes` bytes, 16 a thread, and writes one (two).
void launch_load_store(const Streams& streams, bool backward, uint64_t bytes, cudaStream_t stream);

}  // namespace isobit::geglu::bench
