#include "ops/linear_logp/cuda/launch.h"

#include "core/runtime.h"
#include "ops/linear_logp/cuda/gather.cuh"
#include "ops/linear_logp/cuda/merge.cuh"
#include "ops/linear_logp/cuda/merge_states.cuh"
#include "ops/linear_logp/cuda/others.cuh"
#include "ops/linear_logp/cuda/publish.cuh"
#include "ops/linear_logp/cuda/top.cuh"

namespace isobit::linear_logp::cuda {
namespace {

LaunchShape blocks_of(int64_t work, int64_t per_block, int threads) {
  LaunchShape shape;
  shape.grid.x = static_cast<uint32_t>(divide_up(work, per_block));
  shape.block.x = static_cast<uint32_t>(threads);
  return shape;
}

template <class... Arguments>
Status launch(const Params& p, void (*kernel)(Arguments...), const LaunchShape& shape, void* stream,
              Arguments... arguments) {
  void* parameters[] = {&arguments...};
  return runtime().launch(p.device.id, reinterpret_cast<const void*>(kernel), shape, parameters, stream);
}

// A row whose slots are neighbours has a block of its own. Else rows share 32-byte sectors, and blocks hold as many
// rows as keep all multiprocessors busy in one round (linear_logp_bench_merge, H200, 2026-11-30, launch included: 512
// rows of 151,936 ids 10.8 us in blocks of four, 12.8 in blocks of eight; 4,096 rows 30.6 and 18.7, and 22.8 at three
// blocks a multiprocessor).
using MergeAlone = MergeShape<1, 256, 3, 256>;
using MergeFew = MergeShape<4, 512, 2, 256>;
using MergeMany = MergeShape<8, 256, 4, 256>;
constexpr int64_t kFewRows = 1024;

template <class Shape>
Status launch_merge_shape(const Job& job, void* stream) {
  LaunchShape shape = blocks_of(job.p.rows, Shape::kRows, Shape::kThreads);
  shape.programmatic = true;
  const auto kernel = job.p.wants_entropy ? merge_rows<true, Shape> : merge_rows<false, Shape>;
  return launch<Job>(job.p, kernel, shape, stream, job);
}

template <class Shape>
Status launch_publish_shape(const Job& job, const NodeOutput& output, void* stream) {
  LaunchShape shape = blocks_of(job.p.rows, Shape::kRows, Shape::kThreads);
  shape.programmatic = true;
  const auto kernel = output.q != nullptr ? publish_nodes<true, Shape> : publish_nodes<false, Shape>;
  return launch<Job, NodeOutput>(job.p, kernel, shape, stream, job, output);
}

}  // namespace

Status launch_gather(const Job& job, void* stream) {
  const LaunchShape shape = blocks_of(job.p.rows * job.p.targets, kPairsPerBlock, kGatherThreads);
  const auto kernel = job.p.dtype == ISOBIT_BF16 ? gather_targets<numerics::Bf16> : gather_targets<numerics::Fp16>;
  return launch<Job>(job.p, kernel, shape, stream, job);
}

Status launch_leads(const Job& job, void* stream) {
  return launch<Job>(job.p, find_leads, blocks_of(job.p.rows, kOthersThreads, kOthersThreads), stream, job);
}

Status launch_others(const Job& job, void* stream) {
  const LaunchShape shape = blocks_of(job.p.rows, kOthersThreads / kWarpThreads, kOthersThreads);
  return launch<Job>(job.p, sum_others, shape, stream, job);
}

Status launch_merge(const Job& job, void* stream) {
  if (job.partials.slot_stride == 1) return launch_merge_shape<MergeAlone>(job, stream);
  return job.p.rows <= kFewRows ? launch_merge_shape<MergeFew>(job, stream)
                                : launch_merge_shape<MergeMany>(job, stream);
}

Status launch_top(const Job& job, void* stream) {
  return launch<Job>(job.p, list_top, blocks_of(job.p.rows, 1, kTopThreads), stream, job);
}

Status launch_publish(const Job& job, const NodeOutput& output, void* stream) {
  if (job.partials.slot_stride == 1) return launch_publish_shape<MergeAlone>(job, output, stream);
  return job.p.rows <= kFewRows ? launch_publish_shape<MergeFew>(job, output, stream)
                                : launch_publish_shape<MergeMany>(job, output, stream);
}

Status launch_merge_states(const Params& p, const ShardList& list, void* stream) {
  const LaunchShape shape = blocks_of(p.rows, kStateRows, kStateRows);
  const auto kernel = p.wants_entropy ? merge_states<true> : merge_states<false>;
  return launch<Params, ShardList>(p, kernel, shape, stream, p, list);
}

}  // namespace isobit::linear_logp::cuda
