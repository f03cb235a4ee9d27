#include "ops/linear_logp/sm90/launch.h"

#include <algorithm>

#include "core/runtime.h"
#include "core/tensor_map_limits.h"
#include "ops/linear_logp/sm90/kernel.cuh"
#include "ops/linear_logp/sm90/stream_kernel.cuh"

namespace isobit::linear_logp::sm90 {
namespace {

using TileKernel = void (*)(TensorMap, TensorMap, Job, TileSchedule);
using StreamKernel = void (*)(TensorMap, TensorMap, Job, StreamSchedule);

constexpr size_t kCounterBytes = TileConfig::kMaxLaps * sizeof(uint32_t);
static_assert(kCounterBytes <= cuda::kMaxScratchBytes);

template <class Format>
TileKernel tile_kernel_of(Mode mode) {
  switch (mode) {
    case Mode::kLogp:
      return tile_kernel<Format, Mode::kLogp>;
    case Mode::kEntropy:
      return tile_kernel<Format, Mode::kEntropy>;
    case Mode::kFull:
      break;
  }
  return tile_kernel<Format, Mode::kFull>;
}

template <class Format, class Config>
StreamKernel stream_kernel_of(Mode mode) {
  switch (mode) {
    case Mode::kLogp:
      return stream_kernel<Format, Mode::kLogp, Config>;
    case Mode::kEntropy:
      return stream_kernel<Format, Mode::kEntropy, Config>;
    case Mode::kFull:
      break;
  }
  return stream_kernel<Format, Mode::kFull, Config>;
}

using Promotion = TensorMapSpec::L2Promotion;

// Rows of kDepth elements in the 128-byte swizzle; the copy engine writes zeros beyond the matrix.
Status encode(const Params& p, const void* data, int64_t rows, int64_t stride, uint32_t box_rows, Promotion promotion,
              TensorMap* map) {
  TensorMapSpec spec;
  spec.type = p.dtype == ISOBIT_BF16 ? TensorMapSpec::Type::kBf16 : TensorMapSpec::Type::kFp16;
  spec.address = data;
  spec.shape[0] = static_cast<uint64_t>(p.width);
  spec.shape[1] = static_cast<uint64_t>(rows);
  spec.stride_bytes[0] = static_cast<uint64_t>(stride) * 2;
  spec.box[0] = kDepth;
  spec.box[1] = box_rows;
  spec.l2_promotion = promotion;
  return runtime().encode_tensor_map(spec, map);
}

struct Operands {
  TensorMap hidden, weight;
};

Status encode_operands(const Params& p, uint32_t hidden_rows, uint32_t weight_rows, Promotion promotion,
                       Operands* operands) {
  if (Status s = encode(p, p.hidden, p.rows, p.hidden_stride, hidden_rows, promotion, &operands->hidden); !s.ok()) {
    return s;
  }
  return encode(p, p.weight, p.count, p.weight_stride, weight_rows, promotion, &operands->weight);
}

Status launch_clear_laps(int device, uint32_t* counters, uint32_t laps, void* stream) {
  LaunchShape shape;
  shape.block.x = kWarpgroup;
  void* parameters[] = {&counters, &laps};
  return runtime().launch(device, reinterpret_cast<const void*>(clear_laps), shape, parameters, stream);
}

// Whether the launch before is launch_gather, or clear_laps after it: the kernel itself waits where it needs their
// results.
bool follows_gather(const Job& job) { return !job.select_targets && cuda::mode_of(job.p) == Mode::kFull; }

template <class Kernel, class Schedule>
Status launch_persistent(Kernel kernel, const Job& job, const Operands& operands, const Schedule& schedule,
                         int64_t blocks, uint32_t shared_bytes, bool programmatic, void* stream) {
  const void* const address = reinterpret_cast<const void*>(kernel);
  const int device = job.p.device.id;
  if (Status s = runtime().allow_shared_memory(device, address, shared_bytes); !s.ok()) return s;
  LaunchShape shape;
  shape.grid.x = static_cast<uint32_t>(blocks);
  shape.block.x = kThreads;
  shape.dynamic_shared_bytes = shared_bytes;
  shape.programmatic = programmatic;
  Operands maps = operands;
  Job argument = job;
  Schedule plan = schedule;
  void* parameters[] = {&maps.hidden, &maps.weight, &argument, &plan};
  return runtime().launch(device, address, shape, parameters, stream);
}

int64_t tiles_of(int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; }

int steps_of(const Params& p) { return static_cast<int>(tiles_of(p.width, kDepth)); }

int64_t ids_from_origin(const Job& job) { return job.p.first_id + job.p.count - job.origin; }

Status launch_tiles(const Job& job, void* scratch, void* stream) {
  const Params& p = job.p;
  DeviceProperties properties;
  if (Status s = runtime().properties(p.device.id, &properties); !s.ok()) return s;
  TileSchedule schedule{};
  schedule.order = banded_order(static_cast<int32_t>(tiles_of(p.rows, TileConfig::kRows)),
                                static_cast<int32_t>(tiles_of(ids_from_origin(job), TileConfig::kIds)), p.width);
  schedule.steps = steps_of(p);
  if (schedule.order.count() >= int64_t{1} << 30) {
    return fail(ISOBIT_UNSUPPORTED, "hidden, weight: expected fewer than 2^30 tiles of 128 x 192 in a chunk, got %lld",
                static_cast<long long>(schedule.order.count()));
  }
  // With few row tiles W streams through L2 once. Fetched in 256 bytes it passes more between L2's halves (34 M sectors
  // instead of 23 M at 512, 4096, 151936, and 1 % more time; H200, 2026-11-30); with more row tiles both take the same.
  const Promotion promotion = schedule.order.row_tiles < TileConfig::kPacedRowTiles ? Promotion::k128 : Promotion::k256;
  Operands operands;
  if (Status s = encode_operands(p, TileConfig::kRows, TileConfig::kIds, promotion, &operands); !s.ok()) return s;
  const int64_t blocks = std::min<int64_t>(schedule.order.count(), properties.multiprocessors);
  const int64_t stages = tiles_of(schedule.order.count(), blocks) * schedule.steps;
  if (blocks > 1 && schedule.order.row_tiles >= TileConfig::kPacedRowTiles && stages >= TileConfig::kPacedStages &&
      stages <= int64_t{TileConfig::kMaxLaps} * TileConfig::kLapStages) {
    schedule.lap_counter = static_cast<uint32_t*>(scratch);
    const auto laps = static_cast<uint32_t>(tiles_of(stages, TileConfig::kLapStages));
    if (Status s = launch_clear_laps(p.device.id, schedule.lap_counter, laps, stream); !s.ok()) return s;
  }
  const Mode mode = cuda::mode_of(p);
  const TileKernel kernel =
      p.dtype == ISOBIT_BF16 ? tile_kernel_of<numerics::Bf16>(mode) : tile_kernel_of<numerics::Fp16>(mode);
  return launch_persistent(kernel, job, operands, schedule, blocks, TileConfig::kSharedBytes,
                           schedule.lap_counter != nullptr || follows_gather(job), stream);
}

template <int kTokens>
Status launch_stream(const Job& job, void*, void* stream) {
  using Config = StreamConfig<kTokens>;
  const Params& p = job.p;
  DeviceProperties properties;
  if (Status s = runtime().properties(p.device.id, &properties); !s.ok()) return s;
  Operands operands;
  if (Status s = encode_operands(p, Config::kTokens, Config::kIds, Promotion::k256, &operands); !s.ok()) return s;
  const StreamSchedule schedule{static_cast<int32_t>(tiles_of(ids_from_origin(job), Config::kIds)), steps_of(p)};
  const int64_t blocks = std::min(schedule.tiles, properties.multiprocessors);
  const Mode mode = cuda::mode_of(p);
  const StreamKernel kernel = p.dtype == ISOBIT_BF16 ? stream_kernel_of<numerics::Bf16, Config>(mode)
                                                     : stream_kernel_of<numerics::Fp16, Config>(mode);
  return launch_persistent(kernel, job, operands, schedule, blocks, Config::kSharedBytes, follows_gather(job), stream);
}

Status check_operand(const char* name, const void* data, int64_t stride) {
  if (reinterpret_cast<uintptr_t>(data) % 16 != 0) return refuse(name, "a base aligned to 16 bytes", "%p", data);
  if (stride <= 0 || stride % 8 != 0) {
    return refuse(name, "stride[0] a positive multiple of 8", "%lld", static_cast<long long>(stride));
  }
  if (stride >= kTensorMapStrideLimit / 2) {
    return refuse(name, "stride[0] below 2^39", "%lld", static_cast<long long>(stride));
  }
  return Status();
}

}  // namespace

Status check_operands(const Params& p) {
  if (Status s = check_operand("hidden", p.hidden, p.hidden_stride); !s.ok()) return s;
  return check_operand("weight", p.weight, p.weight_stride);
}

cuda::Producer choose(int64_t rows) {
  using cuda::SlotKind;
  if (rows > kMaxStreamRows) return {SlotKind::kTriple, false, kCounterBytes, launch_tiles};
  const auto launch = rows <= 8    ? launch_stream<8>
                      : rows <= 16 ? launch_stream<16>
                      : rows <= 32 ? launch_stream<32>
                                   : launch_stream<64>;
  return {SlotKind::kLeaf, true, 0, launch};
}

}  // namespace isobit::linear_logp::sm90
