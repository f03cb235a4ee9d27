// Runs a test body on every SIMD target of this machine.
#pragma once

#include <gtest/gtest.h>

#include "cpu/simd_target.h"

namespace isobit::cpu::test {

template <class Body>
void for_each_target(const Body& body) {
  for (const SimdTarget target : {SimdTarget::kScalar, SimdTarget::kAvx2, SimdTarget::kAvx512, SimdTarget::kNeon}) {
    if (!simd_target_supported(target)) continue;
    SCOPED_TRACE(simd_target_name(target));
    force_simd_target(target);
    ASSERT_EQ(best_simd_target(), target);
    body();
    unforce_simd_target();
  }
}

}  // namespace isobit::cpu::test
