// What instructions that need several lanes of a warp share.
#pragma once
#include "ptx/warp.h"

namespace isobit::ptx {

// True if every live lane of `needed` is in `active`; otherwise these lanes park until the others come, and the handler
// returns.
inline bool converged(Warp& w, LaneMask needed, LaneMask active) {
  if ((needed & w.alive() & ~active) == 0) return true;
  w.stop(Outcome::kPark);
  return false;
}

bool is_register_copy(const Instruction& i);  // mov of one 32-bit register to another
bool owns_registers(const Instruction& i);    // wgmma.mma_async, which may go on with registers in flight
bool is_warp_barrier(const Instruction& i);   // bar.warp.sync: lanes may meet at different places

}  // namespace isobit::ptx
