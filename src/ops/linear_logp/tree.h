// Nodes of the reduction tree: aligned ranges of global ids. Pure functions of V and a range, the same on host and
// device; docs/bit-contract.md sections 3.3 and 3.5.
#pragma once

#include <cstdint>

#include "numerics/host_device.h"

namespace isobit::linear_logp {

inline constexpr int64_t kUnit = 64;
inline constexpr int64_t kLeaf = 128;
inline constexpr int64_t kFanOut = 8;
inline constexpr int kMaxLevel = 8;  // 128 * 8^8 = 2^31 ids

// Ids of a node of a level: level 0 is the leaf.
ISOBIT_HD constexpr int64_t node_ids(int level) { return kLeaf << (3 * level); }

// Level of the node that is the row.
ISOBIT_HD constexpr int row_level(int64_t vocab) {
  int level = 0;
  while (node_ids(level) < vocab) ++level;
  return level;
}

struct NodeId {
  int level;
  int64_t index;  // the node holds the existing ids of [index * node_ids(level), (index + 1) * node_ids(level))
};

// A half-open range of ids.
struct IdRange {
  int64_t begin, end;
  ISOBIT_HD constexpr int64_t size() const { return end - begin; }
};

ISOBIT_HD constexpr int64_t node_begin(NodeId node) { return node.index * node_ids(node.level); }
ISOBIT_HD constexpr int64_t node_end(NodeId node, int64_t vocab) {
  const int64_t end = (node.index + 1) * node_ids(node.level);
  return end < vocab ? end : vocab;
}

// The node above, and whether `node` is the last of its children that holds an existing id.
ISOBIT_HD constexpr NodeId parent(NodeId node) { return {node.level + 1, node.index / kFanOut}; }
ISOBIT_HD constexpr bool is_first_child(NodeId node) { return node.index % kFanOut == 0; }
ISOBIT_HD constexpr bool is_last_child(NodeId node, int64_t vocab) {
  return node_end(node, vocab) == node_end(parent(node), vocab);
}

// What a range of existing ids publishes: the ids of incomplete border leaves as raw logits, the rest as nodes. Both
// borders of `nodes` are multiples of kLeaf, or V. A range inside one incomplete leaf is all `front`.
struct RangeParts {
  IdRange front;  // raw
  IdRange nodes;
  IdRange back;  // raw
  ISOBIT_HD constexpr int64_t raw_ids() const { return front.size() + back.size(); }
};

ISOBIT_HD constexpr RangeParts range_parts(IdRange range, int64_t vocab) {
  const int64_t up = (range.begin + kLeaf - 1) / kLeaf * kLeaf;
  const int64_t front_end = up < range.end ? up : range.end;
  const int64_t down = range.end == vocab ? vocab : range.end / kLeaf * kLeaf;
  const int64_t nodes_end = down > front_end ? down : front_end;
  return {{range.begin, front_end}, {front_end, nodes_end}, {nodes_end, range.end}};
}

// The largest complete node, up to a level, that starts at `nodes.begin` and lies in `nodes` (a non-empty
// RangeParts::nodes).
ISOBIT_HD constexpr NodeId first_node(IdRange nodes, int64_t vocab, int max_level = kMaxLevel) {
  const int top = row_level(vocab) < max_level ? row_level(vocab) : max_level;
  NodeId node{0, nodes.begin / kLeaf};
  while (is_first_child(node) && node.level < top && node_end(parent(node), vocab) <= nodes.end) {
    node = parent(node);
  }
  return node;
}

// Number of nodes that first_node yields when it is asked again and again for the rest of the range.
ISOBIT_HD constexpr int64_t count_nodes(IdRange nodes, int64_t vocab, int max_level = kMaxLevel) {
  int64_t count = 0;
  for (; nodes.begin < nodes.end; ++count) nodes.begin = node_end(first_node(nodes, vocab, max_level), vocab);
  return count;
}

}  // namespace isobit::linear_logp
