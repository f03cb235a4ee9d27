// Checks of tensor views, shared by every operator's contract. Each returns a refusal that names the argument.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "core/dtype.h"
#include "core/status.h"

namespace isobit {

inline bool present(const isobit_tensor& tensor) { return tensor.dtype != ISOBIT_NONE; }

const char* dtype_name(isobit_dtype dtype);

// Device that a call runs on: taken from its first tensor, required of all others.
struct Device {
  isobit_device_type type = ISOBIT_CPU;
  int32_t id = 0;
  bool operator==(const Device&) const = default;
};

// Rank, non-negative shape and strides, data unless empty, natural alignment, and extents that fit 63 bits.
Status check_view(const char* name, const isobit_tensor& tensor, std::initializer_list<isobit_dtype> dtypes,
                  std::initializer_list<int> ranks);
Status check_device(const char* name, const isobit_tensor& tensor, Device device);
Status check_extent(const char* name, const isobit_tensor& tensor, int dimension, int64_t expected, const char* letter);
Status check_unit_stride(const char* name, const isobit_tensor& tensor, int dimension);

// First and last byte + 1 that a view touches; empty if a dimension is 0.
struct ByteRange {
  uintptr_t begin = 0, end = 0;
  bool overlaps(const ByteRange& other) const { return begin < other.end && other.begin < end; }
};
ByteRange byte_range(const isobit_tensor& tensor);

// No two elements of a written view may share an address.
Status check_writable(const char* name, const isobit_tensor& tensor);

}  // namespace isobit
