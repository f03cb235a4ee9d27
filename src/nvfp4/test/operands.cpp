#include "nvfp4/test/operands.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "numerics/bf16.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/scale_layout.h"

namespace isobit::test {
namespace {

constexpr size_t kGuard = 256;

numerics::ScaleLayout layout_of(const PackedShape& shape) { return static_cast<numerics::ScaleLayout>(shape.layout); }

}  // namespace

size_t Arena::place(size_t size, size_t offset) {
  const size_t begin = (bytes.size() + kGuard + 255) / 256 * 256 + offset;
  bytes.resize(begin + size + kGuard, kPoison);
  output_.resize(bytes.size(), false);
  return begin;
}

void Arena::mark_output(size_t begin, size_t size) {
  std::fill_n(output_.begin() + static_cast<int64_t>(begin), size, true);
}

void Arena::seal() {
  poison_outputs();
  sealed_ = bytes;
}

void Arena::poison_outputs() {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (output_[i]) bytes[i] = kPoison;
  }
}

std::string Arena::stray_write() const {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!output_[i] && bytes[i] != sealed_[i]) return "byte " + std::to_string(i) + " of the arena was written";
  }
  return "";
}

Packed::Packed(Arena* arena, const PackedShape& shape) : arena_(arena), shape_(shape) {
  codes_size_ = static_cast<size_t>(shape.rows * (shape.k / 2 + shape.row_padding));
  scales_size_ = static_cast<size_t>(numerics::scale_buffer_size(layout_of(shape), shape.rows, shape.k / 16));
  codes_ = arena->place(codes_size_, shape.offset);
  scales_ = arena->place(scales_size_);
}

void Packed::fill(Random* random, ScaleValues values) {
  std::memset(at(scales_), 0x7F, scales_size_);
  for (int64_t row = 0; row < shape_.rows; ++row) {
    for (int64_t i = 0; i < shape_.k / 2; ++i) *code_byte(row, 2 * i) = static_cast<uint8_t>(random->bits());
    for (int64_t block = 0; block < shape_.k / 16; ++block) {
      const auto any = static_cast<uint8_t>(random->bits());
      if (values == ScaleValues::kExact || values == ScaleValues::kWide) {
        *scale_byte(row, block) = values == ScaleValues::kExact ? 0x30 + any % 3 * 8 : 0x08 + any % 0x70;
        continue;
      }
      *scale_byte(row, block) = values == ScaleValues::kAny && random->bits() % 4 == 0 ? any : 0x20 + any % 32;
    }
  }
}

void Packed::mark_output() {
  for (int64_t row = 0; row < shape_.rows; ++row) {
    arena_->mark_output(codes_ + static_cast<size_t>(row * (shape_.k / 2 + shape_.row_padding)),
                        static_cast<size_t>(shape_.k / 2));
  }
  arena_->mark_output(scales_, scales_size_);
}

isobit_nvfp4_matrix Packed::view(void* base, Device device) const {
  const auto tensor = [&](size_t place, int64_t rows, int64_t columns, int64_t stride) {
    return isobit_tensor{
        static_cast<std::byte*>(base) + place, ISOBIT_UINT8, device.type, device.id, 2, {rows, columns}, {stride, 1}};
  };
  isobit_nvfp4_matrix matrix = {};
  int64_t rows = 0, blocks = 0;
  isobit_nvfp4_scales_shape(shape_.layout, shape_.rows, shape_.k, &rows, &blocks);
  matrix.codes = tensor(codes_, shape_.rows, shape_.k / 2, shape_.k / 2 + shape_.row_padding);
  matrix.scales = tensor(scales_, rows, blocks, blocks);
  matrix.layout = shape_.layout;
  return matrix;
}

uint8_t* Packed::code_byte(int64_t row, int64_t column) const {
  return at(codes_ + static_cast<size_t>(row * (shape_.k / 2 + shape_.row_padding) + column / 2));
}

uint8_t* Packed::scale_byte(int64_t row, int64_t block) const {
  return at(scales_ + static_cast<size_t>(numerics::scale_offset(layout_of(shape_), row, block, shape_.k / 16)));
}

uint8_t Packed::code(int64_t row, int64_t column) const {
  return static_cast<uint8_t>(*code_byte(row, column) >> (column % 2 * 4) & 15);
}

uint8_t Packed::scale(int64_t row, int64_t block) const { return *scale_byte(row, block); }

void Packed::set_scale(int64_t row, int64_t block, uint8_t value) { *scale_byte(row, block) = value; }

void Packed::copy_row(int64_t row, const Packed& from, int64_t from_row) {
  for (int64_t i = 0; i < shape_.k / 2; ++i) *code_byte(row, 2 * i) = *from.code_byte(from_row, 2 * i);
  for (int64_t block = 0; block < shape_.k / 16; ++block) *scale_byte(row, block) = from.scale(from_row, block);
}

std::vector<double> Packed::values() const {
  std::vector<double> out;
  for (int64_t row = 0; row < shape_.rows; ++row) {
    for (int64_t column = 0; column < shape_.k; ++column) {
      out.push_back(static_cast<double>(numerics::e2m1_to_float(code(row, column))) *
                    static_cast<double>(numerics::e4m3_to_float(scale(row, column / 16))));
    }
  }
  return out;
}

std::vector<uint16_t> Packed::bf16() const {
  std::vector<uint16_t> out;
  for (const double value : values()) out.push_back(numerics::bf16_from_float(static_cast<float>(value)));
  return out;
}

std::string Packed::row_bytes(int64_t row) const {
  std::string out;
  for (int64_t i = 0; i < shape_.k / 2; ++i) out.push_back(static_cast<char>(*code_byte(row, 2 * i)));
  for (int64_t block = 0; block < shape_.k / 16; ++block) out.push_back(static_cast<char>(scale(row, block)));
  return out;
}

std::string Packed::dirty_padding() const {
  std::vector<bool> used(scales_size_, false);
  for (int64_t row = 0; row < shape_.rows; ++row) {
    for (int64_t block = 0; block < shape_.k / 16; ++block) {
      used[static_cast<size_t>(scale_byte(row, block) - at(scales_))] = true;
    }
  }
  for (size_t i = 0; i < scales_size_; ++i) {
    if (!used[i] && *at(scales_ + i) != 0) return "padding byte " + std::to_string(i) + " is not 0";
  }
  return "";
}

isobit_nvfp4_scale GlobalScale::view(void* base, Device device) const {
  isobit_nvfp4_scale scale = {};
  scale.value = value;
  if (place != 0) {
    scale.tensor = {static_cast<std::byte*>(base) + place, ISOBIT_FP32, device.type, device.id, 0, {}, {}};
    scale.value = 0.0f;
  }
  return scale;
}

GlobalScale device_scale(Arena* arena, float value) {
  const GlobalScale scale = {value, arena->place(sizeof(float), 4)};
  std::memcpy(arena->bytes.data() + scale.place, &value, sizeof value);
  return scale;
}

}  // namespace isobit::test
