#include "ops/linear_logp/sm80/backward_launch.h"

#include <algorithm>

#include "core/runtime.h"
#include "ops/linear_logp/cuda/backward_logits.cuh"
#include "ops/linear_logp/sm80/backward_product.cuh"

namespace isobit::linear_logp::sm80 {
namespace {

// Without d_entropy h and b of a row are +0, and the general form then gives the same dz but for the sign of a zero,
// which no product sees: one kernel serves both.
using Logits = cuda::LogitsSink<WarpFragment, Config::kIds, true>;
using Hidden = cuda::HiddenSink<WarpFragment>;
using Weight = cuda::WeightSink<WarpFragment>;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t resident_blocks(const Params& p) {
  DeviceProperties properties;
  if (!runtime().properties(p.device.id, &properties).ok()) return 0;
  return int64_t{Config::kBlocks} * properties.multiprocessors;
}

// `rows`, `columns`: of the result of one slice.
Status launch_product(void (*kernel)(BackwardJob, ProductPlan, bool), const BackwardJob& job, int64_t rows,
                      int64_t columns, void* stream) {
  const Params& p = job.p.forward;
  ProductPlan plan{{0, static_cast<int32_t>(divide_up(columns, cuda::kNarrowColumns))},
                   job.slices,
                   cuda::kGroupRows / cuda::kTileRows};
  const int64_t units = divide_up(rows, cuda::kTileRows) * plan.columns.count() * plan.slices;
  if (units == 0) return Status();
  if (units >= int64_t{1} << 31) {
    return fail(ISOBIT_UNSUPPORTED, "hidden, weight: expected fewer than 2^31 tiles of 128 x 128 in a chunk, got %lld",
                static_cast<long long>(units));
  }
  LaunchShape shape;
  shape.grid.x = static_cast<uint32_t>(std::min(units, resident_blocks(p)));
  shape.block.x = Config::kThreads;
  BackwardJob argument = job;
  bool aligned = reinterpret_cast<uintptr_t>(p.weight) % 16 == 0 && p.weight_stride % 8 == 0;
  void* parameters[] = {&argument, &plan, &aligned};
  return runtime().launch(p.device.id, reinterpret_cast<const void*>(kernel), shape, parameters, stream);
}

Status launch_logits(const BackwardJob& chunk, void* stream) {
  const BackwardJob job = cuda::without_slices(chunk);
  return launch_product(product_kernel<Product::kLogits, Logits>, job, job.rows, job.slice_pitch, stream);
}

Status launch_hidden(const BackwardJob& job, void* stream) {
  return launch_product(product_kernel<Product::kHidden, Hidden>, job, job.rows, job.p.forward.width, stream);
}

Status launch_weight(const BackwardJob& chunk, bool, void* stream) {
  const BackwardJob job = cuda::without_slices(chunk);
  return launch_product(product_kernel<Product::kWeight, Weight>, job, job.slice_ids, job.weight_columns, stream);
}

size_t scratch_bytes(const BackwardParams& p) {
  return static_cast<size_t>(resident_blocks(p.forward)) * Config::kRows * Config::kIds * sizeof(float);
}

}  // namespace

cuda::BackwardKernels backward_kernels() { return {launch_logits, launch_hidden, launch_weight, scratch_bytes}; }

}  // namespace isobit::linear_logp::sm80
