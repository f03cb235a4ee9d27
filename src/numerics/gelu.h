// GELU and its derivative, the value path of every GeGLU in isobit.
//
//   tanh form: gelu(a) = a / (1 + exp(-2u)), u = sqrt(2/pi) (a + 0.044715 a^3)     (= a (1 + tanh u) / 2)
//   erf form:  gelu(a) = a Phi(a),           Phi(a) = erfc(-a / sqrt 2) / 2
//
// Both are computed as relu(a) - w q with w = min(|a|, limit) and q the weight at -|a|, so nothing cancels in the tail,
// no infinity meets a zero, and the sign of a zero survives. q is kept times 2^48 until the last step (but in kCoarse);
// it then underflows gradually and is +0 at the limit: gelu(-inf) = -0, gelu(inf) = inf, gelu(NaN) = NaN, for every
// sequence.
//
// A sequence fixes the operations (docs/bit-contract.md). Errors, measured against long double (gelu_test.cpp holds
// them), in units of the last place of the fp32 result; gelu' also in absolute terms because it crosses zero:
//   kCoarse       enough for a result that is rounded to the 4 bits of E2M1. gelu only. Within 1.06e-3 (tanh) and
//                 2.25e-3 (erf) of max(|gelu(-|a|)|, 0.003), of |gelu(-|a|)| alone for |a| <= 1; -0 or a from 5 on.
//   kShort        enough for a result that is rounded to bf16 or fp16 once. gelu only.
//   kLong         gelu and gelu' for 16-bit results.
//   kCompensated  gelu and gelu' for fp32 results: the exponent is formed in two words.
#pragma once

#include <cstdint>

#include "numerics/exp2.h"
#include "numerics/ieee.h"
#ifdef __CUDA_ARCH__
#include "device/ptx/select.cuh"
#endif

