#include "ops/linear_logp/sm80/launch.h"

#include "core/runtime.h"
#include "ops/linear_logp/sm80/kernel.cuh"

namespace isobit::linear_logp::sm80 {
namespace {

using Kernel = void (*)(Job, device::TileOrder);

template <class Format, bool kAligned>
Kernel kernel_of(Mode mode) {
  switch (mode) {
    case Mode::kLogp:
      return leaf_kernel<Format, Mode::kLogp, kAligned>;
    case Mode::kEntropy:
      return leaf_kernel<Format, Mode::kEntropy, kAligned>;
    case Mode::kFull:
      break;
  }
  return leaf_kernel<Format, Mode::kFull, kAligned>;
}

bool rows_aligned(const void* data, int64_t stride) {
  return reinterpret_cast<uintptr_t>(data) % 16 == 0 && stride % 8 == 0;
}

}  // namespace

Status launch(const cuda::Job& job, void*, void* stream) {
  const Params& p = job.p;
  const bool aligned =
      p.width % 8 == 0 && rows_aligned(p.hidden, p.hidden_stride) && rows_aligned(p.weight, p.weight_stride);
  const bool bf16 = p.dtype == ISOBIT_BF16;
  const Mode mode = cuda::mode_of(p);
  const Kernel kernel =
      bf16 ? (aligned ? kernel_of<numerics::Bf16, true>(mode) : kernel_of<numerics::Bf16, false>(mode))
           : (aligned ? kernel_of<numerics::Fp16, true>(mode) : kernel_of<numerics::Fp16, false>(mode));

  const auto tiles = [](int64_t extent, int64_t tile) { return static_cast<int32_t>((extent + tile - 1) / tile); };
  device::TileOrder order{tiles(p.rows, Config::kRows), tiles(p.first_id + p.count - job.origin, Config::kIds),
                          Config::kGroupRows / Config::kRows};
  if (order.count() >= (int64_t{1} << 31)) {
    return fail(ISOBIT_UNSUPPORTED, "hidden, weight: expected fewer than 2^31 tiles of 128 x 128 in a chunk, got %lld",
                static_cast<long long>(order.count()));
  }
  LaunchShape shape;
  shape.grid.x = static_cast<uint32_t>(order.count());
  shape.block.x = Config::kThreads;
  Job argument = job;
  void* parameters[] = {&argument, &order};
  return runtime().launch(p.device.id, reinterpret_cast<const void*>(kernel), shape, parameters, stream);
}

}  // namespace isobit::linear_logp::sm80
