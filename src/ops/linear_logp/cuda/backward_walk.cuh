// Which tiles a product has to make, in which order, and how deep they are.
#pragma once

#include "device/tile_order.h"
#include "ops/linear_logp/cuda/backward_job.h"
#include "ops/linear_logp/cuda/backward_tiles.h"

namespace isobit::linear_logp::cuda {

// Every role of a block asks the same object.
template <Product kProduct>
class Walk {
 public:
  __device__ __forceinline__ Walk(const BackwardJob& job, const ProductPlan& plan) : job_(job), plan_(plan) {
    const int64_t left = int64_t{*job.valid} - job.first_row;
    rows_ = static_cast<int32_t>(left < 0 ? 0 : left < job.rows ? left : job.rows);
  }

  // Valid rows of the chunk.
  __device__ __forceinline__ int32_t rows() const { return rows_; }
  __device__ __forceinline__ uint32_t count() const {
    return static_cast<uint32_t>(row_tiles() * plan_.columns.count() * plan_.slices);
  }
  __device__ __forceinline__ Unit at(uint32_t index) const {
    if constexpr (kProduct == Product::kHidden) {
      // Wide tiles of all slices first: units are long, and what is left over for the last ones is then short.
      const auto all_wide = static_cast<uint32_t>(row_tiles() * plan_.columns.wide * plan_.slices);
      const bool wide = index < all_wide;
      return at(wide ? index : index - all_wide, wide ? 0 : plan_.columns.wide,
                wide ? plan_.columns.wide : plan_.columns.narrow);
    }
    return at(index, 0, plan_.columns.count());
  }
  // Elements along K of a unit.
  __device__ __forceinline__ int32_t depth(const Unit& unit) const {
    return kProduct == Product::kLogits   ? static_cast<int32_t>(job_.p.forward.width)
           : kProduct == Product::kHidden ? job_.ids_of(unit.slice)
                                          : rows_;
  }
  // The most that a unit has.
  __device__ __forceinline__ int32_t largest_depth() const {
    return kProduct == Product::kHidden ? job_.slice_ids : depth({});
  }

 private:
  __device__ __forceinline__ int32_t row_tiles() const {
    return ((kProduct == Product::kWeight ? job_.slice_ids : rows_) + kTileRows - 1) / kTileRows;
  }
  __device__ __forceinline__ Unit at(uint32_t index, int32_t first_column, int32_t column_tiles) const {
    const device::TileOrder order{row_tiles(), column_tiles, plan_.group};
    const auto tiles = static_cast<uint32_t>(order.count());
    const device::TileOrder::Tile tile = order.at(index % tiles);
    const int32_t column = first_column + tile.column;
    return {static_cast<int32_t>(index / tiles), tile.row * kTileRows, plan_.columns.first(column),
            plan_.columns.is_wide(column)};
  }

  const BackwardJob& job_;
  const ProductPlan& plan_;
  int32_t rows_;
};

}  // namespace isobit::linear_logp::cuda
