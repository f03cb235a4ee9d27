#include "ops/linear_logp/sm90/backward_launch.h"

#include <algorithm>

#include "core/runtime.h"
#include "ops/linear_logp/cuda/backward_logits.cuh"
#include "ops/linear_logp/sm90/backward_product.cuh"

namespace isobit::linear_logp::sm90 {
namespace {

using ProductKernel = void (*)(TensorMap, TensorMap, BackwardJob, ProductPlan);
template <bool kEntropy>
using Logits = cuda::LogitsSink<WarpgroupFragment, cuda::kWideColumns, kEntropy>;

// A bf16 matrix and the box that one copy brings; rows of `columns` elements in the 128-byte swizzle.
struct Matrix {
  const void* data;
  int64_t columns;
  int64_t rows;
  int64_t stride;
};

Status encode(const Matrix& matrix, uint32_t box_rows, TensorMap* map) {
  TensorMapSpec spec;
  spec.type = TensorMapSpec::Type::kBf16;
  spec.rank = 2;
  spec.address = matrix.data;
  spec.shape[0] = static_cast<uint64_t>(matrix.columns);
  spec.shape[1] = static_cast<uint64_t>(matrix.rows);
  spec.stride_bytes[0] = static_cast<uint64_t>(matrix.stride) * 2;
  spec.box[0] = kDepth;
  spec.box[1] = box_rows;
  return runtime().encode_tensor_map(spec, map);
}

int64_t round_up(int64_t x, int64_t granule) { return (x + granule - 1) / granule * granule; }

Matrix hidden_of(const BackwardJob& job, int64_t columns) {
  return {job.hidden, columns, round_up(job.p.forward.rows, cuda::kRowPadding), job.hidden_stride};
}
Matrix weight_of(const BackwardJob& job) {
  const Params& p = job.p.forward;
  return {p.weight, p.width, p.count, p.weight_stride};
}
// The blocks of dz, below each other.
Matrix dz_of(const BackwardJob& job) {
  return {job.dz, cuda::kDzColumns, round_up(job.rows, cuda::kRowPadding) * job.dz_blocks(), cuda::kDzColumns};
}

// `rows`: of the result. `programmatic`: may run beside the launch before.
Status launch_product(ProductKernel kernel, const BackwardJob& job, const TensorMap& a, const TensorMap& b,
                      const ProductPlan& plan, int64_t rows, void* stream, bool programmatic = false) {
  const int device = job.p.forward.device.id;
  DeviceProperties properties;
  if (Status s = runtime().properties(device, &properties); !s.ok()) return s;
  const int64_t units = round_up(rows, cuda::kTileRows) / cuda::kTileRows * plan.columns.count() * plan.slices;
  if (units == 0) return Status();
  if (units >= int64_t{1} << 31) {
    return fail(ISOBIT_UNSUPPORTED, "hidden, weight: expected fewer than 2^31 tiles of 128 x 192 in a chunk, got %lld",
                static_cast<long long>(units));
  }
  const void* const address = reinterpret_cast<const void*>(kernel);
  if (Status s = runtime().allow_shared_memory(device, address, ProductConfig::kSharedBytes); !s.ok()) return s;
  LaunchShape shape;
  shape.grid.x = static_cast<uint32_t>(std::min<int64_t>(units, properties.multiprocessors));
  shape.block.x = kThreads;
  shape.dynamic_shared_bytes = ProductConfig::kSharedBytes;
  shape.programmatic = programmatic;
  TensorMap maps[2] = {a, b};
  BackwardJob argument = job;
  ProductPlan planned = plan;
  void* parameters[] = {&maps[0], &maps[1], &argument, &planned};
  return runtime().launch(device, address, shape, parameters, stream);
}

constexpr int32_t kGroup = cuda::kGroupRows / cuda::kTileRows;

Status launch_logits(const BackwardJob& chunk, void* stream) {
  const BackwardJob job = cuda::without_slices(chunk);
  TensorMap hidden, weight;
  if (Status s = encode(hidden_of(job, job.p.forward.width), cuda::kTileRows, &hidden); !s.ok()) return s;
  if (Status s = encode(weight_of(job), cuda::kWideColumns, &weight); !s.ok()) return s;
  const auto tiles = static_cast<int32_t>(round_up(job.slice_pitch, cuda::kWideColumns) / cuda::kWideColumns);
  const ProductKernel kernel = job.p.wants_entropy_gradient ? product_kernel<Product::kLogits, Logits<true>>
                                                            : product_kernel<Product::kLogits, Logits<false>>;
  return launch_product(kernel, job, hidden, weight, {{tiles, 0}, job.slices, kGroup}, job.rows, stream);
}

Status launch_hidden(const BackwardJob& job, void* stream) {
  TensorMap dz, weight;
  if (Status s = encode(dz_of(job), cuda::kTileRows, &dz); !s.ok()) return s;
  if (Status s = encode(weight_of(job), kDepth, &weight); !s.ok()) return s;
  return launch_product(product_kernel<Product::kHidden, cuda::HiddenSink<WarpgroupFragment>>, job, dz, weight,
                        {cuda::cut_columns(job.p.forward.width), job.slices, kGroup}, job.rows, stream);
}

Status launch_weight(const BackwardJob& chunk, bool follows_hidden, void* stream) {
  const BackwardJob job = cuda::without_slices(chunk);
  TensorMap dz, hidden;
  if (Status s = encode(dz_of(job), kDepth, &dz); !s.ok()) return s;
  if (Status s = encode(hidden_of(job, job.weight_columns), kDepth, &hidden); !s.ok()) return s;
  return launch_product(product_kernel<Product::kWeight, cuda::WeightSink<WarpgroupFragment>>, job, dz, hidden,
                        {cuda::cut_columns(job.weight_columns), job.slices, kGroup}, job.slice_ids, stream,
                        follows_hidden);
}

size_t scratch_bytes(const BackwardParams& p) {
  DeviceProperties properties;
  if (!runtime().properties(p.forward.device.id, &properties).ok()) return 0;
  return size_t{2} * cuda::kTileRows * cuda::kWideColumns * sizeof(float) *
         static_cast<size_t>(properties.multiprocessors);
}

}  // namespace

cuda::BackwardKernels backward_kernels() { return {launch_logits, launch_hidden, launch_weight, scratch_bytes}; }

}  // namespace isobit::linear_logp::sm90
