// What instructions that need several lanes of a warp share.
#pragma once
#include "ptx/engine/warp.h"

namespace isobit::ptx {

// True if every live lane of `needed` is in `active`; otherwise these lanes park until the others come, and the handler
// returns.
inline bool converged(Warp& w, LaneMask needed, LaneMask active) {
  if ((needed & w.alive() & ~active) == 0) return true;
  w.stop(Outcome::kPark);
  return false;
}

}  // namespace isobit::ptx
