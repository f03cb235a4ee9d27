// The floating-point environment of the calling thread, set for a scope and given back at its end.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace isobit::cpu {

enum class Rounding { kNearest, kTowardZero };

// Sets the rounding, turns flushing of subnormal inputs and results off and masks every trap. The destructor restores
// all of the caller's state, the sticky exception flags included. The compiler may move arithmetic across the change:
// whatever depends on it belongs in a function that is not inlined into the scope.
class FloatEnvironment {
 public:
  explicit FloatEnvironment(Rounding rounding);
  ~FloatEnvironment();
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
#if defined(__x86_64__)
  unsigned saved_;
#else
  std::fenv_t saved_;
#endif
};

#if defined(__x86_64__)

inline FloatEnvironment::FloatEnvironment(Rounding rounding) : saved_(_mm_getcsr()) {
  constexpr unsigned kTrapsMasked = 0x1F80;
  constexpr unsigned kTowardZeroBits = 0x6000;
  _mm_setcsr(rounding == Rounding::kTowardZero ? kTrapsMasked | kTowardZeroBits : kTrapsMasked);
}

inline FloatEnvironment::~FloatEnvironment() { _mm_setcsr(saved_); }

#else

// FPCR, in the C library's environment record: bits 22-23 are the rounding, 24 flush-to-zero, 25 default NaN,
// 19 flush of fp16, 8-15 the traps.
inline FloatEnvironment::FloatEnvironment(Rounding rounding) {
  std::fegetenv(&saved_);
  std::fenv_t wanted = saved_;
  wanted.__fpcr = rounding == Rounding::kTowardZero ? 3u << 22 : 0u;
  std::fesetenv(&wanted);
}

inline FloatEnvironment::~FloatEnvironment() { std::fesetenv(&saved_); }

#endif

}  // namespace isobit::cpu
