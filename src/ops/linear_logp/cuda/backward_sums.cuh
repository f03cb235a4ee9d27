// What becomes of a tile of d_hidden or d_weight: the sinks of Product::kHidden and kWeight, whatever instruction made
// the tile. Four warps hold it; Fragment says which rows are whose:
//   d[m][4 j + 2 h + e]   row kWarpRows * warp + kBlockRows * m + 8 h + lane / 4, column 8 j + 2 (lane % 4) + e
#pragma once

#include "device/elements.cuh"
#include "ops/linear_logp/cuda/backward_walk.cuh"
#include "ops/linear_logp/cuda/unit_sum.cuh"

namespace isobit::linear_logp::cuda {

constexpr int kTileThreads = 128;

// This thread's first row of a tile; the others are 8 h + kBlockRows m further, h, m in {0, 1}.
template <class Fragment>
__device__ __forceinline__ int32_t first_row_of(const Unit& unit) {
  return unit.row + threadIdx.x % kTileThreads / kWarpThreads * Fragment::kWarpRows + threadIdx.x % kWarpThreads / 4;
}

// Calls f(row, column, even, odd) for the pairs of neighbouring columns that this thread holds, rows below `rows`.
template <class Fragment, int kAccumulators, class F>
__device__ __forceinline__ void for_each_pair(const Unit& unit, float (&d)[2][kAccumulators], int32_t rows,
                                              const F& f) {
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int32_t row = first_row_of<Fragment>(unit) + Fragment::kBlockRows * m + 8 * h;
      if (row >= rows) continue;
#pragma unroll
      for (int j = 0; j < kAccumulators / 4; ++j) {
        f(row, unit.column + 8 * j + 2 * static_cast<int>(threadIdx.x % 4), d[m][4 * j + 2 * h],
          d[m][4 * j + 2 * h + 1]);
      }
    }
  }
}

// Words of bf16 columns 8 j + 2 q and 8 (j + 1) + 2 q of a quad's row: neighbouring lanes exchange them, so that a quad
// stores 32 bytes side by side. This lane then has four columns from quad_column() on, counted from 8 j.
__device__ __forceinline__ uint2 exchange_words(uint32_t first, uint32_t second) {
  const bool even = threadIdx.x % 2 == 0;
  const uint32_t other = __shfl_xor_sync(kWarp, even ? second : first, 1);
  return make_uint2(even ? first : other, even ? other : second);
}
__device__ __forceinline__ int quad_column() { return threadIdx.x % 2 * 8 + threadIdx.x % 4 / 2 * 4; }

// Calls f(row, column, value&) for single elements, rows below `rows` and columns below `columns`, from a rolled loop
// by way of 16 words of shared memory: for what would otherwise repeat much code per register.
template <class Fragment, bool kWrites, int kAccumulators, class F>
__device__ __forceinline__ void for_each_element(const Unit& unit, float (&d)[2][kAccumulators], int32_t rows,
                                                 int32_t columns, float* words, const F& f) {
  constexpr int kWords = 16;
  constexpr int kParts = kAccumulators / 2 / kWords;  // of a row
#pragma unroll 1
  for (int index = 0; index < 4 * kParts; ++index) {
    if (unit.column + index % kParts * (4 * kWords) >= columns) continue;
    const auto copy = [&](auto move) {
#pragma unroll
      for (int i = 0; i < 4 * kParts; ++i) {
        if (i != index) continue;
#pragma unroll
        for (int w = 0; w < kWords; ++w) {
          const int j = i % kParts * (kWords / 2) + w / 2;
          move(d[i / kParts / 2][4 * j + 2 * (i / kParts % 2) + w % 2], words[w * kWarpThreads]);
        }
      }
    };
    copy([](float& element, float& word) { word = element; });
    const int32_t row =
        first_row_of<Fragment>(unit) + Fragment::kBlockRows * (index / kParts / 2) + 8 * (index / kParts % 2);
    const int32_t column = unit.column + index % kParts * (4 * kWords) + 2 * static_cast<int>(threadIdx.x % 4);
#pragma unroll 1
    for (int w = 0; w < kWords && row < rows; ++w) f(row, column + w / 2 * 8 + w % 2, words[w * kWarpThreads]);
    if constexpr (kWrites) copy([](float& element, float& word) { element = word; });
  }
}

