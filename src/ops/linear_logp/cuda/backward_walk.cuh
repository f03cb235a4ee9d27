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
  __device__ __forceinline__ Walk(const BackwardJob& job, const ProductPlan& plan)
      : job_(job), columns_(plan.columns), slices_(plan.slices), group_(plan.group) {
    const int64_t left = int64_t{*job.valid} - job.first_row;
    rows_ = static_cast<int32_t>(left < 0 ? 0 : left < job.rows ? left : job.rows);
    const int32_t extent = kProduct == Product::kWeight ? job.slice_ids : rows_;
    row_tiles_ = (extent + kTileRows - 1) / kTileRows;
  }

  // Valid rows of the chunk.
  __device__ __forceinline__ int32_t rows() const { return rows_; }
  __device__ __forceinline__ uint32_t count() const {
    return static_cast<uint32_t>(row_tiles_ * columns_.count()) * slices_;
  }
  __device__ __forceinline__ Unit at(uint32_t index) const {
    if constexpr (kProduct == Product::kHidden) {
      // Wide tiles of all slices first: units are long, and what is left over for the last ones is then short.
      const uint32_t wide = static_cast<uint32_t>(row_tiles_ * columns_.wide) * slices_;
      return index < wide ? at(index, 0, columns_.wide) : at(index - wide, columns_.wide, columns_.narrow);
    }
    return at(index, 0, columns_.count());
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
  __device__ __forceinline__ Unit at(uint32_t index, int32_t first_column, int32_t column_tiles) const {
    const device::TileOrder order{row_tiles_, column_tiles, group_};
    const auto tiles = static_cast<uint32_t>(order.count());
    const device::TileOrder::Tile tile = order.at(index % tiles);
    const int32_t column = first_column + tile.column;
    return {static_cast<int32_t>(index / tiles), tile.row * kTileRows, columns_.first(column),
            columns_.is_wide(column)};
  }

  const BackwardJob& job_;
  ColumnCut columns_;
  uint32_t slices_;
  int32_t group_;
  int32_t rows_;
  int32_t row_tiles_;
};

}  // namespace isobit::linear_logp::cuda
