#include "nvfp4/tile_launch.h"

namespace isobit {
namespace {

using device::Nvfp4Tile;

constexpr uint64_t kMaxGrid = (uint64_t{1} << 31) - 1;

uint64_t tiles(int64_t extent, int tile) { return static_cast<uint64_t>((extent + tile - 1) / tile); }

uint64_t grid(int64_t rows, int64_t columns) {
  return tiles(rows, Nvfp4Tile::kRows) * tiles(columns, Nvfp4Tile::kColumns);
}

}  // namespace

device::Nvfp4Operand nvfp4_operand(const Nvfp4View& view, int64_t rows, int64_t k) {
  const bool aligned = reinterpret_cast<uintptr_t>(view.codes) % 8 == 0 && view.row_stride % 8 == 0;
  return {view.codes, view.row_stride, view.scales, rows, static_cast<int32_t>(k / 16), view.layout, aligned};
}

uint32_t nvfp4_row_tiles(int64_t rows) { return static_cast<uint32_t>(tiles(rows, Nvfp4Tile::kRows)); }

Status nvfp4_tiles_fit(int64_t rows, int64_t columns, const DeviceProperties& device) {
  if (device.shared_bytes_per_block < Nvfp4Tile::kSharedBytes) {
    return fail(ISOBIT_UNSUPPORTED, "needs %d bytes of shared memory a block, the device has %zu",
                Nvfp4Tile::kSharedBytes, device.shared_bytes_per_block);
  }
  if (grid(rows, columns) <= kMaxGrid) return Status();
  return fail(ISOBIT_UNSUPPORTED, "needs %llu thread blocks, one launch takes %llu",
              static_cast<unsigned long long>(grid(rows, columns)), static_cast<unsigned long long>(kMaxGrid));
}

Status launch_nvfp4_tiles(int device, const void* kernel, int64_t rows, int64_t columns, void** arguments,
                          void* stream) {
  if (Status s = runtime().allow_shared_memory(device, kernel, Nvfp4Tile::kSharedBytes); !s.ok()) return s;
  LaunchShape shape;
  shape.grid.x = static_cast<uint32_t>(grid(rows, columns));
  shape.block.x = Nvfp4Tile::kThreads;
  shape.dynamic_shared_bytes = Nvfp4Tile::kSharedBytes;
  return runtime().launch(device, kernel, shape, arguments, stream);
}

}  // namespace isobit
