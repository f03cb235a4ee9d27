// What the fuzzers of linear_logp.h share: argument structs out of the fuzzer's bytes, over memory that is watched.
#pragma once

#include <isobit/linear_logp.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <vector>

namespace isobit::fuzz {

inline void require(bool holds) {
  if (!holds) std::abort();
}

// Hands out the fuzzer's bytes; zeros after their end.
class Source {
 public:
  Source(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  template <class T>
  T raw() {
    T value{};
    const size_t count = std::min(sizeof(T), size_);
    std::memcpy(&value, data_, count);
    data_ += count;
    size_ -= count;
    return value;
  }

  // Mostly small numbers and limits: uniform 64-bit values would all fail the first check.
  int64_t number() {
    static constexpr int64_t kEdges[] = {0,
                                         1,
                                         2,
                                         3,
                                         16,
                                         63,
                                         64,
                                         65,
                                         128,
                                         1000,
                                         -1,
                                         -100,
                                         INT64_MAX,
                                         INT64_MIN,
                                         INT32_MAX,
                                         int64_t{1} << 31,
                                         int64_t{1} << 40};
    const auto choice = raw<uint8_t>();
    if (choice < 128) return choice % 9;
    if (choice < 240) return kEdges[choice % std::size(kEdges)];
    return raw<int64_t>();
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

// Elements of the widest type that a view may span in calls that touch memory.
constexpr int64_t kElements = 64;

// One block of memory for all tensors of a call; each view gets a part of its own.
class Arena {
 public:
  static constexpr size_t kPart = 8 * kElements;
  static constexpr size_t kBytes = 20 * kPart + 8;

  void* part() { return memory_.data() + kPart * next_++; }
  const std::vector<uint8_t>& bytes() const { return memory_; }

 private:
  std::vector<uint8_t> memory_ = std::vector<uint8_t>(kBytes, 0x11);
  size_t next_ = 0;
};

// Bytes from the first to past the last element, or nothing if that is not a small number.
inline bool fits_part(const isobit_tensor& t) {
  int64_t last = 0;
  for (int32_t i = 0; i < std::clamp(t.rank, 0, 4); ++i) {
    if (t.shape[i] < 0 || t.shape[i] > kElements || t.stride[i] < 0 || t.stride[i] > kElements) return false;
    if (t.shape[i] == 0) return true;
    last += (t.shape[i] - 1) * t.stride[i];
  }
  return last < kElements;
}

inline isobit_tensor tensor(Source& source, Arena& arena) {
  isobit_tensor t{};
  const auto flags = source.raw<uint8_t>();
  if (flags % 4 == 0) return t;  // absent
  t.dtype = flags % 8 == 1 ? static_cast<int32_t>(source.number()) : flags / 8 % 7;
  t.device_type = flags % 16 == 2 ? static_cast<int32_t>(source.number()) : ISOBIT_CPU;
  t.device_id = flags % 32 == 3 ? static_cast<int32_t>(source.number()) : 0;
  t.rank = flags % 64 == 5 ? static_cast<int32_t>(source.number()) : flags % 3;
  for (int i = 0; i < 4; ++i) t.shape[i] = source.number();
  for (int i = 0; i < 4; ++i) t.stride[i] = source.number();
  if (flags % 2 == 1) {  // the ordinary layout, so that later checks are reached
    t.stride[1] = 1;
    t.stride[0] = t.rank == 2 ? std::clamp<int64_t>(t.shape[1], 0, kElements) : 1;
  }
  char* data = static_cast<char*>(arena.part());
  t.data = flags % 128 == 6 ? nullptr : data + (flags % 128 == 7 ? 1 : 0);
  return t;
}

// Queries walk the vocabulary's nodes, so billions of ids cost milliseconds each time: counts are small, or too large
// for the contract (limits themselves are cases of its own test).
inline int64_t few_or_too_many(int64_t ids) {
  constexpr int64_t kFew = int64_t{1} << 14;
  return ids > kFew && ids <= INT32_MAX ? ids % kFew : ids;
}

inline isobit_linear_logp_args arguments(Source& source, Arena& arena) {
  isobit_linear_logp_args args = ISOBIT_LINEAR_LOGP_ARGS_INIT;
  const auto flags = source.raw<uint16_t>();
  static constexpr const char* kKernels[] = {nullptr, nullptr, "cpu", "sm90", "none", ""};
  if (flags & 1) args.struct_size = source.raw<uint32_t>();
  args.threads = flags & 2 ? std::min(static_cast<int32_t>(source.number()), 1) : 1;
  args.kernel = kKernels[flags / 4 % std::size(kKernels)];
  for (isobit_tensor* t : {&args.hidden, &args.weight, &args.bias, &args.target, &args.temperature, &args.logp,
                           &args.lse, &args.entropy, &args.rank, &args.target_logit, &args.top_id, &args.top_logp}) {
    *t = tensor(source, arena);
  }
  if (flags & 32) args.first_id = few_or_too_many(source.number());
  args.vocab_size = few_or_too_many(source.number());
  args.weight.shape[0] = few_or_too_many(args.weight.shape[0]);
  args.ignore_index = source.number();
  args.use_ignore_index = flags & 64 ? static_cast<int32_t>(source.number()) : 1;
  if (flags & 128) args.temperature_value = source.raw<float>();
  if (flags & 256) args.softcap = source.raw<float>();
  if (flags & 512) args.reserved = source.raw<int32_t>();
  return args;
}

// A legal call over views larger than their part would read outside it: the caller's fault, not the library's.
inline bool all_fit(const isobit_linear_logp_args& args) {
  for (const isobit_tensor* t :
       {&args.hidden, &args.weight, &args.bias, &args.target, &args.temperature, &args.logp, &args.lse, &args.entropy,
        &args.rank, &args.target_logit, &args.top_id, &args.top_logp}) {
    if (t->dtype != ISOBIT_NONE && !fits_part(*t)) return false;
  }
  return true;
}

inline void check_status(isobit_status status) {
  require(status >= ISOBIT_OK && status <= ISOBIT_INTERNAL_ERROR && status != ISOBIT_INTERNAL_ERROR);
  if (status == ISOBIT_OK) return;
  const char* message = isobit_last_error();
  require(message != nullptr && message[0] != '\0');
}

template <class Call>
isobit_status guarded(const Arena& arena, const std::vector<uint8_t>& before, const Call& call) {
  const isobit_status status = call();
  check_status(status);
  if (status != ISOBIT_OK) require(arena.bytes() == before);
  return status;
}

// Memory of that many bytes, aligned as a workspace has to be.
using Workspace = std::unique_ptr<void, decltype(&std::free)>;
inline Workspace workspace_of(size_t bytes) {
  return Workspace(std::aligned_alloc(256, (bytes + 255) / 256 * 256 + 256), &std::free);
}

}  // namespace isobit::fuzz
