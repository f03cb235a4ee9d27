#include "ops/geglu/cuda/config.h"

#include <algorithm>

namespace isobit::geglu::cuda {
namespace {

Operand operand_at(const Matrix& matrix, int64_t row, int64_t column, int64_t size, int32_t step) {
  char* data = static_cast<char*>(matrix.data) + (row * matrix.row_stride + column * step) * size;
  return {data, static_cast<uint32_t>(matrix.row_stride * size)};
}

Pair pair_at(const Matrix& first, const Matrix& second, int64_t row, int64_t column, int64_t size, int32_t step) {
  const Operand a = operand_at(first, row, column, size, step);
  const Operand b = operand_at(second, row, column, size, step);
  return {a, b, step, step == 2 && b.data < a.data};
}

// Whether an operand starts on a vector wherever a chunk does: chunks start on lines of the anchor, and a byte of the
// anchor is `step` bytes of the operand.
bool on_vectors(const Operand& operand, uint32_t step, const Operand& anchor, uint32_t rows) {
  const uintptr_t base = reinterpret_cast<uintptr_t>(operand.data) - reinterpret_cast<uintptr_t>(anchor.data) * step;
  const uint32_t stride = operand.row_bytes - anchor.row_bytes * step;
  return base % kVectorBytes == 0 && (rows == 1 || stride % kVectorBytes == 0);
}

bool on_vectors(const Pair& pair, const Operand& anchor, uint32_t rows) {
  if (pair.step == 2) return on_vectors(pair.swapped ? pair.second : pair.first, 2, anchor, rows);
  return on_vectors(pair.first, 1, anchor, rows) && on_vectors(pair.second, 1, anchor, rows);
}

// Sets bit `index` of halves and halves_step.
void place_in_words(const Operand& operand, int index, const Operand& anchor, Work* work) {
  const uintptr_t base = reinterpret_cast<uintptr_t>(operand.data) - reinterpret_cast<uintptr_t>(anchor.data);
  work->halves |= static_cast<uint32_t>(base % 4 != 0) << index;
  work->halves_step |= static_cast<uint32_t>((operand.row_bytes - anchor.row_bytes) % 4 != 0) << index;
}

}  // namespace

Work work_at(const Params& p, int64_t row, int64_t column) {
  const int64_t size = dtype_bytes(p.dtype);
  Work work = {};
  work.inputs = pair_at(p.gate, p.up, row, column, size, p.input_step);
  work.out = operand_at(p.out, row, column, size, 1);
  if (p.backward) work.gradients = pair_at(p.d_gate, p.d_up, row, column, size, p.gradient_step);
  int64_t widest = 0;
  for (const Matrix& m : {p.gate, p.up, p.out, p.d_gate, p.d_up}) widest = std::max(widest, m.row_stride * size);
  work.rows = widest > UINT32_MAX ? 1 : static_cast<uint32_t>(std::min(p.rows - row, kRowsPerLaunch));
  work.columns = static_cast<int32_t>(std::min(p.columns - column, kColumnsPerLaunch));
  work.round_gelu = p.round_gelu;
  const Operand& anchor = p.backward && p.gradient_step == 1 ? work.gradients.first : work.out;
  const bool vectors = on_vectors(work.inputs, anchor, work.rows) && on_vectors(work.out, 1, anchor, work.rows) &&
                       (!p.backward || on_vectors(work.gradients, anchor, work.rows));
  work.way = Way::kWords;
  if (p.input_step == 2 || (p.backward && p.gradient_step == 2)) {
    work.way = Way::kCouples;
  } else if (vectors && !p.round_gelu) {
    work.way = work.rows == 1 ? Way::kOneRow : Way::kVectors;
  }
  if (work.way == Way::kWords) {
    const Operand* operands[] = {&work.inputs.first, &work.inputs.second, &work.out, &work.gradients.first,
                                 &work.gradients.second};
    for (int i = 0; i < (p.backward ? 5 : 3); ++i) place_in_words(*operands[i], i, anchor, &work);
  }
  const int32_t vector = kVectorBytes / static_cast<int32_t>(size);
  work.vector_starts = vectors && work.columns >= vector ? static_cast<uint32_t>(work.columns - vector + 1) : 0;
  const uint32_t line = line_columns(p.dtype);
  work.lead = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(anchor.data) / static_cast<uintptr_t>(size)) % line;
  work.lead_step = anchor.row_bytes / static_cast<uint32_t>(size) % line;
  return work;
}

int64_t spans(const Work& work, isobit_dtype dtype, int64_t span_columns) {
  const int64_t lead = work.rows > 1 && work.lead_step != 0 ? line_columns(dtype) - 1 : work.lead;
  return (work.columns + lead + span_columns - 1) / span_columns;
}

Dim3 tile_grid(const Work& work, isobit_dtype dtype, int32_t tile_columns) {
  return {static_cast<uint32_t>(spans(work, dtype, tile_columns)), std::min(work.rows, kRowsPerPlane),
          (work.rows + kRowsPerPlane - 1) / kRowsPerPlane};
}

uint32_t warps_per_row(int64_t columns, int32_t chunk) {
  uint32_t warps = 1;
  while (warps < kRowWarps && warps * chunk < columns) warps *= 2;
  return warps;
}

}  // namespace isobit::geglu::cuda
