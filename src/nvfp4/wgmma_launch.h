// Host side of the kernels on nvfp4/wgmma.cuh.
#pragma once

#include <cstdint>
#include <span>

#include "core/kernel_table.h"
#include "core/runtime.h"
#include "nvfp4/view.h"
#include "nvfp4/wgmma.h"

namespace isobit {

// One instantiation of a room's kernel.
struct Nvfp4Variant {
  const void* kernel;
  int tokens, last_tokens, groups, threads;
  uint32_t shared_bytes;
  int stages;
  int steps_multiple;  // of stages a tile
};
template <class Config>
Nvfp4Variant nvfp4_variant(const void* kernel) {
  return {kernel,           Config::kTokens,      Config::kLastTokens, Config::kGroups,
          Config::kThreads, Config::kSharedBytes, Config::kStages,     Config::kStepsMultiple};
}

// x [rows, k] times weight [columns, k].
struct Nvfp4WgmmaCall {
  Nvfp4View weight;
  int64_t rows, columns, k;
  int device;
  void* workspace;
  size_t workspace_bytes;
};

// Weight codes as [2][rows / 2][K / 2], even rows, then odd ones, in boxes of `pairs` of them and so many bytes.
Status encode_nvfp4_codes(const Nvfp4WgmmaCall& call, int pairs, int bytes, TensorMapSpec::Swizzle swizzle,
                          TensorMap* map);

Status nvfp4_wgmma_takes(const Nvfp4WgmmaCall& call);
WorkspaceBytes nvfp4_wgmma_workspace(int64_t rows, int64_t k);

// A launch's tiles: full ones, and those of a last round, whose rows of the weight follow.
struct Nvfp4Tiles {
  int64_t token_tiles, row_tiles;
  int64_t last_token_tiles = 0, last_row_tiles = 0;
  int64_t count() const { return token_tiles * row_tiles + last_token_tiles * last_row_tiles; }
};
// x [rows] times weight [columns] in a variant's tiles. Full tiles alone would leave multiprocessors idle in the last
// round, as seven full rounds and 100 tiles do on 132 of them: if all of them together can do that round's rows of the
// weight in tiles of last_tokens, they do.
Nvfp4Tiles tile_nvfp4(const Nvfp4Variant& variant, int64_t rows, int64_t columns, int multiprocessors);

// The variant that takes the least time for this many rows by a model of its cycles; no result depends on it.
const Nvfp4Variant& choose_nvfp4_variant(std::span<const Nvfp4Variant> variants, int64_t rows, int64_t columns,
                                         int64_t k, int multiprocessors);

// Unpacks x and multiplies, in as many pieces as the workspace asks for. `job` is the room's Job, whose plan and unpack
// are filled in here for every piece; `unpack_kernel` takes a Job, the variants' kernels an Nvfp4WgmmaMaps and a Job.
struct Nvfp4WgmmaJob {
  void* job;
  device::Nvfp4WgmmaPlan* plan;
  device::Nvfp4Unpack* unpack;
};
Status run_nvfp4_wgmma(const Nvfp4WgmmaCall& call, std::span<const Nvfp4Variant> variants, const void* unpack_kernel,
                       const Nvfp4WgmmaJob& job, void* stream);

}  // namespace isobit
