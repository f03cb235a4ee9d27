// Test calls of nvfp4_quantize in one arena of bytes: every operand at its place between guard bytes, so that the arena
// can be copied to wherever the call shall run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "isobit/nvfp4_quantize.h"
#include "nvfp4/test/random.h"

namespace isobit::nvfp4_quantize::test {

using isobit::test::Random;

struct Shape {
  int64_t rows = 1;
  int64_t k = 16;
  isobit_dtype dtype = ISOBIT_BF16;
  isobit_nvfp4_layout layout = ISOBIT_NVFP4_128X4;
  int64_t padding = 0;         // elements between the rows of x
  int64_t codes_padding = 0;   // bytes between the rows of the codes
  int64_t misalignment = 0;    // elements of x off a multiple of 256 bytes
  int64_t codes_offset = 0;    // bytes of the codes off a multiple of 256
  bool device_global = false;  // the global scale is a tensor
  float global = 1.0f;
};

enum class Values {
  kNormal,    // N(0, 1) times a power of two per block in 2^-20 .. 2^10
  kPatterns,  // any bits: NaN, infinities and subnormals too
};

class Problem {
 public:
  Problem(const Shape& shape, Values values, uint64_t seed = 1);

  // Arguments of a call on a copy of the arena at `base`.
  isobit_nvfp4_quantize_args args(void* base, Device device) const;
  isobit_nvfp4_quantize_args args() { return args(arena.data(), {}); }

  // Inputs anew, everything else filled with a pattern.
  void reset();

  // Element (row, column) of x as fp32, and its assignment (rounded to the dtype); valid after the next reset().
  float x(int64_t row, int64_t column) const { return values_[static_cast<size_t>(row * shape_.k + column)]; }
  void set_x(int64_t row, int64_t column, float value);

  // Results in the arena: codes [M, K/2], the scale byte of a block, and the whole scale buffer.
  std::vector<uint8_t> codes() const;
  uint8_t code(int64_t row, int64_t column) const;
  uint8_t scale(int64_t row, int64_t block) const;
  std::vector<uint8_t> scale_buffer() const;

  // "" if every byte that the call may not write is what reset() left; else the first other one.
  std::string stray_write() const;
  // "" if codes, scales and padding are those of the reference.
  std::string difference_from_reference() const;

  const Shape& shape() const { return shape_; }
  std::vector<std::byte> arena;

 private:
  struct Place {
    size_t begin = 0;
    size_t bytes = 0;
  };
  Place place(size_t bytes, size_t offset);
  bool is_output(size_t at) const;

  Shape shape_;
  size_t used_ = 0;
  Place x_, global_, codes_, scales_;
  std::vector<float> values_;
};

}  // namespace isobit::nvfp4_quantize::test
