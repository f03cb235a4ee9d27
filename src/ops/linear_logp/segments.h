// How the sums of the backward pass are cut: pure functions of V and of the number of valid rows, the same on host and
// device; docs/bit-contract.md section 3.6.
#pragma once

#include "ops/linear_logp/tree.h"

namespace isobit::linear_logp {

// A chain of products restarts from +0 after so many ids (d_hidden) or valid rows (d_weight, d_bias).
inline constexpr int64_t kPiece = 8192;

// The vocabulary's segments, equal but for the last ones; ids from V on do not exist.
inline constexpr int kSegments = 16;
inline constexpr int kSegmentLevels = 5;  // segment, pair, ..., row

ISOBIT_HD constexpr int64_t segment_ids(int64_t vocab) { return (vocab + kSegments - 1) / kSegments; }

// The existing ids of segment nodes: 2^level segments from segment index * 2^level on.
ISOBIT_HD constexpr IdRange segment_node_ids(NodeId node, int64_t vocab) {
  const int64_t ids = segment_ids(vocab) << node.level;
  const int64_t begin = node.index * ids < vocab ? node.index * ids : vocab;
  return {begin, begin + ids < vocab ? begin + ids : vocab};
}

// The largest node that starts with segment `begin` and ends by segment `end`.
ISOBIT_HD constexpr NodeId largest_segment_node(int64_t begin, int64_t end) {
  NodeId node{0, begin};
  while (node.index % 2 == 0 && node.level + 1 < kSegmentLevels && ((node.index + 2) << node.level) <= end) {
    node = {node.level + 1, node.index / 2};
  }
  return node;
}

// Segments [begin, end) of a range of ids whose borders are borders of segments (or V); `whole` says whether they are.
struct SegmentRange {
  int64_t begin, end;
  bool whole;
};

ISOBIT_HD constexpr SegmentRange segment_range(IdRange ids, int64_t vocab) {
  if (ids.size() == 0) return {0, 0, true};
  const int64_t size = segment_ids(vocab);
  const bool last = ids.end == vocab;
  return {ids.begin / size, last ? kSegments : ids.end / size, ids.begin % size == 0 && (last || ids.end % size == 0)};
}

// Number of nodes that largest_segment_node yields for the rest of a range, again and again.
ISOBIT_HD constexpr int64_t count_segment_nodes(SegmentRange range) {
  int64_t count = 0;
  for (int64_t at = range.begin; at < range.end; ++count) {
    const NodeId node = largest_segment_node(at, range.end);
    at = (node.index + 1) << node.level;
  }
  return count;
}

}  // namespace isobit::linear_logp
