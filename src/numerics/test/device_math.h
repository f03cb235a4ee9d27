// The functions that the host and the device must compute alike, as maps from a 32-bit pattern to a 32-bit pattern.
#pragma once

#include <cstdint>

#include "numerics/bf16.h"
#include "numerics/bits.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/erf.h"
#include "numerics/exp2.h"
#include "numerics/fp16.h"
#include "numerics/gelu.h"
#include "numerics/log.h"
#include "numerics/tanh.h"

namespace isobit::numerics {

enum class Function : int {
  kExp2,
  kExp2Polynomial,
  kReduceInteger,
  kReduceFraction,
  kLog,
  kLogMantissa,
  kTanh,
  kErf,
  kBf16,
  kFp16,
  kE4m3,
  kE2m1,
  kFp16ToFloat,
  kGeluTanhCoarse,
  kGeluTanhShort,
  kGeluTanhLong,
  kGeluTanhCompensated,
  kGeluErfCoarse,
  kGeluErfShort,
  kGeluErfLong,
  kGeluErfCompensated,
  kSlopeTanhLong,
  kSlopeTanhCompensated,
  kSlopeErfLong,
  kSlopeErfCompensated,
  kCount
};

constexpr const char* kFunctionNames[] = {"exp2",
                                          "exp2_polynomial",
                                          "reduce_log2_n",
                                          "reduce_log2_f",
                                          "log",
                                          "log_mantissa",
                                          "tanh",
                                          "erf",
                                          "bf16_from_float",
                                          "fp16_from_float",
                                          "e4m3_from_float",
                                          "e2m1_from_float",
                                          "fp16_to_float",
                                          "gelu_tanh_coarse",
                                          "gelu_tanh_short",
                                          "gelu_tanh_long",
                                          "gelu_tanh_compensated",
                                          "gelu_erf_coarse",
                                          "gelu_erf_short",
                                          "gelu_erf_long",
                                          "gelu_erf_compensated",
                                          "gelu_slope_tanh_long",
                                          "gelu_slope_tanh_compensated",
                                          "gelu_slope_erf_long",
                                          "gelu_slope_erf_compensated"};

template <Gelu kGelu, GeluSequence kSequence>
ISOBIT_HD uint32_t apply_gelu(float x) {
  return float_bits(canonical_nan(gelu<kGelu, kSequence>(x)));
}

template <Gelu kGelu, GeluSequence kSequence>
ISOBIT_HD uint32_t apply_slope(float x) {
  return float_bits(canonical_nan(gelu_and_slope<kGelu, kSequence>(x).slope));
}

// NaN results of the bare pieces (their arguments are not checked) are made canonical, as every writer does.
template <Function kFunction>
ISOBIT_HD uint32_t apply(uint32_t bits) {
  const float x = bits_float(bits);
  if constexpr (kFunction == Function::kExp2) return float_bits(exp2(x));
  if constexpr (kFunction == Function::kExp2Polynomial) return float_bits(canonical_nan(exp2_polynomial(x)));
  if constexpr (kFunction == Function::kReduceInteger) return static_cast<uint32_t>(reduce_log2(x).n);
  if constexpr (kFunction == Function::kReduceFraction) return float_bits(reduce_log2(x).f);
  if constexpr (kFunction == Function::kLog) return float_bits(log(x));
  if constexpr (kFunction == Function::kLogMantissa) return float_bits(canonical_nan(log_mantissa(x)));
  if constexpr (kFunction == Function::kTanh) return float_bits(tanh(x));
  if constexpr (kFunction == Function::kErf) return float_bits(erf(x));
  if constexpr (kFunction == Function::kBf16) return bf16_from_float(x);
  if constexpr (kFunction == Function::kFp16) return fp16_from_float(x);
  if constexpr (kFunction == Function::kE4m3) return e4m3_from_float(x);
  if constexpr (kFunction == Function::kE2m1) return e2m1_from_float(x);
  if constexpr (kFunction == Function::kFp16ToFloat) return float_bits(fp16_to_float(static_cast<uint16_t>(bits)));
  if constexpr (kFunction == Function::kGeluTanhCoarse) return apply_gelu<Gelu::kTanh, GeluSequence::kCoarse>(x);
  if constexpr (kFunction == Function::kGeluTanhShort) return apply_gelu<Gelu::kTanh, GeluSequence::kShort>(x);
  if constexpr (kFunction == Function::kGeluTanhLong) return apply_gelu<Gelu::kTanh, GeluSequence::kLong>(x);
  if constexpr (kFunction == Function::kGeluTanhCompensated)
    return apply_gelu<Gelu::kTanh, GeluSequence::kCompensated>(x);
  if constexpr (kFunction == Function::kSlopeTanhLong) return apply_slope<Gelu::kTanh, GeluSequence::kLong>(x);
  if constexpr (kFunction == Function::kSlopeTanhCompensated)
    return apply_slope<Gelu::kTanh, GeluSequence::kCompensated>(x);
  if constexpr (kFunction == Function::kGeluErfCoarse) return apply_gelu<Gelu::kErf, GeluSequence::kCoarse>(x);
  if constexpr (kFunction == Function::kGeluErfShort) return apply_gelu<Gelu::kErf, GeluSequence::kShort>(x);
  if constexpr (kFunction == Function::kGeluErfLong) return apply_gelu<Gelu::kErf, GeluSequence::kLong>(x);
  if constexpr (kFunction == Function::kGeluErfCompensated)
    return apply_gelu<Gelu::kErf, GeluSequence::kCompensated>(x);
  if constexpr (kFunction == Function::kSlopeErfLong) return apply_slope<Gelu::kErf, GeluSequence::kLong>(x);
  if constexpr (kFunction == Function::kSlopeErfCompensated)
    return apply_slope<Gelu::kErf, GeluSequence::kCompensated>(x);
}

// The device side, in device_math_test.cu: an error text, or nullptr. Computes `count` outputs for the patterns first,
// first + 1, ... with isobit's function, or with the hardware's conversion of the same name (only kBf16, kFp16, kE4m3
// and kFp16ToFloat have one), into host memory.
const char* evaluate_on_device(Function function, bool hardware, uint32_t first, uint32_t count, uint32_t* out);

}  // namespace isobit::numerics
