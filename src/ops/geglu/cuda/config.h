// Sizes of the CUDA schedules of geglu, and the plan of a call: pure functions, tested without a GPU.
#pragma once

#include <cstdint>

#include "core/runtime.h"
#include "ops/geglu/contract.h"

namespace isobit::geglu::cuda {

inline constexpr int kMaxWarps = 8;
inline constexpr int kRowWarps = 8;
inline constexpr int kLineBytes = 128;            // tiles start on lines of the output
inline constexpr int kVectorBytes = 16;           // of one lane and operand
inline constexpr uint32_t kRowsPerPlane = 32768;  // grid.y; planes are grid.z
// What one launch takes; more is cut, so that rows, columns and row strides are 32-bit numbers in the kernels. (If a
// row stride is not, every row is a launch.)
inline constexpr int64_t kRowsPerLaunch = int64_t{1} << 28;
inline constexpr int64_t kColumnsPerLaunch = int64_t{1} << 30;

// Columns that a warp handles at once.
constexpr int32_t chunk_columns(isobit_dtype dtype) { return 32 * kVectorBytes / (dtype == ISOBIT_FP32 ? 4 : 2); }

// A column tile and the warps that share it; columns are a multiple of a warp's chunk. A tile of one chunk a warp, or
// less, goes to the tile kernel, which has no loop; a larger one is walked like a row.
struct Tile {
  int32_t columns;
  int32_t warps;
  bool operator==(const Tile&) const = default;
};

// One operand as the kernels see it.
struct Operand {
  char* data;
  uint32_t row_bytes;
};

// gate and up, or d_gate and d_up. If they alternate (step 2), `swapped` says that second comes first in memory.
struct Pair {
  Operand first, second;
  int32_t step;
  bool swapped;
};

// How a warp takes a chunk that lies inside its row. All but kWords want every operand on a 16-byte boundary at the
// chunks' vectors.
enum class Way : uint32_t {
  kOneRow,   // vectors of tensors that are one row
  kVectors,  // vectors
  kCouples,  // vectors of couples, as gate and up or their gradients alternate
  kWords,    // words at any alignment; gelu may be rounded early
};

// The kernels' parameters.
struct Work {
  Way way;
  Pair inputs;
  Pair gradients;  // backward
  Operand out;     // forward: out; backward: d_out
  uint32_t rows;
  int32_t columns;
  // Chunks start on lines of the anchor: out, or d_gate unless it alternates with d_up. Row r starts (lead + r *
  // lead_step) mod line elements behind one.
  uint32_t lead, lead_step;
  bool round_gelu;
  // Columns at which a whole vector of the output may start, [0, vector_starts); 0 if the vectors are misaligned.
  uint32_t vector_starts;
  // kWords: operands (bits 0 to 4: gate, up, out, d_gate, d_up) whose 16-bit elements lie in words otherwise than the
  // anchor's in row 0, and those with which every second row is different.
  uint32_t halves, halves_step;
  uint32_t zero;  // 0
};

// Elements in a line.
constexpr uint32_t line_columns(isobit_dtype dtype) { return kLineBytes / (dtype == ISOBIT_FP32 ? 4 : 2); }

// The part of a call that begins at (row, column), cut to what one launch takes.
Work work_at(const Params& params, int64_t row, int64_t column);

// Spans of columns that cover every row. A row that does not start on a line makes its first span start before it; if
// the rows differ in that, every row gets room for the worst.
int64_t spans(const Work& work, isobit_dtype dtype, int64_t span_columns);

// Grid of the tile kernel: x tiles, y and z rows.
Dim3 tile_grid(const Work& work, isobit_dtype dtype, int32_t tile_columns);

// Warps that walk one row in the row schedule: a power of two up to kRowWarps, no more than the row has chunks for.
uint32_t warps_per_row(int64_t columns, int32_t chunk);

}  // namespace isobit::geglu::cuda
