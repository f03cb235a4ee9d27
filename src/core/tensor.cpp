#include "core/tensor.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace isobit {
namespace {

constexpr int kMaxRank = 4;

template <class T>
bool contains(std::initializer_list<T> list, T value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// "bf16 or fp16" into a fixed buffer.
template <class T, class Name>
std::array<char, 96> join(std::initializer_list<T> list, Name name) {
  std::array<char, 96> text = {};
  size_t length = 0;
  for (const T& item : list) {
    char word[24];
    name(item, word, sizeof word);
    length += std::snprintf(text.data() + length, text.size() - length, "%s%s", length == 0 ? "" : " or ", word);
    length = std::min(length, text.size() - 1);
  }
  return text;
}

// Largest element offset of the view, or false if it (in bytes) does not fit 62 bits.
bool largest_offset(const isobit_tensor& tensor, int64_t* offset) {
  constexpr __int128 kLimit = static_cast<__int128>(1) << 62;
  __int128 sum = 0;
  for (int i = 0; i < tensor.rank; ++i) {
    sum += static_cast<__int128>(std::max<int64_t>(tensor.shape[i] - 1, 0)) * tensor.stride[i];
    if (sum > kLimit) return false;  // each time: one product has up to 126 bits, so the next sum cannot overflow
  }
  if ((sum + 1) * dtype_bytes(tensor.dtype) > kLimit) return false;
  *offset = static_cast<int64_t>(sum);
  return true;
}

}  // namespace

const char* dtype_name(isobit_dtype dtype) {
  switch (dtype) {
    case ISOBIT_NONE:
      return "none";
    case ISOBIT_BF16:
      return "bf16";
    case ISOBIT_FP16:
      return "fp16";
    case ISOBIT_FP32:
      return "fp32";
    case ISOBIT_INT32:
      return "int32";
    case ISOBIT_INT64:
      return "int64";
    case ISOBIT_UINT8:
      return "uint8";
    default:
      return "an unknown dtype";
  }
}

Status check_view(const char* name, const isobit_tensor& tensor, std::initializer_list<isobit_dtype> dtypes,
                  std::initializer_list<int> ranks) {
  if (!contains(dtypes, tensor.dtype)) {
    const auto expected =
        join(dtypes, [](isobit_dtype d, char* word, size_t n) { std::snprintf(word, n, "%s", dtype_name(d)); });
    return refuse(name, expected.data(), "%s (%d)", dtype_name(tensor.dtype), tensor.dtype);
  }
  if (tensor.rank < 0 || tensor.rank > kMaxRank || !contains(ranks, static_cast<int>(tensor.rank))) {
    const auto expected = join(ranks, [](int r, char* word, size_t n) { std::snprintf(word, n, "rank %d", r); });
    return refuse(name, expected.data(), "rank %d", tensor.rank);
  }
  bool empty = false;
  for (int i = 0; i < tensor.rank; ++i) {
    if (tensor.shape[i] < 0) {
      return refuse(name, "no negative size", "shape[%d] = %lld", i, static_cast<long long>(tensor.shape[i]));
    }
    if (tensor.stride[i] < 0) {
      return refuse(name, "no negative stride", "stride[%d] = %lld", i, static_cast<long long>(tensor.stride[i]));
    }
    empty = empty || tensor.shape[i] == 0;
  }
  int64_t offset = 0;
  if (!empty && !largest_offset(tensor, &offset)) return refuse(name, "an extent below 2^62 bytes", "more");
  if (!empty && tensor.data == nullptr) return refuse(name, "data", "a null pointer");
  const auto element_bytes = static_cast<uintptr_t>(dtype_bytes(tensor.dtype));
  if (element_bytes > 1 && reinterpret_cast<uintptr_t>(tensor.data) % element_bytes != 0) {
    return refuse(name, "data aligned to its element", "%p for %s", tensor.data, dtype_name(tensor.dtype));
  }
  return Status();
}

Status check_device(const char* name, const isobit_tensor& tensor, Device device) {
  if (tensor.device_type != ISOBIT_CPU && tensor.device_type != ISOBIT_CUDA) {
    return refuse(name, "device_type ISOBIT_CPU or ISOBIT_CUDA", "%d", tensor.device_type);
  }
  if (tensor.device_type == ISOBIT_CUDA && tensor.device_id < 0) {
    return refuse(name, "device_id 0 or more", "%d", tensor.device_id);
  }
  if (tensor.device_type == device.type && (device.type == ISOBIT_CPU || tensor.device_id == device.id)) {
    return Status();
  }
  char expected[64];
  std::snprintf(expected, sizeof expected, "device %s:%d like the first tensor",
                device.type == ISOBIT_CPU ? "cpu" : "cuda", device.id);
  return refuse(name, expected, "%s:%d", tensor.device_type == ISOBIT_CPU ? "cpu" : "cuda", tensor.device_id);
}

Status check_extent(const char* name, const isobit_tensor& tensor, int dimension, int64_t expected,
                    const char* letter) {
  if (tensor.shape[dimension] == expected) return Status();
  char rule[96];
  std::snprintf(rule, sizeof rule, "shape[%d] = %s = %lld", dimension, letter, static_cast<long long>(expected));
  return refuse(name, rule, "%lld", static_cast<long long>(tensor.shape[dimension]));
}

Status check_unit_stride(const char* name, const isobit_tensor& tensor, int dimension) {
  if (tensor.shape[dimension] <= 1 || tensor.stride[dimension] == 1) return Status();
  return refuse(name, "elements of a row next to each other (last stride 1)", "stride[%d] = %lld", dimension,
                static_cast<long long>(tensor.stride[dimension]));
}

ByteRange byte_range(const isobit_tensor& tensor) {
  // A call may carry views that it has no use for and did not check (hidden in a merge).
  if (!present(tensor) || tensor.rank < 0 || tensor.rank > kMaxRank) return {};
  for (int i = 0; i < tensor.rank; ++i) {
    if (tensor.shape[i] <= 0 || tensor.stride[i] < 0) return {};
  }
  int64_t offset = 0;
  if (!largest_offset(tensor, &offset)) return {};
  const auto begin = reinterpret_cast<uintptr_t>(tensor.data);
  return {begin, begin + static_cast<uintptr_t>((offset + 1) * dtype_bytes(tensor.dtype))};
}

Status check_writable(const char* name, const isobit_tensor& tensor) {
  for (int d = 0; d < tensor.rank; ++d) {
    if (tensor.shape[d] == 0) return Status();  // nothing is written, and nobody has bounded the strides
  }
  // Every dimension must step over the whole extent of the dimensions with smaller strides (ties by index).
  for (int d = 0; d < tensor.rank; ++d) {
    if (tensor.shape[d] <= 1) continue;
    int64_t extent = 1;
    for (int other = 0; other < tensor.rank; ++other) {
      const bool below =
          tensor.stride[other] < tensor.stride[d] || (tensor.stride[other] == tensor.stride[d] && other < d);
      if (other != d && below && tensor.shape[other] > 1) extent += tensor.stride[other] * (tensor.shape[other] - 1);
    }
    if (tensor.stride[d] < extent) {
      return refuse(name, "an output whose elements do not overlap", "stride[%d] = %lld", d,
                    static_cast<long long>(tensor.stride[d]));
    }
  }
  return Status();
}

}  // namespace isobit
