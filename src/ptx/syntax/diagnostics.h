// What the interpreter says: parse errors, findings of a launch, and the internal exception that carries a fatal one to
// the library's edge (none crosses it).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace isobit::ptx {

struct Error {
  int line = 0;  // line of the PTX text, from 1; 0 when the error has no place in it
  std::string message;
};

enum class FindingKind : uint8_t {
  kUnsupported,  // no defined value on a CPU (approximate functions, unmeasured instruction shapes)
  kOutOfBounds,
  kMisaligned,
  kAccessViolation,  // a write to a read-only buffer, a pointer of the wrong state space
  kUninitialisedRead,
  kBarrierMisuse,  // named, cluster and memory barriers
  kConvergence,    // lanes that an aligned or sync instruction needs are not there
  kTensorMap,
  kRace,          // two accesses without an order between them
  kProxy,         // ordered, but without the proxy fence that the async proxy needs
  kTensorFence,   // ordered, but without the tcgen05.fence that tensor memory needs
  kTensorMemory,  // allocation, lanes and descriptors of tcgen05
  kDeadlock,
  kTimeout,
  kTrap,
  kLaunch,
};

const char* name_of(FindingKind kind);

struct Finding {
  FindingKind kind = FindingKind::kLaunch;
  int line = 0;             // PTX line, 0 when there is none
  std::string instruction;  // its text
  std::string message;
  uint32_t cta[3] = {0, 0, 0};
  int warp = -1;
  uint64_t count = 1;  // equal findings at one place are counted, not repeated
};

struct Statistics {
  uint64_t warp_instructions = 0;
  uint64_t lane_instructions = 0;
  uint64_t mma = 0;
  uint64_t async_operations = 0;
};

struct Report {
  std::vector<Finding> findings;
  Statistics statistics;
  bool ok() const { return findings.empty(); }
  std::string text() const;  // one line per finding, empty when there is none
};

// Internal: thrown by the parser and decoder, caught by Module::parse.
struct ParseFailure {
  Error error;
};

// Internal: thrown by an executing instruction, caught by Machine::launch, which adds place and text.
struct ExecutionFault {
  FindingKind kind;
  std::string message;
};

std::string hex(uint64_t value);

}  // namespace isobit::ptx
