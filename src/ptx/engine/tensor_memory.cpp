#include "ptx/engine/tensor_memory.h"

#include <algorithm>
#include <bit>
#include <string>

#include "ptx/engine/engine.h"

namespace isobit::ptx {
namespace {

constexpr uint32_t kUnit = 32;  // columns
constexpr uint32_t kQuarters = 4, kQuarterLanes = kTensorLanes / kQuarters;
constexpr uint32_t kPoison = 0xFFC0DEAD;  // a NaN as fp32

[[noreturn]] void misuse(const std::string& message) { throw ExecutionFault{FindingKind::kTensorMemory, message}; }

std::string place_text(const TensorRegion& r) {
  return "lanes " + std::to_string(r.lane) + " to " + std::to_string(r.lane + r.lanes - 1) + ", columns " +
         std::to_string(r.column) + " to " + std::to_string(r.column + r.columns - 1);
}

}  // namespace

bool TensorMemory::free_at(uint32_t column, uint32_t columns) const {
  for (uint32_t c = 0; c < kTensorColumns; ++c) {
    if (size_of_[c] != 0 && c < column + columns && column < c + size_of_[c]) return false;
  }
  return true;
}

std::optional<uint32_t> TensorMemory::allocate(uint32_t columns, bool highest) {
  if (relinquished_) misuse("an allocation after relinquish_alloc_permit");
  if (columns < kUnit || columns > kTensorColumns || !std::has_single_bit(columns))
    misuse("columns: expected a power of two from 32 to 512, got " + std::to_string(columns));
  if (columns > most_columns_)
    misuse("an allocation of " + std::to_string(columns) + " columns after one of " + std::to_string(most_columns_));
  const uint32_t places = (kTensorColumns - columns) / kUnit + 1;
  for (uint32_t i = 0; i < places; ++i) {
    const uint32_t column = (highest ? places - 1 - i : i) * kUnit;
    if (!free_at(column, columns)) continue;
    size_of_[column] = most_columns_ = columns;
    words_.resize(size_t{kTensorLanes} * kTensorColumns, kPoison);
    written_.resize(words_.size());
    for (uint32_t lane = 0; lane < kTensorLanes; ++lane)
      std::fill_n(written_.begin() + lane * kTensorColumns + column, columns, uint8_t{0});
    return column;
  }
  return std::nullopt;
}

void TensorMemory::release(Engine& engine, uint32_t address, uint32_t columns, const TensorAccessor& who) {
  const uint32_t column = tensor_column(address);
  if (tensor_lane(address) != 0 || column >= kTensorColumns || size_of_[column] == 0 || size_of_[column] != columns)
    misuse("no allocation of " + std::to_string(columns) + " columns at " + hex(address));
  const TensorRegion region{0, kTensorLanes, column, columns};
  if (who.seen) check_order(engine, region, true, who);
  if (!cells_.empty()) std::fill_n(cells_.begin() + column * kQuarters, columns * kQuarters, Cell{});
  size_of_[column] = 0;
}

uint32_t TensorMemory::allocated() const {
  uint32_t sum = 0;
  for (const uint32_t size : size_of_) sum += size;
  return sum;
}

uint32_t* TensorMemory::access(Engine& engine, const TensorRegion& r, bool write, const TensorAccessor& who) {
  const bool inside = r.lane + r.lanes <= kTensorLanes && r.column + r.columns <= kTensorColumns;
  uint32_t covered = 0;
  for (uint32_t c = 0; inside && c < r.column + r.columns; ++c) {
    const uint32_t begin = std::max(c, r.column), end = std::min(c + size_of_[c], r.column + r.columns);
    if (size_of_[c] != 0 && begin < end) covered += end - begin;
  }
  if (covered != r.columns)
    throw ExecutionFault{FindingKind::kOutOfBounds, "tensor memory is not allocated at " + place_text(r)};
  bool all_written = true;
  for (uint32_t lane = r.lane; lane < r.lane + r.lanes; ++lane) {
    const auto first = written_.begin() + lane * kTensorColumns + r.column;
    if (write)
      std::fill_n(first, r.columns, uint8_t{1});
    else
      all_written &= std::find(first, first + r.columns, 0) == first + r.columns;
  }
  if (!all_written && engine.options().check_initialised) {
    engine.add_finding(FindingKind::kUninitialisedRead, who.pc, -1,
                       "tensor memory was never written in full at " + place_text(r));
  }
  if (who.seen) check_order(engine, r, write, who);
  return words_.data() + r.lane * kTensorColumns + r.column;
}

void TensorMemory::check_epoch(Engine& engine, const Epoch& earlier, const TensorAccessor& who, uint32_t column,
                               const char* what) {
  if (earlier.clock == 0 || earlier.agent == who.agent) return;
  const bool ordered = (*who.seen)[earlier.agent] >= earlier.clock;
  const bool visible = (*who.visible)[earlier.agent] >= earlier.clock;
  if (visible || (ordered && !(who.needs_fences && engine.options().strict_tensor_order))) return;
  const Instruction& first = engine.kernel().code[static_cast<size_t>(earlier.pc)];
  std::string message = std::string(what) + " at tensor memory column " + std::to_string(column) + " against line " +
                        std::to_string(first.line) + " [" + std::string(first.text.substr(0, 120)) + "]";
  if (ordered) message += ": ordered, but a tcgen05.fence is missing before or after the synchronisation";
  engine.add_finding(ordered ? FindingKind::kTensorFence : FindingKind::kRace, who.pc, earlier.pc, message);
}

void TensorMemory::remember(Cell& cell, bool write, const TensorAccessor& who) {
  const Epoch epoch{who.epoch, static_cast<uint16_t>(who.agent), who.pc};
  if (write) {
    cell = {};
    cell.write = epoch;
    return;
  }
  // The slot of the same agent, a free one, or one whose read came before this; otherwise the first is forgotten.
  size_t best = 0;
  for (size_t i = 0; i < std::size(cell.reads); ++i) {
    const Epoch& e = cell.reads[i];
    if (e.clock != 0 && e.agent != epoch.agent && (*who.seen)[e.agent] < e.clock) continue;
    best = i;
    break;
  }
  cell.reads[best] = epoch;
}

void TensorMemory::check_order(Engine& engine, const TensorRegion& r, bool write, const TensorAccessor& who) {
  cells_.resize(size_t{kTensorColumns} * kQuarters);
  for (uint32_t c = r.column; c < r.column + r.columns; ++c) {
    for (uint32_t q = r.lane / kQuarterLanes; q <= (r.lane + r.lanes - 1) / kQuarterLanes; ++q) {
      Cell& cell = cells_[c * kQuarters + q];
      check_epoch(engine, cell.write, who, c,
                  write ? "write after an unordered write" : "read after an unordered write");
      if (write) {
        for (const Epoch& e : cell.reads) check_epoch(engine, e, who, c, "write after an unordered read");
      }
      remember(cell, write, who);
    }
  }
}

}  // namespace isobit::ptx
