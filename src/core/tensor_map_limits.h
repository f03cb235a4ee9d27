// What cuTensorMapEncodeTiled refuses although a TensorMapSpec can say it: what takes a call asks before.
#pragma once

#include <cstdint>

namespace isobit {

inline constexpr int64_t kTensorMapStrideLimit = int64_t{1} << 40;  // of bytes between rows, exclusive

}  // namespace isobit
