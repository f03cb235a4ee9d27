#include "ptx/syntax/diagnostics.h"

#include <cstdio>

namespace isobit::ptx {

const char* name_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::kUnsupported:
      return "unsupported";
    case FindingKind::kOutOfBounds:
      return "out-of-bounds";
    case FindingKind::kMisaligned:
      return "misaligned";
    case FindingKind::kAccessViolation:
      return "access-violation";
    case FindingKind::kUninitialisedRead:
      return "uninitialised-read";
    case FindingKind::kBarrierMisuse:
      return "barrier-misuse";
    case FindingKind::kConvergence:
      return "convergence";
    case FindingKind::kTensorMap:
      return "tensor-map";
    case FindingKind::kRace:
      return "race";
    case FindingKind::kProxy:
      return "proxy-fence";
    case FindingKind::kTensorFence:
      return "tensor-fence";
    case FindingKind::kTensorMemory:
      return "tensor-memory";
    case FindingKind::kDeadlock:
      return "deadlock";
    case FindingKind::kTimeout:
      return "timeout";
    case FindingKind::kTrap:
      return "trap";
    case FindingKind::kLaunch:
      return "launch";
  }
  return "?";
}

std::string hex(uint64_t value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "0x%llx", static_cast<unsigned long long>(value));
  return buffer;
}

std::string Report::text() const {
  std::string out;
  for (const Finding& f : findings) {
    out += std::string(name_of(f.kind)) + ": ";
    if (f.line > 0) out += "line " + std::to_string(f.line) + " [" + f.instruction + "] ";
    if (f.warp >= 0) {
      out += "cta (" + std::to_string(f.cta[0]) + "," + std::to_string(f.cta[1]) + "," + std::to_string(f.cta[2]) +
             ") warp " + std::to_string(f.warp) + ": ";
    }
    out += f.message;
    if (f.count > 1) out += " (" + std::to_string(f.count) + " times)";
    out += "\n";
  }
  return out;
}

}  // namespace isobit::ptx
