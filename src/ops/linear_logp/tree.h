// Nodes of the reduction tree: aligned ranges of global ids. Pure functions of V and a range, the same on host and
// device; docs/bit-contract.md section 3.3.
#pragma once

#include <cstdint>

#include "numerics/host_device.h"

namespace isobit::linear_logp {

inline constexpr int64_t kUnit = 64;
inline constexpr int64_t kLeaf = 128;
inline constexpr int64_t kFanOut = 8;

// Ids of a node of a level: level 0 is the leaf.
ISOBIT_HD constexpr int64_t node_ids(int level) {
  int64_t ids = kLeaf;
  for (int i = 0; i < level; ++i) ids *= kFanOut;
  return ids;
}

// Level of the node that is the row.
ISOBIT_HD constexpr int row_level(int64_t vocab) {
  int level = 0;
  while (node_ids(level) < vocab) ++level;
  return level;
}

struct NodeId {
  int level;
  int64_t index;  // the node holds ids [index * node_ids(level), (index + 1) * node_ids(level))
};

}  // namespace isobit::linear_logp
