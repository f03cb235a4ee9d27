// Host side of the kernels on nvfp4/scaled_tile.cuh (SM100, SM103, SM110).
#pragma once

#include <cstdint>

#include "core/runtime.h"
#include "nvfp4/scaled_tile.h"
#include "nvfp4/view.h"

namespace isobit {

// Whether a device of this capability has images of these kernels. The table's rows give a range; this is the list.
bool has_scaled_tiles(int capability);

// x [rows, k] times weight [columns, k], as the kernels read them.
struct ScaledProduct {
  Nvfp4View x, weight;
  int64_t rows, columns, k;
};

// Whether the kernels take these operands on this device, blocks of `blocks` (1 or 2) in a cluster.
Status scaled_tiles_take(const ScaledProduct& product, int blocks, const DeviceProperties& device);

// For the rows of other kernels: refuses a call that names no kernel on a device with scaled tiles, since the bits are
// not the same and no call changes its bits because of an alignment.
Status refuse_in_place_of_scaled_tiles(const char* forced, const DeviceProperties& device);

device::ScaledPlan scaled_plan(const ScaledProduct& product, int blocks);

// Launches kernel(ScaledOperands, job). Persistent: one cluster of `blocks` for every `blocks` multiprocessors, fewer
// if there are fewer tiles.
Status launch_scaled_tiles(int device, const void* kernel, const ScaledProduct& product, int blocks, void* job,
                           void* stream);

}  // namespace isobit
