// Runs a test body on every SIMD target of this machine.
#pragma once

#include <gtest/gtest.h>

#include "cpu/simd_target.h"

namespace isobit::linear_logp::test {

template <class Body>
void for_each_target(const Body& body) {
  using isobit::cpu::SimdTarget;
  for (const SimdTarget target : {SimdTarget::kScalar, SimdTarget::kAvx2, SimdTarget::kAvx512, SimdTarget::kNeon}) {
    if (!isobit::cpu::simd_target_supported(target)) continue;
    SCOPED_TRACE(isobit::cpu::simd_target_name(target));
    isobit::cpu::force_simd_target(target);
    body();
    isobit::cpu::unforce_simd_target();
  }
}

}  // namespace isobit::linear_logp::test