// Sums of pieces in memory that only these four warps touch, 16 bytes a thread side by side.
template <int kAccumulators>
__device__ __forceinline__ void keep_sums(const float (&d)[2][kAccumulators], float4* scratch) {
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int i = 0; i < kAccumulators; i += 4) {
      scratch[(m * kAccumulators + i) / 4 * kTileThreads] = make_float4(d[m][i], d[m][i + 1], d[m][i + 2], d[m][i + 3]);
    }
  }
}
template <int kAccumulators>
__device__ __forceinline__ void add_to_sums(float (&d)[2][kAccumulators], const float4* scratch) {
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int i = 0; i < kAccumulators; i += 4) {
      const float4 sum = scratch[(m * kAccumulators + i) / 4 * kTileThreads];
      d[m][i] = numerics::add_rn(sum.x, d[m][i]);
      d[m][i + 1] = numerics::add_rn(sum.y, d[m][i + 1]);
      d[m][i + 2] = numerics::add_rn(sum.z, d[m][i + 2]);
      d[m][i + 3] = numerics::add_rn(sum.w, d[m][i + 3]);
    }
  }
}

// A segment's d_hidden to the workspace, whose rows have room for whole pairs.
template <class Fragment>
struct HiddenSink {
  const BackwardJob& job;
  int32_t rows;

  __device__ __forceinline__ HiddenSink(const BackwardJob& of, int32_t rows_here, float*) : job(of), rows(rows_here) {}

  static __device__ __forceinline__ bool has_addend() { return false; }
  template <int kAccumulators>
  __device__ __forceinline__ void begin(const Unit&, float (&)[2][kAccumulators]) const {}

  template <int kAccumulators>
  __device__ __forceinline__ void finish(const Unit& unit, float (&d)[2][kAccumulators]) const {
    for_each_place(unit, d, [](float2& place, float& even, float& odd) { place = make_float2(even, odd); });
  }
  // Sums of pieces wait where the segment's sum will be.
  template <int kAccumulators>
  __device__ __forceinline__ void keep(const Unit& unit, float (&d)[2][kAccumulators], float4*) const {
    finish(unit, d);
  }
  template <int kAccumulators>
  __device__ __forceinline__ void resume(const Unit& unit, float (&d)[2][kAccumulators], float4*) const {
    for_each_place(unit, d, [](const float2& place, float& even, float& odd) {
      even = numerics::add_rn(place.x, even);
      odd = numerics::add_rn(place.y, odd);
    });
  }

 private:
  template <int kAccumulators, class F>
  __device__ __forceinline__ void for_each_place(const Unit& unit, float (&d)[2][kAccumulators], const F& f) const {
    const auto stride = static_cast<int32_t>(job.partial_stride);
    const int32_t column = unit.column + 2 * static_cast<int>(threadIdx.x % 4);
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int32_t row = first_row_of<Fragment>(unit) + Fragment::kBlockRows * m + 8 * h;
        if (row >= rows) continue;
        float* const place = job.partial + (int64_t{unit.slice} * job.rows + row) * stride + column;
#pragma unroll
        for (int j = 0; j < kAccumulators / 4; ++j) {
          if (column + 8 * j >= stride) break;
          f(*reinterpret_cast<float2*>(place + 8 * j), d[m][4 * j + 2 * h], d[m][4 * j + 2 * h + 1]);
        }
      }
    }
  }
};

// d_weight and, in column H, d_bias, to the caller's tensors.
template <class Fragment>
struct WeightSink {
  const BackwardJob& job;
  float* words;

  __device__ __forceinline__ WeightSink(const BackwardJob& of, int32_t, float* columns) : job(of), words(columns) {}

  // The buffer is the first addend of a sum that accumulates, and what earlier rows of this call have left.
  __device__ __forceinline__ bool has_addend() const { return job.p.accumulate || job.first_row > 0; }

  template <int kAccumulators>
  __device__ __forceinline__ void begin(const Unit& unit, float (&d)[2][kAccumulators]) const {
    if (!has_addend()) return;
    if (in_pairs(unit, 2 * kAccumulators)) {
      for_each_pair<Fragment>(unit, d, ids(unit), [&](int32_t row, int32_t column, float& even, float& odd) {
        const float2 sum = *reinterpret_cast<const float2*>(weight<float>(unit, row) + column);
        even = numerics::add_rn(sum.x, even);
        odd = numerics::add_rn(sum.y, odd);
      });
    } else {
      for_each_element<Fragment, true>(unit, d, ids(unit), INT32_MAX, words,
                                       [&](int32_t row, int32_t column, float& value) {
                                         const GradientOutput from = place(unit, row, column);
                                         if (from.data != nullptr)
                                           value = numerics::add_rn(*static_cast<const float*>(from.data), value);
                                       });
    }
  }

