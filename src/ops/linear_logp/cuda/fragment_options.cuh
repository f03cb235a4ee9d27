// Bias, softcap and temperature on the logits of a fragment, in place; docs/bit-contract.md section 3.1.
//
// All steps are straight-line code on the registers except the softcap, whose operations, up to forty a logit, pass
// through the column in a rolled loop. Shared divisors and the short tanh have the bits of the definition within their
// ranges; a warp that meets anything beyond takes the definition itself, one logit at a time.
#pragma once

#include "device/ptx/arithmetic.cuh"
#include "numerics/divisor.h"
#include "ops/linear_logp/cuda/fragment_logits.cuh"

namespace isobit::linear_logp::cuda {

// The bias of the fragment's ids, to all rows. The warp fetches it once, into its columns; ids that do not exist stay
// zeros.
template <int kUnits>
__device__ __forceinline__ void add_bias(const Job& job, float (&d)[32 * kUnits], const Place& place) {
  static_assert(64 * kUnits <= kColumnWords * kWarpThreads);
  const int lane = threadIdx.x % kWarpThreads;
  float* const shared = place.column - lane;
  __syncwarp();
#pragma unroll
  for (int i = lane; i < 64 * kUnits; i += kWarpThreads) {
    const int64_t id = int64_t{place.id} + i;
    shared[i] = id >= job.p.first_id && id < job.p.first_id + job.p.count ? bias_at(job.p, id) : 0.0f;
  }
  __syncwarp();
#pragma unroll
  for (int j = 0; j < 8 * kUnits; ++j) {
    const float2 bias = *reinterpret_cast<const float2*>(shared + 8 * j + 2 * (lane % 4));
    d[4 * j] = numerics::add_rn(d[4 * j], bias.x);
    d[4 * j + 1] = numerics::add_rn(d[4 * j + 1], bias.y);
    d[4 * j + 2] = numerics::add_rn(d[4 * j + 2], bias.x);
    d[4 * j + 3] = numerics::add_rn(d[4 * j + 3], bias.y);
  }
  __syncwarp();  // the columns are free again
}

template <int kCount>
__device__ __forceinline__ bool may_divide(const float (&d)[kCount]) {
  numerics::DividendRange range;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    range.largest = device::ptx::max_nan(range.largest, fabsf(d[i]));
    range.least = min(range.least, 2 * numerics::float_bits(d[i]) - 1);
  }
  return range.usable();
}

// softcap_logit of several logits. Most are well below the softcap, where the nearer half of tanh serves all lanes.
template <int kCount>
__device__ __forceinline__ void cap_together(const numerics::Divisor& softcap, float (&z)[kCount]) {
  float largest = 0.0f;
#pragma unroll
  for (float& x : z) {
    x = softcap.divide(x);
    largest = fmaxf(largest, fabsf(x));
  }
  const bool near_zero = __all_sync(kWarp, largest < numerics::kTanhNearZero);
#pragma unroll
  for (float& x : z) {
    x = numerics::mul_rn(softcap.value, near_zero ? numerics::tanh_near_zero(x) : numerics::tanh_of_finite(x));
  }
}

template <int kUnits>
__device__ __forceinline__ void cap_logits(const Job& job, float (&d)[32 * kUnits], const Place& place) {
  constexpr int kTogether = 4;  // more gain nothing: the compiler runs few chains beside each other
  const numerics::Divisor softcap(job.p.softcap);
  if (__all_sync(kWarp, softcap.usable() && may_divide(d))) {
    change_logits<kUnits, kTogether>(d, place,
                                     [&](float(&z)[kTogether], int32_t, uint32_t) { cap_together(softcap, z); });
  } else {
    change_logits<kUnits, 1>(d, place,
                             [&](float(&z)[1], int32_t, uint32_t) { z[0] = softcap_logit(z[0], softcap.value); });
  }
}

template <int kUnits>
__device__ __forceinline__ void temper_logits(const Job& job, float (&d)[32 * kUnits], const Place& place) {
  const auto temperature = [&](int32_t row) { return row < job.p.rows ? temperature_at(job.p, row) : 1.0f; };
  const numerics::Divisor first(temperature(place.row));
  const numerics::Divisor second(temperature(place.row + 8));
  if (__all_sync(kWarp, first.usable() && second.usable() && may_divide(d))) {
#pragma unroll
    for (int i = 0; i < 32 * kUnits; ++i) d[i] = i % 4 < 2 ? first.divide(d[i]) : second.divide(d[i]);
  } else {
    change_logits<kUnits, 1>(d, place,
                             [&](float(&z)[1], int32_t row, uint32_t) { z[0] = temper_logit(z[0], temperature(row)); });
  }
}

template <int kUnits>
__device__ __forceinline__ void finish_logits(const Job& job, float (&d)[32 * kUnits], const Place& place) {
  if (job.p.bias != nullptr) add_bias<kUnits>(job, d, place);
  if (job.p.softcap != 0.0f) cap_logits<kUnits>(job, d, place);
  if (is_tempered(job.p)) temper_logits<kUnits>(job, d, place);
}

}  // namespace isobit::linear_logp::cuda