namespace isobit::numerics {

enum class Gelu : int32_t { kTanh = 1, kErf = 2 };
enum class GeluSequence { kCoarse, kShort, kLong, kCompensated };

struct GeluAndSlope {
  float value;  // gelu(a)
  float slope;  // gelu'(a)
};

namespace gelu_detail {

constexpr float kLift = 0x1p48f;  // q and the exponential travel times this
constexpr float kDrop = 0x1p-48f;

// The weight is below 2^-150 from here on.
constexpr float kTanhLimit = 10.75f;
constexpr float kErfLimit = 14.625f;

// -2 sqrt(2/pi) log2(e), and that times 0.044715: hi + lo.
constexpr float kLinearHi = -0x1.26aec2p+1f;
constexpr float kLinearLo = -0x1.bce75ap-27f;
constexpr float kCubicHi = -0x1.a5a7dp-4f;
constexpr float kCubicLo = 0x1.151aaep-29f;
// -log2(e) / 2
constexpr float kSquareHi = -kLog2EHi / 2;
constexpr float kSquareLo = -kLog2ELo / 2;

// min(|a|, limit), NaN if a is NaN.
ISOBIT_HD float clamped_magnitude(float a, float limit) {
#ifdef __CUDA_ARCH__
  return device::ptx::min_nan(::fabsf(a), limit);  // |a| is free as an operand of the instruction
#else
  const float w = magnitude(a);
  return w > limit ? limit : w;
#endif
}

// max(a, -0): a itself if its sign is plus, else -0; -0 for a NaN, which comes back through w.
ISOBIT_HD float relu(float a) {
#ifdef __CUDA_ARCH__
  return ::fmaxf(a, -0.0f);
#else
  return float_bits(a) <= 0x7F800000u ? a : -0.0f;
#endif
}

// |x| with the sign of a.
ISOBIT_HD float signed_like(float x, float a) {
#ifdef __CUDA_ARCH__
  return device::ptx::with_sign_of(x, a);
#else
  return with_sign(x, a);
#endif
}

// n = rint(x y + c) and f = x y + c - n, from one rounding each; c is 0 or -1.
struct Exponent {
  uint32_t scaled;  // n + 48 in the low bits
  float f;
};
ISOBIT_HD Exponent split_exponent(float x, float y, float c) {
  constexpr float kShift = kRoundingShift + 48.0f;
  const float rounded = fma_rn(x, y, kShift + c);
  const float n = sub_rn(rounded, kShift + c);
  return {float_bits(rounded), fma_rn(x, y, -n)};
}

// p * 2^(n + 48): n >= -174 and p in [0.7, 1.42) keep the exponent field legal.
ISOBIT_HD float lifted(float p, uint32_t scaled) { return bits_float(float_bits(p) + (scaled << 23)); }

// 2^f for f in [-0.5, 0.5] to 2.6e-6: minimax of degree 4.
ISOBIT_HD float exp2_degree4(float f) {
  float p = fma_rn(0.00957094133f, f, 0.0559196919f);
  p = fma_rn(p, f, 0.240247294f);
  p = fma_rn(p, f, 0.693121433f);
  return fma_rn(p, f, 0.999999285f);
}

// e^(-2|u|) times 2^48.
template <GeluSequence kSequence>
ISOBIT_HD float tanh_exponential(float w, float square) {
  if constexpr (kSequence == GeluSequence::kCompensated) {
    const float square_low = fma_rn(w, w, -square);
    const float product = mul_rn(kCubicHi, square);
    const float product_low = fma_rn(kCubicHi, square, -product);
    // g + g_low = kLinearHi + product exactly: either summand may be the larger one.
    const float g = add_rn(kLinearHi, product);
    const float part = sub_rn(g, kLinearHi);
    const float g_low = add_rn(sub_rn(kLinearHi, sub_rn(g, part)), sub_rn(product, part));
    const float tail = fma_rn(kCubicHi, square_low, fma_rn(kCubicLo, square, kLinearLo));
    const Exponent t = split_exponent(w, g, 0.0f);
    return lifted(exp2_polynomial(fma_rn(w, add_rn(g_low, add_rn(product_low, tail)), t.f)), t.scaled);
  } else {
    const Exponent t = split_exponent(w, fma_rn(square, kCubicHi, kLinearHi), 0.0f);
    return lifted(kSequence == GeluSequence::kShort ? exp2_degree4(t.f) : exp2_polynomial(t.f), t.scaled);
  }
}

// q = e / (1 + e) times 2^48 for e in [0, 1], e given times 2^48. The quadratic z is 1 - 1/(1 + e) to 1/99.
template <GeluSequence kSequence>
ISOBIT_HD float tanh_weight(float e) {
  const float z = fma_rn(e, fma_rn(e, -0.323232323f * kDrop * kDrop, 0.808080808f * kDrop), 0.0101010101f);
  const float q0 = fma_rn(-e, z, e);
  const float residual = fma_rn(-q0, kDrop, z);  // 1 - (1 + e)(1 - z), so q = q0 / (1 - residual)
  if constexpr (kSequence == GeluSequence::kShort) {
    return fma_rn(q0, fma_rn(residual, residual, residual), q0);
  } else {
    const float q1 = fma_rn(q0, residual, q0);
    const float low = mul_rn(q1, kDrop);
    return fma_rn(fma_rn(-e, low, sub_rn(e, q1)), sub_rn(1.0f, low), q1);
  }
}

// Phi(-w) times 2^48 as 2^(polynomial of degree 9); the polynomial is -1 at w = 0 and makes a relative error of at most
// 2.0e-5, less near 0, where bf16 and fp16 have most of their values.
ISOBIT_HD float erf_weight_short(float w) {
  float p = fma_rn(-2.11892481e-09f, w, 1.51641686e-07f);
  p = fma_rn(p, w, -4.77636922e-06f);
  p = fma_rn(p, w, 8.76969862e-05f);
  p = fma_rn(p, w, -0.00105182116f);
  p = fma_rn(p, w, 0.00880705193f);
  p = fma_rn(p, w, -0.0543207787f);
  p = fma_rn(p, w, -0.458301365f);
  p = fma_rn(p, w, -1.15125203f);
  const Exponent t = split_exponent(p, w, -1.0f);
  return lifted(exp2_degree4(t.f), t.scaled);
}

// exp(-w^2 / 2) times 2^48.
template <GeluSequence kSequence>
ISOBIT_HD float erf_exponential(float w) {
  const float square = mul_rn(w, w);
  const Exponent t = split_exponent(square, kSquareHi, 0.0f);
  if constexpr (kSequence == GeluSequence::kCompensated) {
    const float square_low = fma_rn(w, w, -square);
    const float low = fma_rn(square, kSquareLo, mul_rn(square_low, kSquareHi));
    return lifted(exp2_polynomial(add_rn(t.f, low)), t.scaled);
  } else {
    return lifted(exp2_polynomial(t.f), t.scaled);
  }
}

// e times a rational that is Phi(-w) exp(w^2 / 2): of degrees (3, 4) to 4.7e-7, of degrees (4, 5) to 5e-9 when it is
// compensated; every coefficient is positive, so nothing cancels.
template <GeluSequence kSequence>
ISOBIT_HD float erf_weight(float w, float e) {
  float n, d;
  if constexpr (kSequence == GeluSequence::kCompensated) {
    n = fma_rn(w, 0.00402020573f, 0.0399842732f);
    n = fma_rn(w, n, 0.181307054f);
    n = fma_rn(w, n, 0.43568671f);
    d = fma_rn(w, 0.0100770181f, 0.100233091f);
    d = fma_rn(w, d, 0.464381114f);
    d = fma_rn(w, d, 1.19448543f);
    d = fma_rn(w, d, 1.66925834f);
  } else {
    n = fma_rn(w, 0.0170497447f, 0.119619988f);
    n = fma_rn(w, n, 0.362205446f);
    d = fma_rn(w, 0.0427421182f, 0.299646497f);
    d = fma_rn(w, d, 0.953975022f);
    d = fma_rn(w, d, 1.52228177f);
  }
  n = fma_rn(w, n, 0.5f);
  d = fma_rn(w, d, 1.0f);
  // 1/d: a seed from the bits (relative error below 0.13), two cubic steps.
  float y = bits_float(0x7EF311C7u - float_bits(d));
  float residual = fma_rn(-d, y, 1.0f);
  y = fma_rn(y, fma_rn(residual, residual, residual), y);
  residual = fma_rn(-d, y, 1.0f);
  y = fma_rn(y, fma_rn(residual, residual, residual), y);
  const float ratio = mul_rn(n, y);
  if constexpr (kSequence != GeluSequence::kCompensated) return mul_rn(e, ratio);
  return mul_rn(e, fma_rn(fma_rn(-d, ratio, n), y, ratio));
}

// Phi(-w)^(1/4) for w in [0, 5]: minimax of degree 5 for the weight w Phi(-w), and exactly 0 at 5.
constexpr float kCoarseLimit = 5.0f;
template <Gelu kGelu>
ISOBIT_HD float coarse_root(float w) {
  constexpr bool kTanh = kGelu == Gelu::kTanh;
  float p = fma_rn(w, kTanh ? -0x1.beed2ap-13f : -0x1.23793cp-12f, kTanh ? 0x1.4fa3dcp-11f : 0x1.0eb03ep-10f);
  p = fma_rn(p, w, kTanh ? 0x1.c75a66p-7f : 0x1.bf2cf2p-7f);
  p = fma_rn(p, w, kTanh ? -0x1.e869eap-5f : -0x1.ebb5fcp-5f);
  p = fma_rn(p, w, kTanh ? -0x1.506bb4p-3f : -0x1.5119fep-3f);
  return fma_rn(p, w, kTanh ? 0x1.ae6e1ep-1f : 0x1.ae9bc8p-1f);
}

// relu(a) - w q.
ISOBIT_HD float value(float a, float w, float q) { return fma_rn(-w, q, relu(a)); }

}  // namespace gelu_detail

// gelu(a). The erf form has no long sequence of its own for the value: kLong and kCompensated give what gelu_and_slope
// gives.
template <Gelu kGelu, GeluSequence kSequence>
ISOBIT_HD float gelu(float a) {
  using namespace gelu_detail;
  if constexpr (kSequence == GeluSequence::kCoarse) {
    const float w = clamped_magnitude(a, kCoarseLimit);
    const float root = coarse_root<kGelu>(w);
    const float square = mul_rn(root, root);
    return value(a, mul_rn(w, square), square);
  }
  const float w = clamped_magnitude(a, kGelu == Gelu::kTanh ? kTanhLimit : kErfLimit);
  float lifted_weight;
  if constexpr (kGelu == Gelu::kTanh) {
    lifted_weight = tanh_weight<kSequence>(tanh_exponential<kSequence>(w, mul_rn(w, w)));
  } else if constexpr (kSequence == GeluSequence::kShort) {
    lifted_weight = erf_weight_short(w);
  } else {
    lifted_weight = erf_weight<kSequence>(w, erf_exponential<kSequence>(w));
  }
  return value(a, w, mul_rn(lifted_weight, kDrop));
}

// gelu(a) and gelu'(a); for kLong and kCompensated.
//   tanh form: gelu' = s + sign(a) q (1 - q) w (2 sqrt(2/pi) + 6 * 0.044715 sqrt(2/pi) w^2)
//   erf form:  gelu' = s + sign(a) w exp(-w^2 / 2) / sqrt(2 pi)           s = 1 - q for a > 0, else q
template <Gelu kGelu, GeluSequence kSequence>
ISOBIT_HD GeluAndSlope gelu_and_slope(float a) {
  static_assert(kSequence >= GeluSequence::kLong, "the other sequences are too coarse where gelu' crosses zero");
  using namespace gelu_detail;
  if constexpr (kGelu == Gelu::kTanh) {
    const float w = clamped_magnitude(a, kTanhLimit);
    const float square = mul_rn(w, w);
    const float q = mul_rn(tanh_weight<kSequence>(tanh_exponential<kSequence>(w, square)), kDrop);
    const float complement = sub_rn(1.0f, q);
    const float inner = mul_rn(fma_rn(square, 0.214064449f, 1.59576917f), w);
    return {value(a, w, q), fma_rn(signed_like(inner, a), mul_rn(q, complement), a > 0.0f ? complement : q)};
  } else {
    const float w = clamped_magnitude(a, kErfLimit);
    const float e = erf_exponential<kSequence>(w);
    const float q = mul_rn(erf_weight<kSequence>(w, e), kDrop);
    const float density = mul_rn(mul_rn(w, 0.398942292f * kDrop), e);
    return {value(a, w, q), add_rn(a > 0.0f ? sub_rn(1.0f, q) : q, signed_like(density, a))};
  }
}

}  // namespace isobit::numerics
