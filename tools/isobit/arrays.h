// Arrays of a call: made on the host, placed on a device, seen as isobit_tensor.
#pragma once

#include <isobit/isobit.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "device.h"
#include "numerics/bf16.h"
#include "numerics/fp16.h"

namespace isobit::cli {

using numerics::bf16_from_float;
using numerics::bf16_to_float;
using numerics::fp16_from_float;
using numerics::fp16_to_float;

// "bfloat16", "float16", "float32" (and bf16, fp16, fp32); throws std::invalid_argument for anything else.
isobit_dtype parse_dtype(const std::string& name);
const char* dtype_text(isobit_dtype dtype);  // "bfloat16", ...

// A reproducible value for every (seed, index), roughly normal with standard deviation `scale`.
float random_value(uint64_t seed, uint64_t index, float scale);

// A dense array with its own memory.
class Array {
 public:
  Array() = default;  // absent
  Array(Place place, isobit_dtype dtype, std::vector<int64_t> shape);

  isobit_tensor view() const;  // dense, row-major; an absent array gives an absent tensor
  int64_t elements() const;
  size_t bytes() const { return static_cast<size_t>(elements() * dtype_bytes(dtype_)); }

  // Rounded to the array's dtype (bf16, fp16, fp32).
  void fill_random(uint64_t seed, float scale);
  void fill_integers(std::span<const int64_t> values);  // int32 or int64
  void poison();                                        // every byte 0xA5
  std::vector<unsigned char> download() const;
  std::vector<float> download_floats() const;  // bf16, fp16 or fp32

 private:
  isobit_dtype dtype_ = ISOBIT_NONE;
  Place place_;
  std::vector<int64_t> shape_;
  std::vector<Buffer> buffer_;  // one, or none when absent
};

}  // namespace isobit::cli
