#include "nvfp4/cpu_product.h"

#include "numerics/bf16.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/scale_layout.h"

namespace isobit::cpu {
namespace {

constexpr int64_t kBestRows = 128;
constexpr int64_t kSmallestRows = 2;
constexpr size_t kDecodedTarget = size_t{16} << 20;  // a block's decoded rows stay in the last-level cache

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

// decode_rows takes its own alignment out of the bytes it asks for.
Nvfp4Memory sizes(const Nvfp4Product& product, const Nvfp4Pieces& pieces) {
  Nvfp4Memory m = {};
  const auto k_bytes = static_cast<size_t>(product.k) * sizeof(uint16_t);
  const auto rows = static_cast<size_t>(pieces.block_rows);
  m.packed_bytes = aligned(rows * k_bytes);
  m.decoded_bytes = aligned(decoded_rows_bytes(pieces.block_rows, product.k));
  m.weight_bytes = aligned(kTileColumns * k_bytes);
  m.sums_bytes = aligned(rows * kTileColumns * sizeof(float));
  m.thread_bytes = m.weight_bytes + m.sums_bytes + aligned(tile_scratch_bytes(pieces.block_rows));
  m.total = m.packed_bytes + m.decoded_bytes + static_cast<size_t>(pieces.threads) * m.thread_bytes;
  return m;
}

Nvfp4Pieces pieces_of(const Nvfp4Product& product, int64_t rows) {
  return {std::min(rows, std::max<int64_t>(product.rows, 1)), thread_count(product.threads)};
}

int64_t best_rows(const Nvfp4Product& product) {
  int64_t rows = kBestRows;
  while (rows > kSmallestRows && decoded_rows_bytes(rows, product.k) > kDecodedTarget) rows /= 2;
  return rows;
}

}  // namespace

void decode_nvfp4(const Nvfp4View& view, int64_t first, int64_t count, int64_t k, uint16_t* out) {
  const int64_t blocks = k / 16;
  for (int64_t row = first; row < first + count; ++row) {
    const uint8_t* codes = view.codes + row * view.row_stride;
    for (int64_t block = 0; block < blocks; ++block) {
      const float scale = numerics::e4m3_to_float(view.scales[numerics::scale_offset(view.layout, row, block, blocks)]);
      // At most 6 significant bits: the product is exact in bf16.
      uint16_t values[16];
      for (uint8_t code = 0; code < 16; ++code) {
        values[code] = numerics::bf16_from_float(numerics::e2m1_to_float(code) * scale);
      }
      for (int i = 0; i < 8; ++i) {
        *out++ = values[numerics::e2m1_unpack_even(*codes)];
        *out++ = values[numerics::e2m1_unpack_odd(*codes++)];
      }
    }
  }
}

WorkspaceBytes workspace_bytes(const Nvfp4Product& product) {
  return {sizes(product, pieces_of(product, kSmallestRows)).total,
          sizes(product, pieces_of(product, best_rows(product))).total};
}

Nvfp4Pieces choose_pieces(const Nvfp4Product& product, size_t bytes) {
  int64_t rows = best_rows(product);
  while (rows > kSmallestRows && sizes(product, pieces_of(product, rows)).total > bytes) rows /= 2;
  return pieces_of(product, rows);
}

Nvfp4Memory memory_of(const Nvfp4Product& product, const Nvfp4Pieces& pieces, void* workspace) {
  Nvfp4Memory m = sizes(product, pieces);
  m.packed = static_cast<uint16_t*>(workspace);
  m.decoded = static_cast<char*>(workspace) + m.packed_bytes;
  m.threads = m.decoded + m.decoded_bytes;
  return m;
}

}  // namespace isobit::cpu
