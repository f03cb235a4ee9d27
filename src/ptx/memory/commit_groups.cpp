#include "ptx/memory/commit_groups.h"

#include <algorithm>

namespace isobit::ptx {

bool wait_for_groups(Warp& w, CommitGroups& g, size_t pending) {
  while (g.closed.size() > pending) {
    const auto& oldest = g.closed.front();
    if (!std::all_of(oldest.begin(), oldest.end(), [](const AsyncHandle& o) { return o->done; })) return false;
    for (const AsyncHandle& o : oldest) acquire_from(w, o->clock);
    g.closed.pop_front();
  }
  return true;
}

}  // namespace isobit::ptx
