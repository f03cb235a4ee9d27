// The tree of segment sums; docs/bit-contract.md section 3.6.
#pragma once

#include <algorithm>

#include "ops/linear_logp/segments.h"

namespace isobit::linear_logp {

// Takes the sums of segment nodes in ascending order, without gaps, `count` values each, and leaves the node `root`
// that they are together. Memory of the caller: [kSegmentLevels][count].
class SegmentClimb {
 public:
  SegmentClimb(NodeId root, int64_t vocab, float* levels, int64_t count)
      : root_(root), vocab_(vocab), levels_(levels), count_(count) {}

  void push(NodeId id, const float* value) {
    while (id.level < root_.level) {
      float* const mine = level(id.level);
      if (id.index % 2 != 0) {
        for (int64_t i = 0; i < count_; ++i) mine[i] = mine[i] + value[i];
        value = mine;
      } else if (segment_node_ids({id.level, id.index + 1}, vocab_).size() > 0) {
        std::copy_n(value, count_, mine);
        return;
      }
      id = {id.level + 1, id.index / 2};
    }
    std::copy_n(value, count_, level(root_.level));
  }

  const float* value() const { return level(root_.level); }

 private:
  float* level(int l) const { return levels_ + l * count_; }

  NodeId root_;
  int64_t vocab_;
  float* levels_;
  int64_t count_;
};

}  // namespace isobit::linear_logp
