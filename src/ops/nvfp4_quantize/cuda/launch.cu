// Instantiates and launches the __global__ functions of kernel.cuh: their device code is compiled here.
#include "ops/nvfp4_quantize/cuda/launch.h"

#include "ops/nvfp4_quantize/cuda/kernel.cuh"

namespace isobit::nvfp4_quantize::cuda {
namespace {

constexpr uint64_t kMaxGrid = (uint64_t{1} << 31) - 1;

const void* kernel_of(isobit_dtype dtype) {
  switch (dtype) {
    case ISOBIT_BF16:
      return reinterpret_cast<const void*>(&nvfp4_quantize_blocks<numerics::Bf16>);
    case ISOBIT_FP16:
      return reinterpret_cast<const void*>(&nvfp4_quantize_blocks<numerics::Fp16>);
    default:
      return reinterpret_cast<const void*>(&nvfp4_quantize_blocks<numerics::Fp32>);
  }
}

}  // namespace

Status takes(const Params& params, const DeviceProperties&) {
  const uint64_t grid = grid_of(job_of(params));
  if (grid <= kMaxGrid) return Status();
  return fail(ISOBIT_UNSUPPORTED, "needs %llu thread blocks, one launch takes %llu",
              static_cast<unsigned long long>(grid), static_cast<unsigned long long>(kMaxGrid));
}

Status run(const Params& params, void* stream) {
  Job job = job_of(params);
  LaunchShape shape;
  shape.grid.x = static_cast<uint32_t>(grid_of(job));
  shape.block.x = kThreads;
  void* arguments[] = {&job};
  return runtime().launch(params.device.id, kernel_of(params.dtype), shape, arguments, stream);
}

}  // namespace isobit::nvfp4_quantize::cuda
