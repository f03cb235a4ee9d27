#include "ops/geglu/bench/load_store.h"

#include "device/elements.cuh"

namespace isobit::geglu::bench {
namespace {

template <int kInputs, int kOutputs>
__global__ void __launch_bounds__(128) load_store(Streams streams, uint64_t vectors) {
  const uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= vectors) return;
  uint32_t x[kInputs][4];
#pragma unroll
  for (int k = 0; k < kInputs; ++k) {
    device::load_words<true>(static_cast<const uint4*>(streams.inputs[k]) + i, x[k]);
  }
#pragma unroll
  for (int k = 0; k < kOutputs; ++k) {
    uint32_t y[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) y[w] = x[k][w] ^ x[k + 1][w];
    device::store_words(static_cast<uint4*>(streams.outputs[k]) + i, y);
  }
}

}  // namespace

void launch_load_store(const Streams& streams, bool backward, uint64_t bytes, cudaStream_t stream) {
  const uint64_t vectors = bytes / 16;
  const auto blocks = static_cast<uint32_t>((vectors + 127) / 128);
  if (backward) {
    load_store<3, 2><<<blocks, 128, 0, stream>>>(streams, vectors);
  } else {
    load_store<2, 1><<<blocks, 128, 0, stream>>>(streams, vectors);
  }
}

}  // namespace isobit::geglu::bench
