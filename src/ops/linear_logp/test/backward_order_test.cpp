// The written orders of the sums: bytes of the backend against the model, and the model against itself with one rule
// turned off.
#include <gtest/gtest.h>

#include <cstring>

#include "ops/linear_logp/segment_climb.h"
#include "ops/linear_logp/test/backward_model.h"
#include "ops/linear_logp/test/targets.h"

namespace isobit::linear_logp::test {
namespace {

constexpr unsigned kEverything = kHiddenGradient | kWeightGradient | kBiasGradient;

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

void expect_model(const Problem& problem, const UpstreamValues& upstream, BackwardOptions options = {}) {
  options.wanted = problem.bias.empty() ? kHiddenGradient | kWeightGradient : kEverything;
  const ModelGradients want = model_gradients(problem, upstream);
  const Gradients got = run_backward(problem, upstream, options);
  EXPECT_EQ(got.hidden.contents(), bytes_of(want.hidden));
  EXPECT_EQ(got.weight.contents(), bytes_of(want.weight));
  if (!problem.bias.empty()) {
    EXPECT_EQ(got.bias.contents(), bytes_of(want.bias));
  }
}

// Every option, targets that repeat, ignored ones, and sizes that are multiples of nothing.
Problem rich_problem(const Shape& shape) {
  Problem p = random_problem(shape, 31);
  for (int64_t v = 0; v < shape.vocab; ++v) p.bias.push_back(0.5f * static_cast<float>(v % 7) - 1.0f);
  for (int64_t n = 0; n < shape.rows; ++n) p.temperature.push_back(n % 3 == 0 ? 1.0f : 0.7f);
  p.softcap = 12.0f;
  for (int64_t k = 0; k < shape.targets; ++k) p.target[shape.targets + k] = p.ignore_index;
  p.target[0] = p.ignore_index;
  p.target[2 * shape.targets] = p.target[2 * shape.targets + 1];
  return p;
}

TEST(BackwardOrder, SmallShapesOnEveryTarget) {
  for_each_target([] {
    for (const Shape& shape : {Shape{1, 1, 1}, {3, 16, 5}, {5, 24, 100}, {70, 20, 33}}) {
      const Problem p = random_problem(shape, 3);
      expect_model(p, random_upstream(p, 4));
      expect_model(p, random_upstream(p, 4, 1));
    }
    const Problem p = rich_problem({21, 40, 150, 3});
    expect_model(p, random_upstream(p, 4));
  });
}

// A segment of more than 8,192 ids, so that its chains restart.
TEST(BackwardOrder, LongSegments) {
  const Problem p = random_problem({1, 16, 16 * 8192 + 1600}, 3);
  const UpstreamValues upstream = random_upstream(p, 4);
  expect_model(p, upstream);
  const std::string right = bytes_of(model_gradients(p, upstream).hidden);
  EXPECT_NE(right, bytes_of(model_gradients(p, upstream, {.piece = 4096}).hidden));
  EXPECT_NE(right, bytes_of(model_gradients(p, upstream, {.piece = 16384}).hidden));
}

// More than 8,192 valid rows, with ignored ones among them.
TEST(BackwardOrder, ManyRows) {
  Problem p = random_problem({8400, 8, 10}, 3);
  for (int64_t n = 0; n < 8400; n += 71) p.target[n] = p.ignore_index;
  const UpstreamValues upstream = random_upstream(p, 4);
  expect_model(p, upstream);
  const std::string right = bytes_of(model_gradients(p, upstream).weight);
  EXPECT_NE(right, bytes_of(model_gradients(p, upstream, {.piece = 4096}).weight));
  EXPECT_NE(right, bytes_of(model_gradients(p, upstream, {.piece = 16384}).weight));
}

TEST(BackwardOrder, TheModelNoticesEveryRule) {
  const Problem p = rich_problem({21, 40, 150, 3});
  const UpstreamValues upstream = random_upstream(p, 4);
  const ModelGradients right = model_gradients(p, upstream);
  EXPECT_NE(bytes_of(right.hidden), bytes_of(model_gradients(p, upstream, {.ascending_segments = true}).hidden));
  EXPECT_NE(bytes_of(right.weight), bytes_of(model_gradients(p, upstream, {.counts_ignored_rows = true}).weight));
  EXPECT_NE(bytes_of(right.hidden), bytes_of(model_gradients(p, upstream, {.rounds_dt_twice = true}).hidden));
}

TEST(BackwardOrder, SegmentsCoverTheVocabulary) {
  for (const int64_t vocab : {1, 2, 15, 16, 17, 100, 50257, 151936, 262208}) {
    int64_t covered = 0;
    for (int64_t segment = 0; segment < kSegments; ++segment) {
      const IdRange ids = segment_node_ids({0, segment}, vocab);
      EXPECT_EQ(ids.begin, covered);
      EXPECT_LE(ids.size(), segment_ids(vocab));
      covered = ids.end;
    }
    EXPECT_EQ(covered, vocab);
    EXPECT_EQ(count_segment_nodes(segment_range({0, vocab}, vocab)), 1);
    const IdRange row = segment_node_ids({kSegmentLevels - 1, 0}, vocab);
    EXPECT_EQ(row.begin, 0);
    EXPECT_EQ(row.end, vocab);
  }
}

// Any cut of the 16 segments into ranges of whole nodes gives the tree's value.
TEST(BackwardOrder, ClimbFromAnyNodes) {
  constexpr int64_t kVocab = 160;
  float values[kSegments];
  for (int i = 0; i < kSegments; ++i) values[i] = 1.0f / static_cast<float>(3 * i + 1);
  const auto node_value = [&](NodeId node, float* out) {
    float levels[kSegmentLevels] = {};
    SegmentClimb climb(node, kVocab, levels, 1);
    for (int64_t s = node.index << node.level; s < (node.index + 1) << node.level; ++s) climb.push({0, s}, values + s);
    *out = climb.value()[0];
  };
  float whole = 0.0f;
  node_value({kSegmentLevels - 1, 0}, &whole);
  for (int64_t cut = 0; cut <= kSegments; ++cut) {
    float levels[kSegmentLevels] = {};
    SegmentClimb climb({kSegmentLevels - 1, 0}, kVocab, levels, 1);
    for (const auto& [begin, end] : {std::pair{int64_t{0}, cut}, {cut, int64_t{kSegments}}}) {
      for (int64_t at = begin; at < end;) {
        const NodeId node = largest_segment_node(at, end);
        float value = 0.0f;
        node_value(node, &value);
        climb.push(node, &value);
        at = (node.index + 1) << node.level;
      }
    }
    EXPECT_EQ(climb.value()[0], whole) << "cut at " << cut;
  }
}

}  // namespace
}  // namespace isobit::linear_logp::test
