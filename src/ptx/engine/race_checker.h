// Happens-before checker of one cluster's shared memory. Agents are warps, with tensor memory four more of each warp
// (tensor_order.h), and a ring of asynchronous operations; each four bytes remember their last writes and reads, with
// the bytes they touched.
#pragma once
#include <cstdint>
#include <set>
#include <vector>

#include "ptx/engine/clock.h"

namespace isobit::ptx {

class Engine;

struct Accessor {
  const Clock* clock = nullptr;
  int agent = 0;
  bool async = false;  // through the asynchronous proxy
  int32_t pc = 0;
  bool atomic = false;  // two of these never race
};

class RaceChecker {
 public:
  RaceChecker(Engine& engine, size_t ctas, size_t warps_per_cta, uint32_t shared_bytes);

  Clock empty_clock() const;
  Clock initial_clock(int agent) const;
  size_t agents() const { return agents_; }
  // The first of the four agents that do a warp's work in tensor memory.
  int tensor_agents(int warp_agent) const { return static_cast<int>(warps_) + 4 * warp_agent; }
  // An asynchronous operation becomes an agent of its own that follows everything its issuer saw.
  int new_operation(Clock& clock);
  // The agent's accesses from now on are told apart from those that were passed on so far.
  static void tick(Clock& clock, int agent) {
    if (!clock.empty()) ++clock.seen[static_cast<size_t>(agent)];
  }
  void access(size_t cta, uint32_t offset, uint32_t bytes, bool write, const Accessor& who);

 private:
  struct Epoch {
    uint32_t clock = 0;
    uint16_t agent = 0;
    uint8_t bytes = 0;  // mask of the four
    bool async = false;
    bool atomic = false;
    int32_t pc = 0;
  };
  struct Cell {
    Epoch writes[2];
    Epoch reads[3];
  };
  enum class Order : uint8_t { kOrdered, kUnordered, kMissingFence };

  static Epoch epoch_of(const Accessor& who, uint8_t mask);
  static Order order(const Epoch& earlier, const Accessor& later, bool earlier_is_write);
  void read_cell(Cell& cell, uint8_t mask, uint32_t offset, const Accessor& who);
  void write_cell(Cell& cell, uint8_t mask, uint32_t offset, const Accessor& who);
  void report(const char* what, Order order, const Epoch& earlier, const Accessor& later, uint32_t offset);
  template <size_t N>
  static void remember(Epoch (&slots)[N], const Epoch& epoch, const Accessor& who);

  Engine& engine_;
  size_t warps_;
  bool tensor_;
  size_t agents_;
  size_t first_operation_;
  size_t next_operation_;
  std::vector<uint32_t> operation_clock_;
  std::vector<std::vector<Cell>> cells_;  // of each CTA
  uint32_t shared_bytes_;
};

}  // namespace isobit::ptx
