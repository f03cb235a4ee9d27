// Products of NVFP4 matrices on the CPU in the tensor cores' arithmetic: both operands are decoded to bf16, which is
// exact, and go through the exact matrix engine (cpu/mma). Tiles of up to 64 columns go to a sink.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/kernel_table.h"
#include "cpu/mma/multiply_tile.h"
#include "cpu/parallel_for.h"
#include "nvfp4/view.h"

namespace isobit::cpu {

// x [rows, k] times w [columns, k], both without their global scales.
struct Nvfp4Product {
  Nvfp4View x, w;
  int64_t rows;
  int64_t columns;
  int64_t k;
  int threads;  // 0: default
};

// Rows [first, first + count) as bf16, row-major without gaps.
void decode_nvfp4(const Nvfp4View& view, int64_t first, int64_t count, int64_t k, uint16_t* out);

// How the rows are cut into blocks, and where a block keeps its data in the workspace.
struct Nvfp4Pieces {
  int64_t block_rows;
  int threads;
};

struct Nvfp4Memory {
  uint16_t* packed;  // [block_rows, k]
  char* decoded;     // of decode_rows
  char* threads;     // [threads] of thread_bytes
  size_t packed_bytes, decoded_bytes, thread_bytes, total;
  size_t weight_bytes, sums_bytes;  // parts of a thread's memory, before its scratch
};

WorkspaceBytes workspace_bytes(const Nvfp4Product& product);
// The largest blocks that fit into `bytes`.
Nvfp4Pieces choose_pieces(const Nvfp4Product& product, size_t bytes);
Nvfp4Memory memory_of(const Nvfp4Product& product, const Nvfp4Pieces& pieces, void* workspace);

// Calls sink(row, row_count, column, column_count, sums) once for every tile, from any thread: sums[r * 64 + c] is the
// chain of row `row + r` and column `column + c`. Tiles start at multiples of 64 columns.
template <class Sink>
void run_product(const Nvfp4Product& product, void* workspace, size_t bytes, const Sink& sink) {
  const Nvfp4Pieces pieces = choose_pieces(product, bytes);
  const Nvfp4Memory memory = memory_of(product, pieces, workspace);
  const int64_t tiles = (product.columns + kTileColumns - 1) / kTileColumns;
  for (int64_t row = 0; row < product.rows; row += pieces.block_rows) {
    const int64_t count = std::min(pieces.block_rows, product.rows - row);
    parallel_for(count, pieces.threads, [&](int64_t r, int) {
      decode_nvfp4(product.x, row + r, 1, product.k, memory.packed + r * product.k);
    });
    decode_rows({memory.packed, count, product.k, product.k, Format::kBf16}, 0, count, memory.decoded);
    parallel_for(tiles, pieces.threads, [&](int64_t tile, int thread) {
      char* const mine = memory.threads + static_cast<size_t>(thread) * memory.thread_bytes;
      auto* const weight = reinterpret_cast<uint16_t*>(mine);
      auto* const sums = reinterpret_cast<float*>(mine + memory.weight_bytes);
      const int64_t column = tile * kTileColumns;
      const auto columns = static_cast<int>(std::min<int64_t>(kTileColumns, product.columns - column));
      decode_nvfp4(product.w, column, columns, product.k, weight);
      multiply_tile(memory.decoded, count, {weight, columns, product.k, product.k, Format::kBf16}, 0, columns, sums,
                    kTileColumns, mine + memory.weight_bytes + memory.sums_bytes);
      sink(row, count, column, columns, sums);
    });
  }
}

}  // namespace isobit::cpu
