#include "ops/linear_logp/cuda/launch.h"

#include "core/runtime.h"
#include "ops/linear_logp/cuda/gather.cuh"
#include "ops/linear_logp/cuda/merge.cuh"
#include "ops/linear_logp/cuda/state.cuh"

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

}  // namespace

Status launch_gather(const Job& job, void* stream) {
  const LaunchShape shape = blocks_of(job.p.rows * job.p.targets, kPairsPerBlock, kGatherThreads);
  const auto kernel = job.p.dtype == ISOBIT_BF16 ? gather_targets<numerics::Bf16> : gather_targets<numerics::Fp16>;
  return launch<Job>(job.p, kernel, shape, stream, job);
}

Status launch_merge(const Job& job, void* stream) {
  const bool entropy = job.p.wants_entropy;
  // Rows that lie next to each other share 32-byte sectors; else a row has a block of its own.
  const bool alone = job.partials.slot_stride == 1;
  LaunchShape shape = blocks_of(job.p.rows, alone ? 1 : 8, kMergeThreads);
  shape.programmatic = true;
  const auto kernel = alone ? (entropy ? merge_rows<true, 1> : merge_rows<false, 1>)
                            : (entropy ? merge_rows<true, 8> : merge_rows<false, 8>);
  return launch<Job>(job.p, kernel, shape, stream, job);
}

Status launch_publish(const Job& job, const NodeOutput& output, void* stream) {
  LaunchShape shape = blocks_of(job.p.rows, kPublishRows, kMergeThreads);
  shape.programmatic = true;
  const auto kernel = output.q != nullptr ? publish_nodes<true> : publish_nodes<false>;
  return launch<Job, NodeOutput>(job.p, kernel, shape, stream, job, output);
}

Status launch_merge_states(const Params& p, const ShardList& list, void* stream) {
  const LaunchShape shape = blocks_of(p.rows, kStateWarps, kStateWarps * kWarpThreads);
  const auto kernel = p.wants_entropy ? merge_states<true> : merge_states<false>;
  return launch<Params, ShardList>(p, kernel, shape, stream, p, list);
}

}  // namespace isobit::linear_logp::cuda
