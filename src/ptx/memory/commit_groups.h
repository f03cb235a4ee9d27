// Commit groups of asynchronous operations.
#pragma once
#include "ptx/memory/ordering.h"

namespace isobit::ptx {

inline void commit(CommitGroups& g) {
  g.closed.push_back(std::move(g.open));
  g.open.clear();
}

// Takes off the groups beyond the newest `pending`, and what they did becomes visible. False if one is still under way.
bool wait_for_groups(Warp& w, CommitGroups& g, size_t pending);

}  // namespace isobit::ptx
