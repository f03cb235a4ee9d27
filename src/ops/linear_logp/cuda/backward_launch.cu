#include "ops/linear_logp/cuda/backward_launch.h"

#include "core/runtime.h"
#include "ops/linear_logp/cuda/backward_rows.cuh"

namespace isobit::linear_logp::cuda {
namespace {

template <class... Arguments>
Status launch(const Params& p, void (*kernel)(Arguments...), int64_t blocks, int threads, void* stream,
              Arguments... arguments) {
  if (blocks == 0) return Status();
  LaunchShape shape;
  shape.grid.x = static_cast<uint32_t>(blocks);
  shape.block.x = static_cast<uint32_t>(threads);
  void* parameters[] = {&arguments...};
  return runtime().launch(p.device.id, reinterpret_cast<const void*>(kernel), shape, parameters, stream);
}

constexpr int64_t kRowWarps = kRowThreads / 32;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

Status launch_rows(const BackwardJob& job, const RowArrays& rows, void* stream) {
  const Params& p = job.p.forward;
  if (Status s =
          launch<Params, int32_t*, int32_t*>(p, number_rows, 1, kNumberThreads, stream, p, rows.valid, rows.row_of);
      !s.ok()) {
    return s;
  }
  if (Status s = launch<BackwardJob, GradientRow*>(p, prepare_rows, divide_up(p.rows, kRowThreads), kRowThreads, stream,
                                                   job, rows.gradient);
      !s.ok()) {
    return s;
  }
  const bool aligned = reinterpret_cast<uintptr_t>(p.hidden) % 16 == 0 && p.hidden_stride % 8 == 0;
  return launch<BackwardJob, uint16_t*, bool>(p, gather_hidden,
                                              divide_up(p.rows, kRowPadding) * kRowPadding / kRowWarps, kRowThreads,
                                              stream, job, rows.hidden, aligned);
}

Status launch_fill_rows(const BackwardParams& p, const GradientOutput& to, void* stream) {
  return launch<Params, GradientOutput>(p.forward, fill_rows, divide_up(p.forward.rows, kRowWarps), kRowThreads, stream,
                                        p.forward, to);
}

Status launch_clear_ids(const BackwardParams& p, void* stream) {
  if (p.accumulate || !(p.d_weight || p.d_bias)) return Status();
  const int64_t first = p.forward.rows > 0 ? p.forward.count : 0;
  return launch<BackwardParams, int64_t>(p.forward, clear_ids, p.weight_rows - first, kRowThreads, stream, p, first);
}

Status launch_targets(const BackwardJob& job, void* stream) {
  const auto kernel = job.p.wants_entropy_gradient ? store_targets<true> : store_targets<false>;
  return launch<BackwardJob>(job.p.forward, kernel, divide_up(job.rows * job.p.forward.targets, kRowThreads),
                             kRowThreads, stream, job);
}

Status launch_add_segments(const BackwardJob& job, float* const* levels, int chunk, int chunks, void* stream) {
  WaitingNodes waiting{};
  for (int i = 0; (1 << i) < chunks; ++i) waiting.level[i] = levels[i];
  while ((chunk >> waiting.merged) % 2 == 1) ++waiting.merged;
  waiting.last = chunk + 1 == chunks;
  static_assert(kMostSlices == 8);
  using Kernel = void (*)(BackwardJob, WaitingNodes);
  const Kernel kernel = job.slices == 1   ? add_segments<1>
                        : job.slices == 2 ? add_segments<2>
                        : job.slices == 4 ? add_segments<4>
                                          : add_segments<8>;
  return launch<BackwardJob, WaitingNodes>(job.p.forward, kernel,
                                           divide_up(job.rows * (job.partial_stride / 4), kRowThreads), kRowThreads,
                                           stream, job, waiting);
}

Status launch_merge_parts(const BackwardParams& p, const PartNodes& list, void* stream) {
  const int64_t elements = p.forward.rows * p.forward.width;
  return launch<BackwardParams, PartNodes>(p.forward, merge_parts, divide_up(elements, kRowThreads), kRowThreads,
                                           stream, p, list);
}

}  // namespace isobit::linear_logp::cuda
