// Weights of the WGMMA product: from a stage in shared memory to fragments of A in registers.
#pragma once

#include <cstdint>

#include "device/ptx/convert.cuh"
#include "device/ptx/memory.cuh"
#include "numerics/ieee.h"
#include "nvfp4/decode.cuh"
#include "nvfp4/wgmma.h"

namespace isobit::device {

// The block's shared memory, by address.
template <class Config>
struct Nvfp4Shared {
  uint32_t tokens;   // stages of x
  uint32_t weights;  // stages of codes and scales
  uint32_t staging;
  uint32_t scales;             // decoded, of every multiplying warp
  uint32_t barriers;           // of the ring
  uint32_t epilogue_barriers;  // two a group
  uint32_t more;               // kMoreBytes of the epilogue
  __device__ __forceinline__ explicit Nvfp4Shared(uint32_t base) {
    tokens = (base + Config::kAlignment - 1) / Config::kAlignment * Config::kAlignment;
    weights = tokens + Config::kStages * Config::kTokenBytes;
    staging = weights + Config::kStages * Config::kWeightBytes;
    scales = staging + Config::kStagingBytes;
    barriers = scales + Config::kScaleBytes;
    epilogue_barriers = barriers + 2 * Config::kMostStages * 8;
    more = barriers + Config::kBarrierBytes;
  }
};

struct Nvfp4TilePlace {
  int32_t first_token, tokens, row_tile;
  bool last;  // of this block
};

__device__ __forceinline__ void copy_fragments(const uint32_t (&from)[4][4], uint32_t (&to)[4][4]) {
#pragma unroll
  for (int i = 0; i < 16; ++i) to[i / 4][i % 4] = from[i / 4][i % 4];
}

// A thread's share of its warpgroup's weight rows: pair `pair()` of the tile. A warp has 16 rows, in the order of the
// fragment: the even ones of eight pairs, then the odd ones.
template <class Config>
class Nvfp4Weights {
 public:
  __device__ __forceinline__ Nvfp4Weights(const Nvfp4Shared<Config>& shared, int group) {
    const int lane = threadIdx.x % 32;
    first_pair_ = 32 * group + 8 * (threadIdx.x % Config::kWarpgroup / 32);
    codes_ = shared.weights + pair() * Config::kCodeRow;
    selector_ = 0x4400u + 0x1111u * (lane % 4);
    decoded_ = shared.scales + first_pair_ / 8 * Config::kScaleWarp;
    packed_ = shared.weights + Config::kCodeBytes;
  }
  __device__ __forceinline__ int pair() const { return first_pair_ + threadIdx.x % 32 / 4; }

  // Where this lane's two packed scales of the tile lie in a stage: lane 2 r + h has blocks 2 h and 2 h + 1 of row r.
  __device__ __forceinline__ void start_tile(const Nvfp4TilePlace& tile) {
    const int lane = threadIdx.x % 32;
    const int row = 2 * (tile.row_tile * Config::kPairs % 64 + first_pair_ + lane / 2 % 8) + lane / 16;
    tile_packed_ = packed_ + row / 128 * Config::kScaleTile + row % 32 * 16 + row % 128 / 32 * 4 + lane % 2 * 2;
  }
  // A stage's scales, each decoded once in the warp: loaded packed, then put where load_scales finds them.
  __device__ __forceinline__ void load_packed_scales(uint32_t stage_offset) {
    packed_scales_ = ptx::load_shared_u16(tile_packed_ + stage_offset);
  }
  __device__ __forceinline__ void decode_scales() const {
    const uint32_t halves = ptx::fp16x2_from_e4m3x2(packed_scales_);
    const uint2 pairs = {scale_pair(static_cast<uint16_t>(halves)), scale_pair(static_cast<uint16_t>(halves >> 16))};
    __syncwarp();
    ptx::store_shared_2(decoded_ + threadIdx.x % 32 * 8, pairs);
    __syncwarp();
  }
  __device__ __forceinline__ void load_scales() {
    const uint32_t at = decoded_ + threadIdx.x % 32 / 4 * 16;
    even_scales_ = ptx::load_shared_4(at);
    odd_scales_ = ptx::load_shared_4(at + 128);
  }
  // Blocks 2 half and 2 half + 1 of a stage.
  __device__ __forceinline__ void load_codes(uint32_t stage_offset, int half) {
    const uint32_t at = codes_ + stage_offset + 16 * half;
    even_[half] = ptx::load_shared_4(at);
    odd_[half] = ptx::load_shared_4(at + Config::kPairs * Config::kCodeRow);
  }
  // The loaded codes of a block as a fragment of A.
  __device__ __forceinline__ void decode(int block, uint32_t (&fragment)[4]) const {
    const uint32_t even = bytes_of(even_[block / 2], block);
    const uint32_t odd = bytes_of(odd_[block / 2], block);
    const uint32_t even_scale = word_of(even_scales_, block);
    const uint32_t odd_scale = word_of(odd_scales_, block);
    fragment[0] = ptx::mul_bf16x2_here(nvfp4_low_codes(even), even_scale);
    fragment[1] = ptx::mul_bf16x2_here(nvfp4_low_codes(odd), odd_scale);
    fragment[2] = ptx::mul_bf16x2_here(nvfp4_high_codes(even), even_scale);
    fragment[3] = ptx::mul_bf16x2_here(nvfp4_high_codes(odd), odd_scale);
  }

 private:
  static __device__ __forceinline__ uint32_t scale_pair(uint16_t scale) {
    const float wide = numerics::mul_rn(ptx::float_from_fp16(scale), 0x1p118f);
    return __byte_perm(__float_as_uint(wide), 0, 0x3232);
  }
  static __device__ __forceinline__ uint32_t word_of(const uint4& words, int i) {
    return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
  }
  // Bytes q and q + 4 of a block, q = lane % 4: elements 2 q, 2 q + 1 and 2 q + 8, 2 q + 9.
  __device__ __forceinline__ uint32_t bytes_of(const uint4& half, int block) const {
    return block % 2 == 0 ? __byte_perm(half.x, half.y, selector_) : __byte_perm(half.z, half.w, selector_);
  }

  int first_pair_;
  uint32_t codes_, packed_, tile_packed_, decoded_, selector_;
  uint16_t packed_scales_;
  uint4 even_scales_, odd_scales_;
  uint4 even_[2], odd_[2];
};

}  // namespace isobit::device
