// NVFP4 operands for tests: packed matrices at their places in one arena of bytes, between guard bytes, so that the
// arena can be copied to wherever a call shall run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "isobit/nvfp4.h"
#include "nvfp4/test/random.h"

namespace isobit::test {

class Arena {
 public:
  static constexpr std::byte kPoison{0xA7};

  // Reserves bytes whose address is a multiple of 256 plus `offset`, with at least 256 poisoned bytes before them.
  size_t place(size_t size, size_t offset = 0);
  // [begin, begin + size) is an output: poisoned again by poison_outputs(), and writing it is no stray write.
  void mark_output(size_t begin, size_t size);

  // To be called when everything has its place and the inputs are written.
  void seal();
  void poison_outputs();
  // "" if no byte but those of outputs changed since seal(); else the first that did.
  std::string stray_write() const;

  std::vector<std::byte> bytes;

 private:
  std::vector<std::byte> sealed_;
  std::vector<bool> output_;
};

enum class ScaleValues {
  kPlain,  // 2^-3 to 2^1
  kExact,  // 2^-1, 1 or 2: products are multiples of 1/16 of at most 144, so sums of 2^12 of them are exact in fp32
  kWide,   // 2^-6 to 2^7: sums of products that fp32 cannot hold
  kAny     // any byte: NaN, negative, subnormal and the largest too
};

struct PackedShape {
  int64_t rows = 1;
  int64_t k = 16;
  isobit_nvfp4_layout layout = ISOBIT_NVFP4_128X4;
  int64_t row_padding = 0;  // bytes between rows of codes
  size_t offset = 0;        // bytes of the codes off a multiple of 256
};

// A packed matrix in an arena. Padding bytes of its scales are NaN, unless it is an output: nobody may use them.
class Packed {
 public:
  Packed(Arena* arena, const PackedShape& shape);
  void fill(Random* random, ScaleValues values);
  void mark_output();
  isobit_nvfp4_matrix view(void* base, Device device) const;

  uint8_t code(int64_t row, int64_t column) const;
  uint8_t scale(int64_t row, int64_t block) const;
  void set_scale(int64_t row, int64_t block, uint8_t value);
  // Copies a row of another matrix of the same k.
  void copy_row(int64_t row, const Packed& from, int64_t from_row);

  std::vector<double> values() const;        // [rows, k], fp64
  std::vector<uint16_t> bf16() const;        // [rows, k], exact
  std::string row_bytes(int64_t row) const;  // codes, then scales in block order
  std::string dirty_padding() const;         // "" if every padding byte of the scales is 0

  const PackedShape& shape() const { return shape_; }

 private:
  uint8_t* at(size_t place) const { return reinterpret_cast<uint8_t*>(arena_->bytes.data()) + place; }
  uint8_t* code_byte(int64_t row, int64_t column) const;
  uint8_t* scale_byte(int64_t row, int64_t block) const;

  Arena* arena_;
  PackedShape shape_;
  size_t codes_ = 0, scales_ = 0, codes_size_ = 0, scales_size_ = 0;
};

// One fp32 in an arena, as a global scale that a call reads when it runs; or by value.
struct GlobalScale {
  float value = 1.0f;
  size_t place = 0;  // 0: by value
  isobit_nvfp4_scale view(void* base, Device device) const;
};
GlobalScale device_scale(Arena* arena, float value);

}  // namespace isobit::test
