#include "ops/nvfp4_linear/cpu/kernel.h"

#include "numerics/bf16.h"
#include "nvfp4/cpu_product.h"
#include "ops/nvfp4_linear/epilogue.h"

namespace isobit::nvfp4_linear::cpu {
namespace {

isobit::cpu::Nvfp4Product product_of(const Params& p) { return {p.x, p.weight, p.rows, p.columns, p.k, p.threads}; }

float value_of(const Nvfp4ScaleView& scale) { return scale.device != nullptr ? *scale.device : scale.value; }

}  // namespace

Status takes(const Params&, const DeviceProperties&) { return Status(); }

WorkspaceBytes workspace(const Params& params) { return isobit::cpu::workspace_bytes(product_of(params)); }

Status run(const Params& p, void*) {
  const float alpha = alpha_of(value_of(p.x_scale), value_of(p.weight_scale));
  const auto write = [&](int64_t row, int64_t rows, int64_t column, int columns, const float* sums) {
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = (row + r) * p.out_stride + column;
      for (int c = 0; c < columns; ++c) {
        const float y = scaled(sums[r * isobit::cpu::kTileColumns + c], alpha);
        if (p.dtype == ISOBIT_BF16) {
          static_cast<uint16_t*>(p.out)[at + c] = numerics::bf16_from_float(y);
        } else {
          static_cast<float*>(p.out)[at + c] = y;
        }
      }
    }
  };
  isobit::cpu::run_product(product_of(p), p.workspace, p.workspace_bytes, write);
  return Status();
}

}  // namespace isobit::nvfp4_linear::cpu
