// Checked access of device code to its state spaces: bounds, rights, alignment, initialisation, and the race checker's
// notes.
#pragma once
#include <cstddef>
#include <cstdint>

#include "ptx/engine/addresses.h"
#include "ptx/engine/engine.h"

namespace isobit::ptx {

inline uint64_t effective_address(Warp& w, const Instruction& i, int lane) {
  const uint64_t base = i.wide_address ? w.wide(i.a)[lane] : w.word(i.a)[lane];
  return base + static_cast<uint64_t>(i.immediate);
}

// Bytes of shared memory anywhere in the cluster, checked for bounds only. `what` names the access in a report.
struct SharedPlace {
  Cta* cta = nullptr;
  uint32_t offset = 0;
  std::byte* data() const { return cta->shared.data() + offset; }
};
SharedPlace locate_shared(Cta& own, uint32_t address, uint32_t bytes, const char* what);

// The same with initialisation and race notes, as warp `w` through the generic proxy. Atomic accesses do not race with
// each other.
std::byte* access_shared(Warp& w, uint32_t address, uint32_t bytes, bool write, bool atomic = false);

// Notes an access to shared memory by an asynchronous operation and returns the bytes.
std::byte* access_shared_async(const SharedPlace& place, uint32_t bytes, bool write, const AsyncOperation& operation,
                               bool proxy);

std::byte* access_global(Engine& engine, uint64_t address, uint64_t bytes, bool write, int32_t pc);

// `bytes` at `address` of a state space for one lane; alignment is checked against `bytes`.
std::byte* access_memory(Warp& w, Space space, uint64_t address, int lane, uint32_t bytes, bool write,
                         bool atomic = false);

[[noreturn]] void misaligned(uint64_t address, uint32_t alignment);

}  // namespace isobit::ptx
