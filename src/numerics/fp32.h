// binary32 as a format, so that code written for a 16-bit format takes fp32 as well.
#pragma once

#include "numerics/bits.h"

namespace isobit::numerics {

struct Fp32 {
  ISOBIT_HD static constexpr float to_float(float x) { return x; }
  ISOBIT_HD static constexpr float from_float(float x) { return canonical_nan(x); }
};

}  // namespace isobit::numerics
