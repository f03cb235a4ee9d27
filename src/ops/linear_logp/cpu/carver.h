// How the CPU backend cuts the caller's workspace.
#pragma once

#include <cstddef>
#include <cstdint>

namespace isobit::linear_logp::cpu {

// Hands out consecutive pieces of memory, each on a cache line of its own.
class Carver {
 public:
  explicit Carver(void* begin) : begin_(static_cast<char*>(begin)) {}

  template <class T>
  T* take(int64_t count) {
    T* const piece = begin_ == nullptr ? nullptr : reinterpret_cast<T*>(begin_ + used_);
    used_ += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return piece;
  }
  size_t used() const { return used_; }

 private:
  char* begin_;
  size_t used_ = 0;
};

}  // namespace isobit::linear_logp::cpu
