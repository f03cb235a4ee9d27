#include "ops/nvfp4_quantize/cpu/kernel.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "cpu/parallel_for.h"
#include "numerics/bf16.h"
#include "numerics/fp16.h"
#include "numerics/fp32.h"
#include "numerics/nvfp4_block.h"

namespace isobit::nvfp4_quantize::cpu {
namespace {

using numerics::kNvfp4Block;

constexpr int64_t kElementsPerTask = 16384;

template <class Format>
using Storage = std::conditional_t<std::is_same_v<Format, numerics::Fp32>, float, uint16_t>;

template <class Format>
void encode_row(const Params& p, const numerics::Nvfp4Encoder& encoder, int64_t row, int64_t first, int64_t last) {
  const auto* const x = static_cast<const Storage<Format>*>(p.x) + row * p.x_stride;
  uint8_t* const codes = p.out.codes + row * p.out.row_stride;
  for (int64_t block = first; block < last; ++block) {
    float values[kNvfp4Block];
    for (int i = 0; i < kNvfp4Block; ++i) values[i] = Format::to_float(x[block * kNvfp4Block + i]);
    uint32_t packed[2];
    const uint8_t scale = numerics::nvfp4_encode(encoder, values, packed);
    for (int i = 0; i < 8; ++i) codes[block * 8 + i] = static_cast<uint8_t>(packed[i / 4] >> (8 * (i % 4)));
    p.out.scales[numerics::scale_offset(p.out.layout, row, block, p.blocks())] = scale;
  }
}

// The bytes of the padded blocks of a row, or of a whole padded row.
void clear_scales(const Params& p, int64_t row, int64_t first) {
  for (int64_t block = first; block < p.padded_blocks(); ++block) {
    p.out.scales[numerics::scale_offset(p.out.layout, row, block, p.blocks())] = 0;
  }
}

// Tasks are pieces of long rows or groups of short ones; padding rows come last.
template <class Format>
void run_format(const Params& p) {
  const numerics::Nvfp4Encoder encoder =
      numerics::nvfp4_encoder(p.global.device != nullptr ? *p.global.device : p.global.value);
  const int64_t piece = std::min(p.blocks(), kElementsPerTask / kNvfp4Block);
  const int64_t pieces = (p.blocks() + piece - 1) / piece;
  const int64_t group = std::max<int64_t>(kElementsPerTask / (piece * kNvfp4Block), 1);
  const int64_t groups = (p.padded_rows() + group - 1) / group;
  isobit::cpu::parallel_for(groups * pieces, isobit::cpu::thread_count(p.threads), [&](int64_t task, int) {
    const int64_t begin = task % pieces * piece;
    const int64_t end = std::min(begin + piece, p.blocks());
    const int64_t first = task / pieces * group;
    for (int64_t row = first; row < std::min(first + group, p.padded_rows()); ++row) {
      if (row < p.rows) encode_row<Format>(p, encoder, row, begin, end);
      if (end == p.blocks()) clear_scales(p, row, row < p.rows ? end : 0);
    }
  });
}

}  // namespace

Status takes(const Params&, const DeviceProperties&) { return Status(); }

Status run(const Params& params, void*) {
  switch (params.dtype) {
    case ISOBIT_BF16:
      run_format<numerics::Bf16>(params);
      break;
    case ISOBIT_FP16:
      run_format<numerics::Fp16>(params);
      break;
    default:
      run_format<numerics::Fp32>(params);
  }
  return Status();
}

}  // namespace isobit::nvfp4_quantize::cpu
