// The tensor memory of a CTA: 128 lanes of 512 columns of 32 bits, handed out in whole columns. An address is
// lane << 16 | column.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ptx/engine/clock.h"

namespace isobit::ptx {

class Engine;
class RaceChecker;

constexpr uint32_t kTensorLanes = 128, kTensorColumns = 512;
constexpr uint32_t tensor_lane(uint32_t address) { return address >> 16; }
constexpr uint32_t tensor_column(uint32_t address) { return address & 0xFFFF; }

struct TensorRegion {
  uint32_t lane = 0, lanes = 0, column = 0, columns = 0;
};

// Who touches tensor memory, for the race checker. `seen` is null without it.
struct TensorAccessor {
  const std::vector<uint32_t>* seen = nullptr;     // ordered before by any synchronisation
  const std::vector<uint32_t>* visible = nullptr;  // and through the fences that tensor memory needs
  int agent = 0;
  uint32_t epoch = 0;
  int32_t pc = 0;
  bool needs_fences = true;
};

class TensorMemory {
 public:
  // The first of `columns` free columns, the lowest or the highest that fit; empty if there is no room now. Throws
  // where the rules of tcgen05.alloc are broken.
  std::optional<uint32_t> allocate(uint32_t columns, bool highest);
  // Gives back exactly what one allocation took.
  void release(Engine& engine, uint32_t address, uint32_t columns, const TensorAccessor& who);
  void relinquish() { relinquished_ = true; }
  uint32_t allocated() const;

  // The word at the region's first lane and column; the next lane's is kTensorColumns further. Checks that the region
  // is allocated and, for a read, was written, and tells the race checker.
  uint32_t* access(Engine& engine, const TensorRegion& region, bool write, const TensorAccessor& who);

 private:
  struct Epoch {
    uint32_t clock = 0;
    uint16_t agent = 0;
    int32_t pc = 0;
  };
  struct Cell {
    Epoch write;
    Epoch reads[4];
  };

  bool free_at(uint32_t column, uint32_t columns) const;
  void check_order(Engine& engine, const TensorRegion& region, bool write, const TensorAccessor& who);
  static void check_epoch(Engine& engine, const Epoch& earlier, const TensorAccessor& who, uint32_t column,
                          const char* what);
  static void remember(Cell& cell, bool write, const TensorAccessor& who);

  std::vector<uint32_t> words_;            // lane after lane
  std::vector<uint8_t> written_;           // of each word
  std::vector<Cell> cells_;                // of each column and quarter of the lanes
  uint32_t size_of_[kTensorColumns] = {};  // columns of the allocation that begins here
  uint32_t most_columns_ = kTensorColumns;
  bool relinquished_ = false;
};

}  // namespace isobit::ptx
