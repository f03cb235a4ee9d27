// The parts of tcgen05, and what they share.
#pragma once
#include "ptx/decode/decoder.h"
#include "ptx/engine/engine.h"

namespace isobit::ptx {

void decode_tensor_allocation(Decoder& d, size_t form);  // alloc, dealloc, relinquish_alloc_permit
void decode_tensor_transfer(Decoder& d, bool load);      // ld, st
void decode_tensor_wait(Decoder& d, bool load);          // wait::ld, wait::st
void decode_tensor_fence(Decoder& d, bool after);
void decode_tensor_copy_in(Decoder& d);  // cp
void decode_tensor_commit(Decoder& d);
void decode_tensor_multiply(Decoder& d);

// An access of a pipe's operation.
inline TensorAccessor accessor_of(const AsyncOperation& o) {
  if (o.clock.empty()) return {.pc = o.pc};
  return {&o.clock.seen, &o.tensor_visible, o.agent, o.epoch, o.pc};
}

}  // namespace isobit::ptx
