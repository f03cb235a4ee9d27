// Release and acquire for the race checker: what ordered loads, stores and atomics pass on, and what fences make of
// relaxed ones.
#pragma once
#include <optional>

#include "ptx/decode/decoder.h"
#include "ptx/engine/engine.h"

namespace isobit::ptx {

// Takes `.relaxed.gpu` and the like; empty for a weak access. `.volatile` counts as relaxed.
std::optional<MemoryOrder> take_memory_order(Decoder& d);

// A write to a location by an ordered store or atomic, and a read of one.
void publish(Warp& w, const Instruction& i, uint64_t location);
void observe(Warp& w, const Instruction& i, uint64_t location);

// A fence: later relaxed writes publish all that was seen, and what relaxed reads met takes effect.
void fence(Warp& w);

// A named, cluster or memory barrier passes on everything the warp saw. Returns the warp's clock and starts a new
// epoch.
void release_into(Warp& w, Clock& target);
inline void acquire_from(Warp& w, const Clock& source) {
  if (!w.clock.empty()) w.clock.join(source);
}

}  // namespace isobit::ptx