  template <int kAccumulators>
  __device__ __forceinline__ void keep(const Unit&, float (&d)[2][kAccumulators], float4* scratch) const {
    keep_sums(d, scratch);
  }
  template <int kAccumulators>
  __device__ __forceinline__ void resume(const Unit&, float (&d)[2][kAccumulators], const float4* scratch) const {
    add_to_sums(d, scratch);
  }

  template <int kAccumulators>
  __device__ __forceinline__ void finish(const Unit& unit, float (&d)[2][kAccumulators]) const {
    if (!in_pairs(unit, 2 * kAccumulators)) {
      for_each_element<Fragment, false>(unit, d, ids(unit), INT32_MAX, words,
                                        [&](int32_t row, int32_t column, float value) {
                                          const GradientOutput to = place(unit, row, column);
                                          if (to.data == nullptr) return;
                                          if (to.dtype == ISOBIT_FP32) {
                                            *static_cast<float*>(to.data) = numerics::canonical_nan(value);
                                          } else {
                                            *static_cast<uint16_t*>(to.data) = numerics::bf16_from_float(value);
                                          }
                                        });
    } else if (job.p.d_weight.dtype == ISOBIT_FP32) {
      for_each_pair<Fragment>(unit, d, ids(unit), [&](int32_t row, int32_t column, float even, float odd) {
        *reinterpret_cast<float2*>(weight<float>(unit, row) + column) =
            make_float2(numerics::canonical_nan(even), numerics::canonical_nan(odd));
      });
    } else {
      store_words(unit, d);
    }
  }

 private:
  // Existing ids of the unit's slice, and the row of d_weight.
  __device__ __forceinline__ int32_t ids(const Unit& unit) const { return job.ids_of(unit.slice); }
  __device__ __forceinline__ int64_t id(const Unit& unit, int32_t row) const {
    return job.first_id + int64_t{unit.slice} * job.slice_ids + row;
  }
  // Whether all of the tile's columns are d_weight's and can be stored 8 bytes at a time.
  __device__ __forceinline__ bool in_pairs(const Unit& unit, int columns) const {
    const GradientOutput& to = job.p.d_weight;
    return to.data != nullptr && to.stride % (to.dtype == ISOBIT_FP32 ? 2 : 4) == 0 &&
           reinterpret_cast<uintptr_t>(to.data) % 8 == 0 && unit.column + columns <= job.p.forward.width;
  }
  template <int kAccumulators>
  __device__ __forceinline__ void store_words(const Unit& unit, float (&d)[2][kAccumulators]) const {
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int32_t row = first_row_of<Fragment>(unit) + Fragment::kBlockRows * m + 8 * h;
        uint16_t* const to = weight<uint16_t>(unit, row) + unit.column + quad_column();
#pragma unroll
        for (int j = 0; j < kAccumulators / 4; j += 2) {
          const float first[2] = {d[m][4 * j + 2 * h], d[m][4 * j + 2 * h + 1]};
          const float second[2] = {d[m][4 * j + 4 + 2 * h], d[m][4 * j + 5 + 2 * h]};
          const uint2 words =
              exchange_words(device::Words<numerics::Bf16>::pack(first), device::Words<numerics::Bf16>::pack(second));
          if (row < ids(unit)) *reinterpret_cast<uint2*>(to + 8 * j) = words;
        }
      }
    }
  }
  template <class T>
  __device__ __forceinline__ T* weight(const Unit& unit, int32_t row) const {
    return static_cast<T*>(job.p.d_weight.data) + id(unit, row) * job.p.d_weight.stride;
  }
  // Where an element goes; data is nullptr if nowhere.
  __device__ __forceinline__ GradientOutput place(const Unit& unit, int32_t row, int32_t column) const {
    const auto width = static_cast<int32_t>(job.p.forward.width);
    GradientOutput to = column < width ? job.p.d_weight : column == width ? job.p.d_bias : GradientOutput{};
    if (to.data == nullptr) return to;
    const int64_t offset = id(unit, row) * to.stride + (column < width ? column : 0);
    to.data = static_cast<unsigned char*>(to.data) + offset * (to.dtype == ISOBIT_FP32 ? 4 : 2);
    return to;
  }
};

}  // namespace isobit::linear_logp::cuda
