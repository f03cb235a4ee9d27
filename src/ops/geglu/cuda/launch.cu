#include "ops/geglu/cuda/launch.h"

#include "ops/geglu/cuda/kernel.cuh"

namespace isobit::geglu::cuda {
namespace {

enum class Schedule { kTile, kRow };

// Host stubs of the __global__ functions, which is how the runtime knows them.
template <Schedule kSchedule, class Format, Gelu kGelu>
const void* kernel_of(bool backward) {
  if constexpr (kSchedule == Schedule::kTile) {
    return backward ? reinterpret_cast<const void*>(&geglu_backward_tile<Format, kGelu>)
                    : reinterpret_cast<const void*>(&geglu_forward_tile<Format, kGelu>);
  } else {
    return backward ? reinterpret_cast<const void*>(&geglu_backward_row<Format, kGelu>)
                    : reinterpret_cast<const void*>(&geglu_forward_row<Format, kGelu>);
  }
}

template <Schedule kSchedule, class Format>
const void* kernel_of(const Params& p) {
  return p.gelu == Gelu::kTanh ? kernel_of<kSchedule, Format, Gelu::kTanh>(p.backward)
                               : kernel_of<kSchedule, Format, Gelu::kErf>(p.backward);
}

template <Schedule kSchedule>
const void* kernel_of(const Params& p) {
  switch (p.dtype) {
    case ISOBIT_BF16:
      return kernel_of<kSchedule, numerics::Bf16>(p);
    case ISOBIT_FP16:
      return kernel_of<kSchedule, numerics::Fp16>(p);
    default:
      return kernel_of<kSchedule, numerics::Fp32>(p);
  }
}

// Calls launch(work) for every part of the call that one launch takes: one, unless the call is huge.
template <class Launch>
Status for_each_part(const Params& p, const Launch& launch) {
  int64_t rows = 0;
  for (int64_t row = 0; row < p.rows; row += rows) {
    for (int64_t column = 0; column < p.columns; column += kColumnsPerLaunch) {
      const Work work = work_at(p, row, column);
      rows = work.rows;
      if (Status s = launch(work); !s.ok()) return s;
    }
  }
  return Status();
}

}  // namespace

Status launch_tile(const Params& params, const Tile& tile, void* stream) {
  const Params p = flattened(params);
  return for_each_part(p, [&](Work work) {
    const int32_t chunk = chunk_columns(p.dtype);
    LaunchShape shape;
    if (tile.columns > tile.warps * chunk) {
      // grid.y has room for 65,535 spans; a wider row takes wider ones.
      int32_t span = tile.columns;
      while (spans(work, p.dtype, span) > 65535) span *= 2;
      uint32_t warps = static_cast<uint32_t>(tile.warps);
      shape.grid = {work.rows, static_cast<uint32_t>(spans(work, p.dtype, span)), 1};
      shape.block.x = 32 * warps;
      void* arguments[] = {&work, &warps, &span};
      return runtime().launch(p.device.id, kernel_of<Schedule::kRow>(p), shape, arguments, stream);
    }
    // Narrow rows leave warps of the tile without a column, and those would keep other blocks out.
    int32_t columns = tile.columns;
    while (columns > chunk && spans(work, p.dtype, columns / 2) == 1) columns /= 2;
    shape.grid = tile_grid(work, p.dtype, columns);
    shape.block.x = static_cast<uint32_t>(32 * columns / chunk);
    void* arguments[] = {&work};
    return runtime().launch(p.device.id, kernel_of<Schedule::kTile>(p), shape, arguments, stream);
  });
}

Status launch_row(const Params& p, void* stream) {
  return for_each_part(p, [&](Work work) {
    uint32_t warps = warps_per_row(work.columns, chunk_columns(p.dtype));
    int32_t span = kColumnsPerLaunch + static_cast<int32_t>(line_columns(p.dtype));  // the row and what is before it
    const uint32_t rows_per_block = kRowWarps / warps;
    LaunchShape shape;
    shape.grid.x = (work.rows + rows_per_block - 1) / rows_per_block;
    shape.block.x = 32 * kRowWarps;
    void* arguments[] = {&work, &warps, &span};
    return runtime().launch(p.device.id, kernel_of<Schedule::kRow>(p), shape, arguments, stream);
  });
}

}  // namespace isobit::geglu::cuda
