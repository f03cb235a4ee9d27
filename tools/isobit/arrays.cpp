#include "arrays.h"

#include <cstring>
#include <stdexcept>

namespace isobit::cli {
namespace {

// A well-mixed 64-bit hash of a counter (two rounds of multiply and xor-shift).
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

isobit_dtype parse_dtype(const std::string& name) {
  if (name == "bfloat16" || name == "bf16") return ISOBIT_BF16;
  if (name == "float16" || name == "fp16") return ISOBIT_FP16;
  if (name == "float32" || name == "fp32") return ISOBIT_FP32;
  throw std::invalid_argument("--dtype: expected bfloat16, float16 or float32, got \"" + name + "\"");
}

const char* dtype_text(isobit_dtype dtype) {
  switch (dtype) {
    case ISOBIT_BF16:
      return "bfloat16";
    case ISOBIT_FP16:
      return "float16";
    case ISOBIT_FP32:
      return "float32";
    default:
      return "none";
  }
}

float random_value(uint64_t seed, uint64_t index, float scale) {
  const uint64_t bits = mix(mix(seed) ^ index);
  // The sum of four uniform 16-bit integers: variance 4/12 of the unit interval's square.
  int64_t sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<int64_t>((bits >> (16 * i)) & 0xFFFF);
  return scale * static_cast<float>(static_cast<double>(sum - 2 * 0xFFFF) / (65536.0 * 0.57735));
}

Array::Array(Place place, isobit_dtype dtype, std::vector<int64_t> shape)
    : dtype_(dtype), place_(place), shape_(std::move(shape)) {
  buffer_.emplace_back(place, bytes());
}

isobit_tensor Array::view() const {
  isobit_tensor tensor = {};
  if (buffer_.empty()) return tensor;
  tensor.data = buffer_[0].data();
  tensor.dtype = dtype_;
  tensor.device_type = place_.type;
  tensor.device_id = place_.id;
  tensor.rank = static_cast<int32_t>(shape_.size());
  int64_t stride = 1;
  for (size_t i = shape_.size(); i-- > 0;) {
    tensor.shape[i] = shape_[i];
    tensor.stride[i] = stride;
    stride *= shape_[i];
  }
  return tensor;
}

int64_t Array::elements() const {
  if (dtype_ == ISOBIT_NONE) return 0;
  int64_t count = 1;
  for (const int64_t size : shape_) count *= size;
  return count;
}

void Array::fill_random(uint64_t seed, float scale) {
  std::vector<unsigned char> host(bytes());
  for (int64_t i = 0; i < elements(); ++i) {
    const float value = random_value(seed, static_cast<uint64_t>(i), scale);
    if (dtype_ == ISOBIT_FP32) {
      std::memcpy(&host[static_cast<size_t>(i) * 4], &value, 4);
    } else {
      const uint16_t bits = dtype_ == ISOBIT_BF16 ? bf16_from_float(value) : fp16_from_float(value);
      std::memcpy(&host[static_cast<size_t>(i) * 2], &bits, 2);
    }
  }
  buffer_[0].upload(host.data(), host.size());
}

void Array::fill_integers(std::span<const int64_t> values) {
  if (dtype_ == ISOBIT_INT64) {
    buffer_[0].upload(values.data(), values.size_bytes());
    return;
  }
  const std::vector<int32_t> narrow(values.begin(), values.end());
  buffer_[0].upload(narrow.data(), narrow.size() * sizeof(int32_t));
}

void Array::poison() { buffer_[0].fill(0xA5); }

std::vector<unsigned char> Array::download() const {
  std::vector<unsigned char> host(bytes());
  buffer_[0].download(host.data(), host.size());
  return host;
}

std::vector<float> Array::download_floats() const {
  const std::vector<unsigned char> host = download();
  std::vector<float> values(static_cast<size_t>(elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype_ == ISOBIT_FP32) {
      std::memcpy(&values[i], &host[i * 4], 4);
    } else {
      uint16_t bits = 0;
      std::memcpy(&bits, &host[i * 2], 2);
      values[i] = dtype_ == ISOBIT_BF16 ? bf16_to_float(bits) : fp16_to_float(bits);
    }
  }
  return values;
}

}  // namespace isobit::cli
