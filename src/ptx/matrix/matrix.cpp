// ldmatrix, stmatrix and movmatrix: 8x8 matrices of 16-bit elements between shared memory and fragments.
#include <cstring>

#include "ptx/decode/families.h"
#include "ptx/engine/lanes.h"
#include "ptx/engine/memory_access.h"
#include "ptx/values/collective.h"

namespace isobit::ptx {
namespace {

constexpr int kRows = 8;

// The address of each row that `matrices` 8x8 matrices need: lane 8m + r gives row r of matrix m.
void read_row_addresses(Warp& w, const Instruction& i, size_t matrices, uint32_t (&rows)[kLanes]) {
  for (int l = 0; l < kRows * static_cast<int>(matrices); ++l) {
    const uint64_t address = effective_address(w, i, l);
    if (address >> 32)
      throw ExecutionFault{FindingKind::kOutOfBounds, "address " + hex(address) + " is outside of shared memory"};
    if (address % 16 != 0) misaligned(address, 16);
    rows[l] = static_cast<uint32_t>(address);
  }
}

// Lane l holds elements (l / 4, 2 (l % 4)) and the next of the same row; transposed, of the same column.
uint32_t fragment_of(const uint16_t (&m)[kRows][kRows], int lane, bool transposed) {
  const int r = lane / 4, c = 2 * (lane % 4);
  const uint16_t low = transposed ? m[c][r] : m[r][c], high = transposed ? m[c + 1][r] : m[r][c + 1];
  return uint32_t{high} << 16 | low;
}

void place_fragment(uint16_t (&m)[kRows][kRows], int lane, uint32_t value, bool transposed) {
  const int r = lane / 4, c = 2 * (lane % 4);
  (transposed ? m[c][r] : m[r][c]) = static_cast<uint16_t>(value);
  (transposed ? m[c + 1][r] : m[r][c + 1]) = static_cast<uint16_t>(value >> 16);
}

// mode 1: transposed
void load_matrices(Warp& w, const Instruction& i, LaneMask active) {
  if (!converged(w, kAllLanes, active)) return;
  uint32_t rows[kLanes];
  read_row_addresses(w, i, i.list.size(), rows);
  for (size_t k = 0; k < i.list.size(); ++k) {
    uint16_t matrix[kRows][kRows];
    for (int r = 0; r < kRows; ++r)
      std::memcpy(matrix[r], access_shared(w, rows[kRows * static_cast<int>(k) + r], 16, false), 16);
    for (int l = 0; l < kLanes; ++l) w.word(i.list[k])[l] = fragment_of(matrix, l, i.mode & 1);
  }
}

void store_matrices(Warp& w, const Instruction& i, LaneMask active) {
  if (!converged(w, kAllLanes, active)) return;
  uint32_t rows[kLanes];
  read_row_addresses(w, i, i.list.size(), rows);
  for (size_t k = 0; k < i.list.size(); ++k) {
    uint16_t matrix[kRows][kRows];
    for (int l = 0; l < kLanes; ++l) place_fragment(matrix, l, w.word(i.list[k])[l], i.mode & 1);
    for (int r = 0; r < kRows; ++r)
      std::memcpy(access_shared(w, rows[kRows * static_cast<int>(k) + r], 16, true), matrix[r], 16);
  }
}

void transpose(Warp& w, const Instruction& i, LaneMask active) {
  if (!converged(w, kAllLanes, active)) return;
  uint16_t matrix[kRows][kRows];
  for (int l = 0; l < kLanes; ++l) place_fragment(matrix, l, w.word(i.a)[l], false);
  for (int l = 0; l < kLanes; ++l) w.word(i.d)[l] = fragment_of(matrix, l, true);
}

void take_form(Decoder& d) {
  d.require("sync");
  d.require("aligned");
  d.require("m8n8");
  d.require("b16");
  d.out().mode = d.take("trans");
  d.out().flow = Flow::kMayStop;
}

void decode_matrices(Decoder& d, size_t address, size_t registers, bool load) {
  take_form(d);
  const size_t count = size_t{1} << d.require_any({"x1", "x2", "x4"});
  d.require_any({"shared", "shared::cta"});
  d.expect_count(2, 2);
  const Operand& o = d.operand(registers);
  if (o.kind != OperandKind::kVector || o.parts.size() != count)
    d.fail("the number of registers does not match the modifier");
  for (const Operand& part : o.parts)
    d.out().list.push_back(load ? d.destination(part, Type::kB32) : d.source(part, Type::kB32));
  d.address(address, Space::kShared);
}

}  // namespace

void decode_ldmatrix(Decoder& d) {
  decode_matrices(d, 1, 0, true);
  d.out().handler = load_matrices;
}

void decode_stmatrix(Decoder& d) {
  decode_matrices(d, 0, 1, false);
  d.out().handler = store_matrices;
}

void decode_movmatrix(Decoder& d) {
  take_form(d);
  if (d.out().mode == 0) d.fail("expected modifier .trans");
  d.expect_count(2, 2);
  d.out().d = d.destination(0, Type::kB32);
  d.out().a = d.source(1, Type::kB32);
  d.out().handler = transpose;
}

}  // namespace isobit::ptx
