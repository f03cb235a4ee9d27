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
      : job_(job), columns_(plan.columns), slices_(plan.slices) {
    const int64_t left = int64_t{*job.valid} - job.first_row;
    rows_ = static_cast<int32_t>(left < 0 ? 0 : left < job.rows ? left : job.rows);
    const int32_t extent = kProduct == Product::kWeight ? job.slice_ids : rows_;
    order_ = {(extent + kTileRows - 1) / kTileRows, plan.columns.count(), plan.group};
  }

  // Valid rows of the chunk.
  __device__ __forceinline__ int32_t rows() const { return rows_; }
  __device__ __forceinline__ uint32_t count() const { return static_cast<uint32_t>(order_.count()) * slices_; }
  __device__ __forceinline__ Unit at(uint32_t index) const {
    const auto tiles = static_cast<uint32_t>(order_.count());
    const device::TileOrder::Tile tile = order_.at(index % tiles);
    return {static_cast<int32_t>(index / tiles), tile.row * kTileRows, columns_.first(tile.column),
            columns_.is_wide(tile.column)};
  }
  // Elements along K of a unit.
  __device__ __forceinline__ int32_t depth(const Unit& unit) const {
    return kProduct == Product::kLogits   ? static_cast<int32_t>(job_.p.forward.width)
           : kProduct == Product::kHidden ? job_.ids_of(unit.slice)
                                          : rows_;
  }

 private:
  const BackwardJob& job_;
  ColumnCut columns_;
  uint32_t slices_;
  int32_t rows_;
  device::TileOrder order_;
};

}  // namespace isobit::linear_logp::cuda
