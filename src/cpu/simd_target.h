// The instruction sets that the CPU backend has kernels for. Every one gives the same bits.
#pragma once

namespace isobit::cpu {

enum class SimdTarget { kScalar, kAvx2, kAvx512, kNeon };

// Built in and usable on this processor (and operating system).
bool simd_target_supported(SimdTarget target);

// The fastest supported target, or the forced one.
SimdTarget best_simd_target();

// "scalar", "avx2", "avx512" or "neon".
const char* simd_target_name(SimdTarget target);

// For tests and benchmarks: from now on best_simd_target() answers with this supported target, in every thread.
void force_simd_target(SimdTarget target);

// Back to the fastest target.
void unforce_simd_target();

}  // namespace isobit::cpu
