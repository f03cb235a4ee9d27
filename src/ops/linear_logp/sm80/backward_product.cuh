// The three products of the backward pass (cuda/backward_tiles.h) with mma.sync: the tile and the pipeline of the
// forward kernel (operands.cuh), with other operands and other ends.
//
//   A ---\                          3 stages of 16 KB              registers, 128 a thread
//         > cp.async / loads -> [128 x 32 of A | 128 x 32 of B] -> ldmatrix (transposed) -> mma -> a sink of the
//         product
//   B ---/                                                                                 ^ |
//                                      sums of pieces, in memory <-------------------------+-+ every 8,192 of K
//
// Blocks are persistent: each takes every gridDim.x-th unit, so that the memory in which sums of pieces wait has a
// bound. Only weight can be unaligned; dz and hidden lie in the workspace.
#pragma once

#include "device/ptx/registers.cuh"
#include "device/ptx/synchronize.cuh"
#include "ops/linear_logp/cuda/backward_sums.cuh"
#include "ops/linear_logp/sm80/operands.cuh"

namespace isobit::linear_logp::sm80 {

using cuda::BackwardJob;
using cuda::Product;
using cuda::ProductPlan;
using cuda::Unit;
using cuda::Walk;

// dz of one slice, as Matrix in operands.cuh.
struct DzSource {
  static constexpr int64_t stride = cuda::kDzColumns;  // inside a block of dz, which holds the rows of a stage
  const BackwardJob& job;
  int32_t slice;
  int32_t first;
  int32_t rows;
  int32_t width;

  __device__ __forceinline__ const uint16_t* at(int32_t row, int32_t column) const {
    return job.dz_at(row, slice, column);
  }
};

// Both operands of a product. `rows`: valid rows of the chunk; `depth` is that of the unit.
template <Product kProduct>
__device__ __forceinline__ auto operand_a(const BackwardJob& job, const Unit& unit, int32_t rows, int32_t depth) {
  if constexpr (kProduct == Product::kLogits) {
    return Matrix{job.hidden + job.first_row * job.hidden_stride, job.hidden_stride, unit.row, rows, depth};
  } else if constexpr (kProduct == Product::kHidden) {
    return DzSource{job, unit.slice, unit.row, rows, depth};
  } else {
    return DzSource{job, unit.slice, unit.row, depth, job.slice_pitch};
  }
}
template <Product kProduct>
__device__ __forceinline__ Matrix operand_b(const BackwardJob& job, const Unit& unit, int32_t depth) {
  const Params& p = job.p.forward;
  const auto* const weight = static_cast<const uint16_t*>(p.weight);
  const int64_t first_id = job.first_id + int64_t{unit.slice} * job.slice_ids;
  if constexpr (kProduct == Product::kLogits) {
    return {weight, p.weight_stride, static_cast<int32_t>(first_id) + unit.column, static_cast<int32_t>(p.count),
            depth};
  } else if constexpr (kProduct == Product::kHidden) {
    return {weight + first_id * p.weight_stride, p.weight_stride, unit.column, depth, static_cast<int32_t>(p.width)};
  } else {
    return {job.hidden + job.first_row * job.hidden_stride, job.hidden_stride, unit.column, depth, job.weight_columns};
  }
}

// Everything of one unit: the chains of its pieces, their sum, and what the sink does with it (sinks:
// cuda/backward_sums.cuh). multiply(d, k, steps) is the chain over `steps` stages from k on, from +0. `make_sink`,
// `unit` and `scratch` are asked again after the products: what depends on them would else be computed before, for the
// whole tile, and spilled.
template <Product kProduct, class MakeSink, class Scratch, class Multiply>
__device__ __forceinline__ void finish_unit(const MakeSink& make_sink, const Unit& unit, int32_t depth,
                                            const Scratch& scratch, const Multiply& multiply) {
  float d[2][Config::kIds / 2];
  const int32_t steps = (depth + Config::kDepth - 1) / Config::kDepth;
  const auto now = [&] { return Unit{unit.slice, ptx::not_ahead(unit.row), ptx::not_ahead(unit.column), unit.wide}; };
  if constexpr (kProduct == Product::kLogits) {
    multiply(d, 0, steps);
  } else {
    constexpr int32_t kPieceSteps = kPiece / Config::kDepth;
    int32_t first = 0;
    do {
      const int32_t here = min(steps - first, kPieceSteps);
      multiply(d, first * Config::kDepth, here);
      if (first > 0) {
        make_sink().resume(now(), d, scratch());
      } else if (steps > 0) {
        make_sink().begin(now(), d);
      } else if (make_sink().has_addend()) {
        return;  // whose bytes stay
      }
      first += here;
      if (first < steps) make_sink().keep(now(), d, scratch());
    } while (first < steps);
  }
  make_sink().finish(now(), d);
}

// `aligned`: rows of weight start at multiples of 16 bytes.
template <Product kProduct, class Sink>
__global__ void __launch_bounds__(Config::kThreads, Config::kBlocks)
    product_kernel(const __grid_constant__ BackwardJob job, const __grid_constant__ ProductPlan plan, bool aligned) {
  __shared__ __align__(128) unsigned char shared[Config::kSharedBytes];
  constexpr bool kTransposedA = kProduct == Product::kWeight;
  constexpr bool kTransposedB = kProduct != Product::kLogits;
  const Walk<kProduct> walk(job, plan);
  // Columns lie where the stages are; a unit's products and its sink never overlap.
  const auto make_sink = [&] {
    const int thread = ptx::not_ahead(static_cast<int>(threadIdx.x));
    float* const columns = reinterpret_cast<float*>(shared) + thread / 32 * (cuda::kColumnWords * 32) + thread % 32;
    return Sink(job, walk.rows(), columns);
  };
  const auto scratch = [&] {
    return static_cast<float4*>(job.scratch) + int64_t{blockIdx.x} * (Config::kRows * Config::kIds / 4) +
           ptx::not_ahead(static_cast<int>(threadIdx.x));
  };
  const uint32_t count = walk.count();
  for (uint32_t index = blockIdx.x; index < count; index += gridDim.x) {
    const Unit unit = walk.at(index);
    const int32_t depth = walk.depth(unit);
    // Of the tile. The product for d_weight has no register left to know.
    const int32_t rows = kProduct == Product::kWeight ? INT32_MAX : walk.rows() - unit.row;
    const auto a = operand_a<kProduct>(job, unit, walk.rows(), depth);
    const Matrix b = operand_b<kProduct>(job, unit, depth);
    const auto multiply = [&](float(&d)[2][Config::kIds / 2], int32_t first, int32_t steps) {
      __syncthreads();  // all are done with the columns
      const int thread = ptx::not_ahead(static_cast<int>(threadIdx.x));
      const auto copy = [&](int32_t step, unsigned char* stage) {
        const int32_t k = first + step * Config::kDepth;
        copy_operand<kTransposedA, true>(a, k, stage, thread);
        if (kProduct == Product::kWeight || aligned) {
          copy_operand<kTransposedB, true>(b, k, stage + Config::kOperandBytes, thread);
        } else {
          copy_operand<kTransposedB, false>(b, k, stage + Config::kOperandBytes, thread);
        }
      };
      multiply_tile<numerics::Bf16, kTransposedA, kTransposedB>(d, rows, steps, shared, thread, copy);
    };
    finish_unit<kProduct>(make_sink, unit, depth, scratch, multiply);
  }
}

}  // namespace isobit::linear_logp::sm80
