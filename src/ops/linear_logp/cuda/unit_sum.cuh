// Units and leaves from logits that lie in the registers of a warp. Same bits as reduce_unit of ops/linear_logp/unit.h,
// which is the definition.
#pragma once

#include "device/ptx/arithmetic.cuh"
#include "numerics/exp2.h"
#include "ops/linear_logp/cuda/logit.cuh"
#include "ops/linear_logp/node.h"
#include "ops/linear_logp/unit.h"

namespace isobit::linear_logp::cuda {

constexpr uint32_t kWarp = 0xFFFFFFFFu;
constexpr int kWarpThreads = 32;
constexpr float kMinusInfinity = numerics::bits_float(0xFF800000u);

// 2^n P(f) of a logit within +-kPlainLimit, with reference exponent 0: unit_term without its cases. The rounding
// shift leaves n in the low bits of r.
__device__ __forceinline__ float plain_term(float z) {
  const float r = numerics::fma_rn(z, numerics::kLog2EHi, numerics::kRoundingShift);
  const float n = numerics::sub_rn(r, numerics::kRoundingShift);
  const float f = numerics::fma_rn(z, numerics::kLog2ELo, numerics::fma_rn(z, numerics::kLog2EHi, -n));
  const float p = numerics::exp2_polynomial(f);
  return numerics::bits_float(numerics::float_bits(p) + (numerics::float_bits(r) << 23));
}

// The sum over lanes that differ in the bits of `kMasks`, one level each.
template <int... kMasks>
__device__ __forceinline__ float add_lanes(float x) {
  ((x = numerics::add_rn(x, __shfl_xor_sync(kWarp, x, kMasks))), ...);
  return x;
}

// Joins the scans of lanes that share a unit.
template <int... kMasks>
__device__ __forceinline__ UnitScan join_scans(UnitScan scan) {
  const auto join = [&](int mask) {
    const float magnitude = __shfl_xor_sync(kWarp, scan.magnitude, mask);
    const float largest = __shfl_xor_sync(kWarp, scan.largest, mask);
    const bool bad = __shfl_xor_sync(kWarp, static_cast<int>(scan.bad), mask) != 0;
    scan.magnitude = magnitude > scan.magnitude ? magnitude : scan.magnitude;
    scan.largest = largest > scan.largest ? largest : scan.largest;
    scan.bad = scan.bad || bad;
  };
  (join(kMasks), ...);
  return scan;
}

// Two terms whose ids differ in bit 5: the first level of the tree. low and high are -inf where no id is.
struct PairSum {
  float s, q;
};

__device__ __forceinline__ PairSum pair_sum(float low, float high, UnitReference reference) {
  const Term a = unit_term(low, reference);
  const Term b = unit_term(high, reference);
  return {numerics::add_rn(a.term, b.term), numerics::fma_rn(b.term, b.weight, numerics::mul_rn(a.term, a.weight))};
}

// What scan.bad and "no finite logit" make of a finished unit.
__device__ __forceinline__ Node settle(const UnitScan& scan, UnitReference reference, float s, float q) {
  if (scan.bad) return nan_node();
  if (scan.largest == kMinusInfinity) return identity_node();
  return {reference.r, s, q};
}

// ---- one leaf, four ids a lane: ids offset + {0, 32, 64, 96} ----

// The lane's offset: its bits 2, 3, 4, 0, 1 are bits 0, 3, 4, 1, 2 of the id, so the tree's levels are shuffles.
__device__ __forceinline__ int leaf_offset(int lane) { return 8 * (lane >> 3) + 2 * (lane & 3) + ((lane >> 2) & 1); }

// The leaf of logits that all exist, all within +-kPlainLimit. All lanes get it.
template <bool kEntropy>
__device__ __forceinline__ Node plain_leaf(const float (&z)[4]) {
  float s[2];
  float q[2] = {};
#pragma unroll
  for (int u = 0; u < 2; ++u) {
    const float a = plain_term(z[2 * u]);
    const float b = plain_term(z[2 * u + 1]);
    s[u] = add_lanes<4, 8, 16, 1, 2>(numerics::add_rn(a, b));
    if constexpr (kEntropy) {
      q[u] = add_lanes<4, 8, 16, 1, 2>(numerics::fma_rn(b, z[2 * u + 1], numerics::mul_rn(a, z[2 * u])));
    }
  }
  return {0, numerics::add_rn(s[0], s[1]), numerics::add_rn(q[0], q[1])};
}

// The leaf of logits z[i] at offset + 32 i, existing where `exists`. All lanes get it.
template <bool kEntropy>
__device__ __forceinline__ Node warp_leaf(const float (&z)[4], const bool (&exists)[4]) {
  Node unit[2];
#pragma unroll
  for (int u = 0; u < 2; ++u) {
    UnitScan scan;
    float x[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (exists[2 * u + i]) scan.add(z[2 * u + i]);
      x[i] = exists[2 * u + i] ? z[2 * u + i] : kMinusInfinity;
    }
    scan = join_scans<1, 2, 4, 8, 16>(scan);
    const UnitReference reference = unit_reference(scan.magnitude, scan.largest);
    const PairSum pair = pair_sum(x[0], x[1], reference);
    const float s = add_lanes<4, 8, 16, 1, 2>(pair.s);
    const float q = kEntropy ? add_lanes<4, 8, 16, 1, 2>(pair.q) : 0.0f;
    unit[u] = settle(scan, reference, s, q);
  }
  return merge<kEntropy>(unit[0], unit[1]);
}

}  // namespace isobit::linear_logp::cuda
