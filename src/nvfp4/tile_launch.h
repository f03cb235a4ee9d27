// Host side of the kernels on nvfp4/tile.cuh.
#pragma once

#include <cstdint>

#include "core/runtime.h"
#include "nvfp4/tile.h"
#include "nvfp4/view.h"

namespace isobit {

device::Nvfp4Operand nvfp4_operand(const Nvfp4View& view, int64_t rows, int64_t k);

// Tiles along the rows of x; block b of the grid has row tile b % row tiles and column tile b / row tiles.
uint32_t nvfp4_row_tiles(int64_t rows);

// Whether one launch on this device takes the tiles of [rows, columns].
Status nvfp4_tiles_fit(int64_t rows, int64_t columns, const DeviceProperties& device);
Status launch_nvfp4_tiles(int device, const void* kernel, int64_t rows, int64_t columns, void** arguments,
                          void* stream);

}  // namespace isobit
