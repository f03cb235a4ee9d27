#include "nvfp4/wgmma_launch.h"

#include <algorithm>

#include "core/tensor_map_limits.h"

namespace isobit {
namespace {

constexpr int64_t kDepth = 64;
constexpr int64_t kLeastRows = 64;  // that a piece unpacks
constexpr int kUnpackThreads = 256;
constexpr int64_t kMostTiles = (int64_t{1} << 31) - 1;

int64_t pieces_of(int64_t extent, int64_t piece) { return (extent + piece - 1) / piece; }

size_t unpacked_bytes(int64_t rows, int64_t k) { return static_cast<size_t>(rows) * static_cast<size_t>(k) * 2; }

// x of one piece, as the unpacking kernel leaves it.
Status encode_x(const device::Nvfp4Unpack& unpack, int64_t k, int tokens, TensorMap* map) {
  TensorMapSpec spec;
  spec.address = unpack.out;
  spec.shape[0] = static_cast<uint64_t>(k);
  spec.shape[1] = static_cast<uint64_t>(unpack.rows);
  spec.stride_bytes[0] = static_cast<uint64_t>(k) * 2;
  spec.box[0] = kDepth;
  spec.box[1] = static_cast<uint32_t>(tokens);
  return runtime().encode_tensor_map(spec, map);
}

Status launch_unpack(const Nvfp4WgmmaCall& call, const void* kernel, const Nvfp4WgmmaJob& job, void* stream) {
  LaunchShape shape;
  shape.grid.x = static_cast<uint32_t>(pieces_of(job.unpack->rows * (call.k / 8), kUnpackThreads));
  shape.block.x = kUnpackThreads;
  void* arguments[] = {job.job};
  return runtime().launch(call.device, kernel, shape, arguments, stream);
}

Status launch_product(const Nvfp4WgmmaCall& call, const Nvfp4Variant& variant, int64_t blocks, const Nvfp4WgmmaJob& job,
                      void* stream) {
  device::Nvfp4WgmmaMaps maps;
  if (Status s = encode_x(*job.unpack, call.k, variant.tokens, &maps.x); !s.ok()) return s;
  const int last_tokens = job.plan->last_token_tiles > 0 ? variant.last_tokens : variant.tokens;
  if (Status s = encode_x(*job.unpack, call.k, last_tokens, &maps.last_x); !s.ok()) return s;
  if (Status s = encode_nvfp4_codes(call, 32 * variant.groups, kDepth / 2, TensorMapSpec::Swizzle::kNone, &maps.codes);
      !s.ok()) {
    return s;
  }
  if (Status s = runtime().allow_shared_memory(call.device, variant.kernel, variant.shared_bytes); !s.ok()) return s;
  LaunchShape shape;
  shape.grid.x = static_cast<uint32_t>(blocks);
  shape.block.x = static_cast<uint32_t>(variant.threads);
  shape.dynamic_shared_bytes = variant.shared_bytes;
  shape.programmatic = true;  // weights are on their way while x is unpacked
  void* arguments[] = {&maps, job.job};
  return runtime().launch(call.device, variant.kernel, shape, arguments, stream);
}

}  // namespace

Status encode_nvfp4_codes(const Nvfp4WgmmaCall& call, int pairs, int bytes, TensorMapSpec::Swizzle swizzle,
                          TensorMap* map) {
  TensorMapSpec spec;
  spec.type = TensorMapSpec::Type::kUint8;
  spec.rank = 3;
  spec.address = call.weight.codes;
  spec.shape[0] = static_cast<uint64_t>(call.k / 2);
  spec.shape[1] = static_cast<uint64_t>(call.columns / 2);
  spec.shape[2] = 2;
  spec.stride_bytes[0] = static_cast<uint64_t>(call.weight.row_stride) * 2;
  spec.stride_bytes[1] = static_cast<uint64_t>(call.weight.row_stride);
  spec.box[0] = static_cast<uint32_t>(bytes);
  spec.box[1] = static_cast<uint32_t>(pairs);
  spec.box[2] = 2;
  spec.swizzle = swizzle;
  return runtime().encode_tensor_map(spec, map);
}

Status nvfp4_wgmma_takes(const Nvfp4WgmmaCall& call) {
  if (call.weight.layout != numerics::ScaleLayout::k128x4) {
    return fail(ISOBIT_UNSUPPORTED, "needs weight scales in the 128x4 layout");
  }
  if (call.k % kDepth != 0) {
    return fail(ISOBIT_UNSUPPORTED, "needs K a multiple of 64, got %lld", static_cast<long long>(call.k));
  }
  if (call.columns % 2 != 0) {
    return fail(ISOBIT_UNSUPPORTED, "needs an even number of weight rows, got %lld",
                static_cast<long long>(call.columns));
  }
  if (reinterpret_cast<uintptr_t>(call.weight.codes) % 16 != 0 || call.weight.row_stride % 16 != 0 ||
      reinterpret_cast<uintptr_t>(call.weight.scales) % 16 != 0) {
    return fail(ISOBIT_UNSUPPORTED, "needs weight codes, their rows and scales at multiples of 16 bytes");
  }
  if (2 * call.weight.row_stride >= kTensorMapStrideLimit) {  // encode_nvfp4_codes steps over pairs of rows
    return fail(ISOBIT_UNSUPPORTED, "needs rows of weight codes less than 2^39 bytes apart, got %lld",
                static_cast<long long>(call.weight.row_stride));
  }
  // Of the smallest tiles: 8 tokens by 64 weight rows.
  if (pieces_of(call.rows, 8) * pieces_of(call.columns, 64) > kMostTiles) {
    return fail(ISOBIT_UNSUPPORTED, "needs fewer than 2^31 tiles of 8 x 64");
  }
  return Status();
}

WorkspaceBytes nvfp4_wgmma_workspace(int64_t rows, int64_t k) {
  return {unpacked_bytes(std::min(rows, kLeastRows), k), unpacked_bytes(rows, k)};
}

Nvfp4Tiles tile_nvfp4(const Nvfp4Variant& variant, int64_t rows, int64_t columns, int multiprocessors) {
  const Nvfp4Tiles full = {pieces_of(rows, variant.tokens), pieces_of(columns, int64_t{64} * variant.groups)};
  const int64_t rounds = pieces_of(full.count(), multiprocessors);
  if (variant.last_tokens == 0 || rounds < 2) return full;
  Nvfp4Tiles tiles = full;
  tiles.row_tiles = (rounds - 1) * multiprocessors / full.token_tiles;
  tiles.last_token_tiles = pieces_of(rows, variant.last_tokens);
  tiles.last_row_tiles = full.row_tiles - tiles.row_tiles;
  return tiles.count() <= rounds * multiprocessors ? tiles : full;
}

const Nvfp4Variant& choose_nvfp4_variant(std::span<const Nvfp4Variant> variants, int64_t rows, int64_t columns,
                                         int64_t k, int multiprocessors) {
  // Cycles of a stage: its matrix instructions', its decoding warps' (one a group and scheduler), or one warp's way.
  // That of a warpgroup alone with 64 tokens or more is known better (H200, 2026-11-30, nvfp4_linear): a start with
  // nothing under way, then so many and one a token.
  constexpr int64_t kDecodeCycles = 170;
  constexpr int64_t kLatency = 400;
  constexpr int64_t kLatencyAlone = 185;
  constexpr int64_t kStartAlone = 1500;
  const Nvfp4Variant* best = nullptr;
  int64_t least = 0;
  for (const Nvfp4Variant& variant : variants) {
    if (k / kDepth % variant.steps_multiple != 0) continue;
    const Nvfp4Tiles tiles = tile_nvfp4(variant, rows, columns, multiprocessors);
    const int64_t decode = variant.groups * kDecodeCycles;
    const auto matrix = [&](int64_t tokens) { return variant.groups * 2 * tokens; };
    const bool alone = variant.groups == 1 && variant.tokens >= 64;
    const auto stage = [&](int64_t tokens) {
      const int64_t longest = std::max({matrix(tokens), decode, alone ? kLatencyAlone + tokens : kLatency});
      return longest + (alone ? kStartAlone / (k / kDepth) : 0);
    };
    const int64_t rounds = pieces_of(tiles.count(), multiprocessors);
    const bool last = tiles.last_row_tiles > 0;
    // Of equally long ones the one that does less: a quarter of the work that a multiprocessor has on average.
    const int64_t work = tiles.count() * (matrix(variant.tokens) + decode) / multiprocessors / 4;
    const int64_t cycles =
        (last ? rounds - 1 : rounds) * stage(variant.tokens) + (last ? stage(variant.last_tokens) : 0) + work;
    if (best == nullptr || cycles < least) best = &variant, least = cycles;
  }
  return *best;
}

Status run_nvfp4_wgmma(const Nvfp4WgmmaCall& call, std::span<const Nvfp4Variant> variants, const void* unpack_kernel,
                       const Nvfp4WgmmaJob& job, void* stream) {
  DeviceProperties properties;
  if (Status s = runtime().properties(call.device, &properties); !s.ok()) return s;
  const int64_t fits = static_cast<int64_t>(call.workspace_bytes / unpacked_bytes(1, call.k));
  for (int64_t first = 0; first < call.rows; first += fits) {
    *job.unpack = {static_cast<uint8_t*>(call.workspace), first, std::min(fits, call.rows - first)};
    const Nvfp4Variant& variant =
        choose_nvfp4_variant(variants, job.unpack->rows, call.columns, call.k, properties.multiprocessors);
    device::Nvfp4WgmmaPlan& plan = *job.plan;
    plan.weight_scales = call.weight.scales;
    plan.scale_tiles = static_cast<int32_t>(pieces_of(call.columns, 128));
    const Nvfp4Tiles tiles = tile_nvfp4(variant, job.unpack->rows, call.columns, properties.multiprocessors);
    plan.token_tiles = static_cast<int32_t>(tiles.token_tiles);
    plan.row_tiles = static_cast<int32_t>(tiles.row_tiles);
    plan.last_token_tiles = static_cast<int32_t>(tiles.last_token_tiles);
    plan.last_row_tiles = static_cast<int32_t>(tiles.last_row_tiles);
    plan.steps = static_cast<int32_t>(call.k / kDepth);
    const int64_t blocks = std::min<int64_t>(tiles.count(), properties.multiprocessors);
    if (Status s = launch_unpack(call, unpack_kernel, job, stream); !s.ok()) return s;
    if (Status s = launch_product(call, variant, blocks, job, stream); !s.ok()) return s;
  }
  return Status();
}

}  // namespace isobit
