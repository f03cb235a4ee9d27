// Sizes of the element types of isobit/isobit.h.
#pragma once

#include <isobit/isobit.h>

#include <cstdint>

namespace isobit {

// 0 for ISOBIT_NONE and what is no dtype.
constexpr int64_t dtype_bytes(isobit_dtype dtype) {
  switch (dtype) {
    case ISOBIT_BF16:
    case ISOBIT_FP16:
      return 2;
    case ISOBIT_FP32:
    case ISOBIT_INT32:
      return 4;
    case ISOBIT_INT64:
      return 8;
    case ISOBIT_UINT8:
      return 1;
    default:
      return 0;
  }
}

}  // namespace isobit
