// Test calls of geglu in one arena of bytes: every operand at its place, so that the arena can be copied to wherever
// the call shall run. The values of (row, column) do not depend on the layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "isobit/geglu.h"

namespace isobit::geglu::test {

enum class Arrangement { kSeparate, kStacked, kInterleaved };

struct Shape {
  int64_t rows = 1;
  int64_t columns = 1;
  Arrangement inputs = Arrangement::kSeparate;
  Arrangement gradients = Arrangement::kSeparate;
  bool swapped = false;      // up and d_up come before gate and d_gate
  int64_t padding = 0;       // elements behind every row
  int64_t misalignment = 0;  // elements between a 256-byte boundary and each buffer
  bool in_place = false;     // backward: gradients over inputs
};

enum class Values {
  kNormal,    // a ~ 2 N(0, 1), b and d ~ N(0, 1)
  kPatterns,  // any bits: NaN, infinities and subnormals too
  kEveryHalf  // a walks all 65,536 patterns of a 16-bit dtype, b = d = 1
};

class Problem {
 public:
  Problem(isobit_dtype dtype, const Shape& shape, Values values, uint64_t seed = 1);

  // Arguments of a call on a copy of the arena at `base`.
  isobit_geglu_forward_args forward(void* base, Device device, isobit_gelu gelu) const;
  isobit_geglu_backward_args backward(void* base, Device device, isobit_gelu gelu) const;

  // The same on the arena itself.
  isobit_geglu_forward_args forward(isobit_gelu gelu) { return forward(arena.data(), {}, gelu); }
  isobit_geglu_backward_args backward(isobit_gelu gelu) { return backward(arena.data(), {}, gelu); }

  // Raw bits of an operand in the order (row, column).
  std::vector<uint32_t> out() const { return bits(out_); }
  std::vector<uint32_t> gate() const { return bits(gate_); }
  std::vector<uint32_t> d_gate() const { return bits(d_gate_); }
  std::vector<uint32_t> d_up() const { return bits(d_up_); }

  // Inputs anew, everything else filled with a pattern.
  void reset();

  // "" if only the elements of the wanted outputs differ from what reset() left; else the first other byte.
  std::string stray_write(bool backward_outputs) const;

  std::vector<std::byte> arena;

 private:
  struct Place {
    size_t begin = 0;  // bytes
    int64_t row_stride = 0;
    int64_t step = 1;
  };
  void place_pair(Arrangement arrangement, Place* first, Place* second);
  Place place(int64_t row_elements);
  isobit_tensor tensor(const Place& at, void* base, Device device) const;
  void write(const Place& at, const std::vector<uint32_t>& values);
  std::vector<uint32_t> bits(const Place& at) const;

  isobit_dtype dtype_;
  Shape shape_;
  size_t size_;
  size_t used_ = 0;
  Place gate_, up_, out_, d_out_, d_gate_, d_up_;
  std::vector<uint32_t> a_, b_, d_;
};

// Alternating tensors on whole vectors, which take a way of their own: one pair or both, in both orders, gelu rounded
// early or not.
struct CoupleCase {
  Shape shape;
  bool round_gelu;
};
std::vector<CoupleCase> couple_cases(int64_t rows, int64_t columns);

// Value of a raw element.
double value_of(isobit_dtype dtype, uint32_t bits);

// Raw element nearest to a value.
uint32_t bits_of(isobit_dtype dtype, float value);

// First difference of two lists, as text with both values; "" if there is none.
std::string first_difference(isobit_dtype dtype, const std::vector<uint32_t>& got, const std::vector<uint32_t>& wanted);

}  // namespace isobit::geglu::test
