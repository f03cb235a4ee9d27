// Hands out pieces of a workspace, each aligned to 256 bytes; with a null base it only measures. What no size_t can
// count (the logits of 2^31 rows and as many ids) measures SIZE_MAX, which no workspace has.
#pragma once

#include <cstddef>
#include <cstdint>

namespace isobit::linear_logp::cuda {

class Arena {
 public:
  explicit Arena(void* base) : base_(static_cast<unsigned char*>(base)) {}
  template <class T>
  T* take(int64_t elements) {
    constexpr size_t kAlignment = 256;
    T* const result = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    const auto count = static_cast<size_t>(elements);
    const size_t room = SIZE_MAX - used_;
    const bool countable = room >= kAlignment && count <= (room - kAlignment) / sizeof(T);
    used_ = countable ? used_ + (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment : SIZE_MAX;
    return result;
  }
  size_t used() const { return used_; }

 private:
  unsigned char* base_;
  size_t used_ = 0;
};

}  // namespace isobit::linear_logp::cuda
