// Hands out pieces of a workspace, each aligned to 256 bytes; with a null base it only measures.
#pragma once

#include <cstddef>
#include <cstdint>

namespace isobit::linear_logp::cuda {

class Arena {
 public:
  explicit Arena(void* base) : base_(static_cast<unsigned char*>(base)) {}
  template <class T>
  T* take(int64_t elements) {
    constexpr int64_t kAlignment = 256;
    T* const result = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ +=
        static_cast<size_t>((elements * static_cast<int64_t>(sizeof(T)) + kAlignment - 1) / kAlignment * kAlignment);
    return result;
  }
  size_t used() const { return used_; }

 private:
  unsigned char* base_;
  size_t used_ = 0;
};

}  // namespace isobit::linear_logp::cuda
