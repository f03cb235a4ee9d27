#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace isobit::checkpoint {

// Element types of the safetensors format; the names in files are those of kDtypes in dtype.cpp.
enum class Dtype {
  kBool,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kI64,
  kU64,
  kF64,
  kC64
};

std::string_view dtype_name(Dtype dtype);
std::size_t dtype_bits(Dtype dtype);
std::optional<Dtype> dtype_from_name(std::string_view name);

}  // namespace isobit::checkpoint
