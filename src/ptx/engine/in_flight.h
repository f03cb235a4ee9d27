// Registers that an asynchronous matrix instruction of a warp still owns. Touching one before the wait is a finding; a
// plain copy only makes another register in flight, since compilers move accumulators around at the ends of loops
// without looking at them.
#pragma once
#include <utility>
#include <vector>

#include "ptx/decode/instruction.h"

namespace isobit::ptx {

class InFlightRegisters {
 public:
  bool empty() const { return operations_.empty(); }
  void start(const void* operation, std::vector<Slot> rows) { operations_.push_back({operation, std::move(rows)}); }
  // Drops the operations for which `finished` is true.
  template <class Finished>
  void finish(Finished&& finished) {
    std::erase_if(operations_, [&](const Operation& o) { return finished(o.operation); });
  }
  // True if the instruction touches a register in flight; a copy of one is noted instead.
  bool touched_by(const Instruction& i, bool is_copy);

 private:
  struct Operation {
    const void* operation;
    std::vector<Slot> rows;
  };
  std::vector<Operation> operations_;
};

}  // namespace isobit::ptx
