#include "ops/nvfp4_geglu/cpu/kernel.h"

#include "nvfp4/cpu_product.h"
#include "ops/nvfp4_geglu/epilogue.h"

namespace isobit::nvfp4_geglu::cpu {
namespace {

using numerics::kNvfp4Block;

isobit::cpu::Nvfp4Product product_of(const Params& p) { return {p.x, p.weight, p.rows, p.columns(), p.k, p.threads}; }

float value_of(const Nvfp4ScaleView& scale) { return scale.device != nullptr ? *scale.device : scale.value; }

// One block of 16 outputs from its 32 sums.
template <numerics::Gelu kGelu>
void write_block(const Params& p, const Scales& scales, int64_t row, int64_t block, const float* sums) {
  float hidden[kNvfp4Block];
  for (int i = 0; i < kNvfp4Block; ++i) hidden[i] = hidden_of<kGelu>(sums[2 * i], sums[2 * i + 1], scales);
  uint32_t packed[2];
  p.out.scales[numerics::scale_offset(p.out.layout, row, block, p.out_blocks())] =
      numerics::nvfp4_encode(scales.out, hidden, packed);
  uint8_t* const codes = p.out.codes + row * p.out.row_stride + block * 8;
  for (int i = 0; i < 8; ++i) codes[i] = static_cast<uint8_t>(packed[i / 4] >> (8 * (i % 4)));
}

void clear_padding(const Params& p) {
  for (int64_t row = 0; row < p.padded_rows(); ++row) {
    for (int64_t block = row < p.rows ? p.out_blocks() : 0; block < p.padded_blocks(); ++block) {
      p.out.scales[numerics::scale_offset(p.out.layout, row, block, p.out_blocks())] = 0;
    }
  }
}

template <numerics::Gelu kGelu>
void run_gelu(const Params& p) {
  const Scales scales =
      scales_of(value_of(p.x_scale), value_of(p.gate_scale), value_of(p.up_scale), value_of(p.out_scale));
  const auto write = [&](int64_t row, int64_t rows, int64_t column, int columns, const float* sums) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; c += 2 * kNvfp4Block) {
        write_block<kGelu>(p, scales, row + r, (column + c) / (2 * kNvfp4Block),
                           sums + r * isobit::cpu::kTileColumns + c);
      }
    }
  };
  isobit::cpu::run_product(product_of(p), p.workspace, p.workspace_bytes, write);
  clear_padding(p);
}

}  // namespace

Status takes(const Params&, const DeviceProperties&) { return Status(); }

WorkspaceBytes workspace(const Params& params) { return isobit::cpu::workspace_bytes(product_of(params)); }

Status run(const Params& params, void*) {
  params.gelu == numerics::Gelu::kTanh ? run_gelu<numerics::Gelu::kTanh>(params)
                                       : run_gelu<numerics::Gelu::kErf>(params);
  return Status();
}

}  // namespace isobit::nvfp4_geglu::cpu
