#include "cpu/simd_target.h"

#include <atomic>

namespace isobit::cpu {
namespace {

constexpr int kNotForced = -1;
std::atomic<int> forced_target{kNotForced};

bool avx512_supported() {
#if defined(__x86_64__)
  // The feature tests include the operating system's consent to save the registers.
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bitalg");
#else
  return false;
#endif
}

bool avx2_supported() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

SimdTarget fastest_target() {
  for (const SimdTarget target : {SimdTarget::kAvx512, SimdTarget::kAvx2, SimdTarget::kNeon}) {
    if (simd_target_supported(target)) return target;
  }
  return SimdTarget::kScalar;
}

}  // namespace

bool simd_target_supported(SimdTarget target) {
  switch (target) {
    case SimdTarget::kScalar:
      return true;
    case SimdTarget::kAvx2:
      return avx2_supported();
    case SimdTarget::kAvx512:
      return avx512_supported();
    case SimdTarget::kNeon:
#if defined(__aarch64__)
      return true;
#else
      return false;
#endif
  }
  return false;
}

SimdTarget best_simd_target() {
  static const SimdTarget fastest = fastest_target();
  const int forced = forced_target.load(std::memory_order_relaxed);
  return forced == kNotForced ? fastest : static_cast<SimdTarget>(forced);
}

const char* simd_target_name(SimdTarget target) {
  switch (target) {
    case SimdTarget::kScalar:
      return "scalar";
    case SimdTarget::kAvx2:
      return "avx2";
    case SimdTarget::kAvx512:
      return "avx512";
    case SimdTarget::kNeon:
      return "neon";
  }
  return "unknown";
}

void force_simd_target(SimdTarget target) {
  if (simd_target_supported(target)) forced_target.store(static_cast<int>(target), std::memory_order_relaxed);
}

void unforce_simd_target() { forced_target.store(kNotForced, std::memory_order_relaxed); }

}  // namespace isobit::cpu
