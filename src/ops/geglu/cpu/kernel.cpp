#include "ops/geglu/cpu/kernel.h"

#include <algorithm>
#include <type_traits>

#include "cpu/parallel_for.h"
#include "ops/geglu/element.h"

namespace isobit::geglu::cpu {
namespace {

// Elements that are converted, computed and converted back at a time: a handful of arrays that stay in L1, with loops
// of constant length, which is what the compiler needs to vectorise them.
constexpr int kBlock = 512;
constexpr int64_t kElementsPerTask = 16384;

template <class Format>
using Storage = std::conditional_t<std::is_same_v<Format, numerics::Fp32>, float, uint16_t>;

template <class Format>
void read(const Storage<Format>* source, int64_t step, int64_t count, float* block) {
  if (step == 1 && count == kBlock) {
    for (int i = 0; i < kBlock; ++i) block[i] = Format::to_float(source[i]);
    return;
  }
  for (int64_t i = 0; i < count; ++i) block[i] = Format::to_float(source[i * step]);
  std::fill(block + count, block + kBlock, 0.0f);
}

template <class Format>
void write(const float* block, int64_t step, int64_t count, Storage<Format>* target) {
  if (step == 1 && count == kBlock) {
    for (int i = 0; i < kBlock; ++i) target[i] = Format::from_float(block[i]);
    return;
  }
  for (int64_t i = 0; i < count; ++i) target[i * step] = Format::from_float(block[i]);
}

template <class Format>
Storage<Format>* at(const Matrix& matrix, int64_t row, int64_t offset) {
  return static_cast<Storage<Format>*>(matrix.data) + row * matrix.row_stride + offset;
}

template <class Format, numerics::Gelu kGelu>
struct Forward {
  // Columns [column, column + count) of a row, count <= kBlock.
  [[gnu::noinline]] static void run(const Params& p, int64_t row, int64_t column, int64_t count) {
    alignas(64) float a[kBlock], b[kBlock];
    read<Format>(at<Format>(p.gate, row, column * p.input_step), p.input_step, count, a);
    read<Format>(at<Format>(p.up, row, column * p.input_step), p.input_step, count, b);
    for (int i = 0; i < kBlock; ++i) a[i] = forward_gelu<Format, kGelu>(a[i]);
    if (p.round_gelu) {
      for (int i = 0; i < kBlock; ++i) a[i] = rounded_to<Format>(a[i]);
    }
    for (int i = 0; i < kBlock; ++i) a[i] = out_of(a[i], b[i]);
    write<Format>(a, 1, count, at<Format>(p.out, row, column));
  }
};

template <class Format, numerics::Gelu kGelu>
struct Backward {
  [[gnu::noinline]] static void run(const Params& p, int64_t row, int64_t column, int64_t count) {
    alignas(64) float a[kBlock], b[kBlock], d[kBlock];
    read<Format>(at<Format>(p.gate, row, column * p.input_step), p.input_step, count, a);
    read<Format>(at<Format>(p.up, row, column * p.input_step), p.input_step, count, b);
    read<Format>(at<Format>(p.out, row, column), 1, count, d);
    for (int i = 0; i < kBlock; ++i) {
      const numerics::GeluAndSlope gelu = backward_gelu<Format, kGelu>(a[i]);
      b[i] = d_gate_of(d[i], b[i], gelu.slope);
      a[i] = gelu.value;
    }
    if (p.round_gelu) {
      for (int i = 0; i < kBlock; ++i) a[i] = rounded_to<Format>(a[i]);
    }
    for (int i = 0; i < kBlock; ++i) a[i] = d_up_of(d[i], a[i]);
    write<Format>(b, p.gradient_step, count, at<Format>(p.d_gate, row, column * p.gradient_step));
    write<Format>(a, p.gradient_step, count, at<Format>(p.d_up, row, column * p.gradient_step));
  }
};

// Tasks are pieces of long rows or groups of short ones.
template <class Direction>
void run_all(const Params& p) {
  const int64_t piece = std::min(p.columns, kElementsPerTask);
  const int64_t pieces = (p.columns + piece - 1) / piece;
  const int64_t group = std::max<int64_t>(kElementsPerTask / piece, 1);
  const int64_t groups = (p.rows + group - 1) / group;
  isobit::cpu::parallel_for(groups * pieces, isobit::cpu::thread_count(p.threads), [&](int64_t task, int) {
    const int64_t begin = task % pieces * piece;
    const int64_t end = std::min(begin + piece, p.columns);
    const int64_t first = task / pieces * group;
    for (int64_t row = first; row < std::min(first + group, p.rows); ++row) {
      for (int64_t column = begin; column < end; column += kBlock) {
        Direction::run(p, row, column, std::min<int64_t>(kBlock, end - column));
      }
    }
  });
}

template <class Format, numerics::Gelu kGelu>
void run_direction(const Params& p) {
  p.backward ? run_all<Backward<Format, kGelu>>(p) : run_all<Forward<Format, kGelu>>(p);
}

template <class Format>
void run_format(const Params& p) {
  p.gelu == numerics::Gelu::kTanh ? run_direction<Format, numerics::Gelu::kTanh>(p)
                                  : run_direction<Format, numerics::Gelu::kErf>(p);
}

}  // namespace

Status run(const Params& params, void*) {
  const Params flat = flattened(params);
  switch (flat.dtype) {
    case ISOBIT_BF16:
      run_format<numerics::Bf16>(flat);
      break;
    case ISOBIT_FP16:
      run_format<numerics::Fp16>(flat);
      break;
    default:
      run_format<numerics::Fp32>(flat);
  }
  return Status();
}

}  // namespace isobit::geglu::cpu
