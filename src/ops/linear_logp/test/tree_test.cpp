#include "ops/linear_logp/tree.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "ops/linear_logp/state.h"
#include "ops/linear_logp/unit.h"

namespace isobit::linear_logp {
namespace {

std::vector<NodeId> nodes_of(IdRange nodes, int64_t vocab, int max_level = kMaxLevel) {
  std::vector<NodeId> list;
  while (nodes.begin < nodes.end) {
    list.push_back(first_node(nodes, vocab, max_level));
    nodes.begin = node_end(list.back(), vocab);
  }
  return list;
}

// Every id of the range is in exactly one part, in order; nodes are complete and as large as they can be.
void expect_partition(int64_t begin, int64_t end, int64_t vocab) {
  SCOPED_TRACE(testing::Message() << "[" << begin << ", " << end << ") of " << vocab);
  const RangeParts parts = range_parts({begin, end}, vocab);
  ASSERT_EQ(parts.front.begin, begin);
  ASSERT_EQ(parts.front.end, parts.nodes.begin);
  ASSERT_EQ(parts.nodes.end, parts.back.begin);
  ASSERT_EQ(parts.back.end, end);
  ASSERT_GE(parts.front.size(), 0);
  ASSERT_GE(parts.nodes.size(), 0);
  ASSERT_GE(parts.back.size(), 0);
  ASSERT_LT(parts.front.size(), kLeaf);
  ASSERT_LT(parts.back.size(), kLeaf);
  for (int64_t id = begin; id < end; ++id) {
    const int64_t leaf_begin = id / kLeaf * kLeaf;
    const bool complete = leaf_begin >= begin && std::min(leaf_begin + kLeaf, vocab) <= end;
    ASSERT_EQ(complete, id >= parts.nodes.begin && id < parts.nodes.end) << id;
  }
  int64_t at = parts.nodes.begin;
  for (const NodeId& node : nodes_of(parts.nodes, vocab)) {
    ASSERT_EQ(node_begin(node), at);
    ASSERT_LE(node.level, row_level(vocab));
    at = node_end(node, vocab);
    ASSERT_LE(at, parts.nodes.end);
    const NodeId above = parent(node);
    const bool larger_fits = node.level < row_level(vocab) && node_begin(above) >= parts.nodes.begin &&
                             node_end(above, vocab) <= parts.nodes.end;
    ASSERT_FALSE(larger_fits);
  }
  ASSERT_EQ(at, parts.nodes.end);
  ASSERT_EQ(count_nodes(parts.nodes, vocab), static_cast<int64_t>(nodes_of(parts.nodes, vocab).size()));
}

TEST(Tree, EveryRangeOfSmallVocabulariesIsCutIntoItsParts) {
  for (const int64_t vocab : {1, 63, 64, 65, 127, 128, 129, 255, 256, 257, 400}) {
    for (int64_t begin = 0; begin <= vocab; ++begin) {
      for (int64_t end = begin; end <= vocab; ++end) {
        expect_partition(begin, end, vocab);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Tree, RangesOfLargeVocabulariesAreCutIntoTheirParts) {
  std::mt19937_64 random(1);
  for (const int64_t vocab : {1023, 1024, 1025, 8191, 8192, 8193, 50257, 65537, 151936}) {
    for (int i = 0; i < 60; ++i) {
      int64_t begin = std::uniform_int_distribution<int64_t>(0, vocab)(random);
      int64_t end = std::uniform_int_distribution<int64_t>(begin, vocab)(random);
      if (i % 3 == 1) begin = begin / kLeaf * kLeaf;
      if (i % 3 == 2) end = vocab;
      expect_partition(begin, end, vocab);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Tree, RowLevelIsTheFirstWhoseNodeCoversTheVocabulary) {
  EXPECT_EQ(row_level(1), 0);
  EXPECT_EQ(row_level(128), 0);
  EXPECT_EQ(row_level(129), 1);
  EXPECT_EQ(row_level(1024), 1);
  EXPECT_EQ(row_level(1025), 2);
  EXPECT_EQ(row_level(8193), 3);
  EXPECT_EQ(row_level(151936), 4);
  EXPECT_EQ(row_level((int64_t{1} << 31) - 1), kMaxLevel);
}

std::vector<float> random_logits(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0f, 30.0f);
  std::vector<float> z(static_cast<size_t>(count));
  for (float& x : z) x = normal(random);
  return z;
}

Node leaf_value(const std::vector<float>& z, int64_t begin) {
  const int64_t vocab = static_cast<int64_t>(z.size());
  return reduce_leaf<true>(z.data() + begin, static_cast<int>(std::min(begin + kLeaf, vocab) - begin));
}

// The definition, top down: a node is the ascending chain of its children.
Node node_value(const std::vector<float>& z, NodeId node) {
  const int64_t vocab = static_cast<int64_t>(z.size());
  if (node.level == 0) return leaf_value(z, node_begin(node));
  Node value = identity_node();
  for (int64_t child = 0; child < kFanOut; ++child) {
    const NodeId id = {node.level - 1, node.index * kFanOut + child};
    if (node_begin(id) < vocab) value = merge<true>(value, node_value(z, id));
  }
  return value;
}

void expect_equal(const Node& a, const Node& b) {
  EXPECT_EQ(a.r, b.r);
  EXPECT_EQ(numerics::float_bits(a.s), numerics::float_bits(b.s));
  EXPECT_EQ(numerics::float_bits(a.q), numerics::float_bits(b.q));
}

TEST(Tree, MergeOfAnyPartitionRebuildsTheRow) {
  std::mt19937_64 random(2);
  for (const int64_t vocab : {1, 64, 65, 128, 129, 1000, 1025, 8193, 20000, 66000}) {
    const std::vector<float> z = random_logits(vocab, 3);
    const Node whole = node_value(z, {row_level(vocab), 0});
    for (int shards = 1; shards <= 16; ++shards) {
      std::vector<int64_t> cuts = {0, vocab};
      for (int i = 1; i < shards; ++i) cuts.push_back(std::uniform_int_distribution<int64_t>(0, vocab)(random));
      std::sort(cuts.begin(), cuts.end());
      Climb<true> climb(vocab, row_level(vocab));
      for (size_t i = 0; i + 1 < cuts.size(); ++i) {
        const RangeParts parts = range_parts({cuts[i], cuts[i + 1]}, vocab);
        const auto raw = [&](IdRange ids) {
          for (int64_t id = ids.begin; id < ids.end; ++id) {
            const NodeId leaf = {0, id / kLeaf};
            if (id + 1 == node_end(leaf, vocab)) climb.push(leaf, leaf_value(z, node_begin(leaf)));
          }
        };
        raw(parts.front);
        for (const NodeId& node : nodes_of(parts.nodes, vocab)) climb.push(node, node_value(z, node));
        raw(parts.back);
      }
      expect_equal(climb.value(), whole);
    }
  }
}

TEST(Tree, LeavesPushedInOrderGiveEveryNode) {
  const int64_t vocab = 20000;
  const std::vector<float> z = random_logits(vocab, 4);
  for (int level = 0; level <= row_level(vocab); ++level) {
    for (int64_t index = 0; index * node_ids(level) < vocab; ++index) {
      const NodeId node = {level, index};
      Climb<true> climb(vocab, level);
      for (const NodeId& leaf : nodes_of({node_begin(node), node_end(node, vocab)}, vocab, 0)) {
        climb.push(leaf, leaf_value(z, node_begin(leaf)));
      }
      expect_equal(climb.value(), node_value(z, node));
    }
  }
}

TEST(State, ArraysFollowOneAnotherAligned) {
  for (const int64_t rows : {0, 1, 3, 4, 17}) {
    const StateLayout layout = state_layout(IdRange{130, 3000}, 50257, rows, 3, true, true);
    EXPECT_EQ(layout.raw_slots, 256 - 130 + 3000 % 128);
    EXPECT_EQ(layout.node_slots, 6 + 1 + 7);
    const int64_t offsets[] = {layout.raw,          layout.r,    layout.s,    layout.q,
                               layout.target_logit, layout.rank, layout.bytes};
    const int64_t slots[] = {layout.raw_slots, layout.node_slots, layout.node_slots, layout.node_slots, 3, 3};
    for (int i = 0; i < 6; ++i) {
      EXPECT_EQ(offsets[i] % 16, 0);
      EXPECT_GE(offsets[i + 1] - offsets[i], slots[i] * rows * 4);
      EXPECT_LT(offsets[i + 1] - offsets[i], slots[i] * rows * 4 + 16);
    }
  }
  EXPECT_EQ(state_layout(IdRange{130, 3000}, 50257, 4, 3, false, false).bytes, ((126 + 56) + 2 * 14 + 3) * 4 * 4);
}

}  // namespace
}  // namespace isobit::linear_logp
