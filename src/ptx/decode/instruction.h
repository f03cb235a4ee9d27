// A decoded instruction: a handler and the register slots it works on.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace isobit::ptx {

class Warp;
struct Instruction;

using LaneMask = uint32_t;
using Slot = int32_t;  // of a 32-lane row of 32-bit words, or of a predicate
using Handler = void (*)(Warp&, const Instruction&, LaneMask);

constexpr LaneMask kAllLanes = ~0u;
constexpr int kLanes = 32;
constexpr Slot kNoSlot = -1;

enum class Flow : uint8_t {
  kNormal,
  kMayStop,  // the handler may ask the warp to yield, wait or park
  kBranch,
  kBranchTable,
  kExit,
};

// What the warp itself must know about an instruction.
enum class Role : uint8_t {
  kOther,
  kRegisterCopy,  // mov of one 32-bit register to another
  kMultiply,      // wgmma.mma_async, which may go on with registers in flight
  kWarpBarrier,   // bar.warp.sync: lanes may meet at different places
};

enum class Space : uint8_t { kGeneric, kGlobal, kShared, kParam, kConst, kLocal };

// Memory order of a load, store or atomic. kRelaxed and stronger take part in synchronisation.
enum class MemoryOrder : uint8_t { kWeak, kRelaxed, kAcquire, kRelease, kAcquireRelease };

struct Instruction {
  Handler handler = nullptr;
  Flow flow = Flow::kNormal;
  Role role = Role::kOther;
  bool guard_negated = false;
  Space space = Space::kGeneric;
  bool wide_address = false;  // the address register a has 64 bits
  MemoryOrder order = MemoryOrder::kWeak;
  uint8_t bytes = 0;  // size of one memory element
  Slot guard = kNoSlot;
  Slot d = kNoSlot, d2 = kNoSlot;
  Slot a = kNoSlot, b = kNoSlot, c = kNoSlot, e = kNoSlot;
  int32_t target = -1;
  uint32_t mode = 0;  // meaning belongs to the handler
  int64_t immediate = 0;
  std::vector<Slot> list, list2;
  std::vector<Slot> rows;  // every register operand, predicates aside, in the order of decoding
  int line = 0;
  std::string_view text;
};

}  // namespace isobit::ptx
