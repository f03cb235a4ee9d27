// The bytes of a call over ranks against those of a call on one device.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "nccl/test/memory_transport.h"
#include "ops/linear_logp/test/problem.h"

namespace isobit::nccl::test {
namespace {

using linear_logp::test::Guarded;
using linear_logp::test::Outputs;
using linear_logp::test::Problem;
using linear_logp::test::random_problem;
using linear_logp::test::shard_args;

constexpr unsigned kWanted = Outputs::kLogp | Outputs::kLse | Outputs::kEntropy | Outputs::kLogit;

// Two calls of one rank, each with fresh memory.
Status run_rank(MemoryNetwork* network, int rank, const Problem& problem, const std::vector<int64_t>& borders,
                unsigned wanted, std::string* bytes) {
  const auto index = static_cast<size_t>(rank);
  isobit_linear_logp_args args = shard_args(problem, borders[index], borders[index + 1]);
  args.threads = 1;
  Outputs shape(problem, wanted);
  shape.attach(&args);
  std::unique_ptr<Group> group;
  if (Status s = Group::create(network->transport(rank), &args, 20000, &group); !s.ok()) return s;
  size_t minimum = 0;
  if (Status s = group->workspace(&args, &minimum, nullptr); !s.ok()) return s;
  for (int call = 0; call < 2; ++call) {
    Guarded workspace(minimum);
    Outputs outputs(problem, wanted);
    outputs.attach(&args);
    args.workspace = workspace.data();
    args.workspace_bytes = workspace.bytes();
    if (Status s = group->linear_logp(&args, nullptr); !s.ok()) return s;
    EXPECT_TRUE(workspace.guards_intact());
    EXPECT_TRUE(outputs.guards_intact());
    EXPECT_TRUE(call == 0 || outputs.bytes() == *bytes);
    *bytes = outputs.bytes();
  }
  return Status();
}

// The bytes that every rank got.
std::vector<std::string> run_ranks(const Problem& problem, const std::vector<int64_t>& borders,
                                   unsigned wanted = kWanted,
                                   MemoryNetwork::Fault fault = MemoryNetwork::Fault::kNone) {
  const int ranks = static_cast<int>(borders.size()) - 1;
  MemoryNetwork network(ranks, fault);
  std::vector<std::string> bytes(static_cast<size_t>(ranks));
  const auto answers = on_ranks(ranks, [&](int rank) {
    return run_rank(&network, rank, problem, borders, wanted, &bytes[static_cast<size_t>(rank)]);
  });
  for (const Answer& answer : answers) EXPECT_EQ(answer.status, ISOBIT_OK) << answer.message;
  EXPECT_EQ(network.gathers(), problem.shape.rows > 0 ? 3 : 1) << "an exchange at creation, a gather in each call";
  return bytes;
}

Problem problem_with_options(int64_t vocab) {
  Problem p = random_problem({5, 24, vocab, 2}, 51, 6.0f);
  p.softcap = 25.0f;
  for (int64_t v = 0; v < vocab; ++v) p.bias.push_back(static_cast<float>(v % 13) * 0.125f);
  for (int64_t n = 0; n < p.shape.rows; ++n) p.temperature.push_back(0.5f + static_cast<float>(n) * 0.25f);
  p.target[0] = p.target[1] = p.target[2] = -100;  // a row that is ignored, and one of another's targets
  p.target[4] = vocab;                             // outside [0, V)
  return p;
}

void expect_bytes(const Problem& p, const std::vector<int64_t>& borders, unsigned wanted = kWanted) {
  const std::string one = linear_logp::test::run(p, wanted).bytes();
  for (const std::string& bytes : run_ranks(p, borders, wanted))
    ASSERT_EQ(bytes, one) << borders.size() - 1 << " ranks";
}

TEST(NcclGroup, AnyNumberOfRanksWithOddBorders) {
  std::mt19937_64 random(52);
  for (const int64_t vocab : {65, 1025, 2817}) {
    const Problem p = problem_with_options(vocab);
    for (const int ranks : {1, 2, 3, 4, 8, 16}) {
      std::vector<int64_t> borders = {0, vocab};
      for (int i = 1; i < ranks; ++i)
        borders.push_back(std::uniform_int_distribution<int64_t>(0, vocab - 1)(random) | 1);
      std::sort(borders.begin(), borders.end());
      expect_bytes(p, borders);
    }
  }
}

TEST(NcclGroup, EqualSharesAndRanksWithoutIds) {
  const Problem p = problem_with_options(1024);
  expect_bytes(p, {0, 512, 1024});
  expect_bytes(p, {0, 0, 300, 301, 301, 1024, 1024});
  expect_bytes(p, {0, 0, 1024});
}

TEST(NcclGroup, FewerOutputs) {
  const Problem p = problem_with_options(700);
  for (const unsigned wanted : {Outputs::kLogp, Outputs::kLse, Outputs::kEntropy})
    expect_bytes(p, {0, 333, 700}, wanted);
}

TEST(NcclGroup, NoRows) {
  Problem p = random_problem({0, 24, 300}, 53);
  expect_bytes(p, {0, 151, 300});
}

TEST(NcclGroup, AFaultInTheStatesIsSeen) {
  const Problem p = problem_with_options(1024);
  const std::string one = linear_logp::test::run(p, kWanted).bytes();
  for (const auto fault : {MemoryNetwork::Fault::kLostState, MemoryNetwork::Fault::kFlippedBits}) {
    for (const std::string& bytes : run_ranks(p, {0, 509, 1024}, kWanted, fault)) EXPECT_NE(bytes, one);
  }
}

}  // namespace
}  // namespace isobit::nccl::test
