#include "ops/linear_logp/test/backward_problem.h"

#include <gtest/gtest.h>

#include "numerics/bf16.h"

namespace isobit::linear_logp::test {

Gradients::Gradients(const Problem& problem, unsigned wanted_gradients, isobit_dtype format)
    : rows(problem.shape.rows),
      width(problem.shape.width),
      vocab(problem.shape.vocab),
      wanted(wanted_gradients),
      dtype(format) {
  const size_t element = dtype == ISOBIT_FP32 ? 4 : 2;
  if ((wanted & kHiddenGradient) != 0) hidden = Guarded(static_cast<size_t>(rows * width) * element);
  if ((wanted & kWeightGradient) != 0) weight = Guarded(static_cast<size_t>(vocab * width) * element);
  if ((wanted & kBiasGradient) != 0) bias = Guarded(static_cast<size_t>(vocab) * element);
}

void Gradients::attach(BackwardArgs* args) {
  if ((wanted & kHiddenGradient) != 0) args->d_hidden = matrix(hidden.data(), dtype, rows, width);
  if ((wanted & kWeightGradient) != 0) args->d_weight = matrix(weight.data(), dtype, vocab, width);
  if ((wanted & kBiasGradient) != 0) args->d_bias = vector(bias.data(), dtype, vocab);
}

bool Gradients::guards_intact() const {
  return hidden.guards_intact() && weight.guards_intact() && bias.guards_intact();
}

std::string Gradients::hidden_row(int64_t row) const {
  const size_t bytes = static_cast<size_t>(width) * (dtype == ISOBIT_FP32 ? 4 : 2);
  return {hidden.as<char>() + static_cast<size_t>(row) * bytes, bytes};
}

double Gradients::at(const Guarded& memory, int64_t index) const {
  return dtype == ISOBIT_FP32 ? memory.as<float>()[index] : numerics::bf16_to_float(memory.as<uint16_t>()[index]);
}

UpstreamValues random_upstream(const Problem& problem, uint64_t seed, unsigned present) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  UpstreamValues out;
  for (int64_t i = 0; i < problem.shape.rows * problem.shape.targets && (present & 1) != 0; ++i) {
    out.logp.push_back(normal(random));
  }
  for (int64_t n = 0; n < problem.shape.rows && (present & 2) != 0; ++n) out.lse.push_back(normal(random));
  for (int64_t n = 0; n < problem.shape.rows && (present & 4) != 0; ++n) out.entropy.push_back(normal(random));
  return out;
}

ReferenceUpstream reference_upstream(const UpstreamValues& upstream) {
  return {{upstream.logp.begin(), upstream.logp.end()},
          {upstream.lse.begin(), upstream.lse.end()},
          {upstream.entropy.begin(), upstream.entropy.end()}};
}

BackwardArgs backward_args(const Problem& problem, const UpstreamValues& upstream) {
  BackwardArgs args = ISOBIT_LINEAR_LOGP_BACKWARD_ARGS_INIT;
  args.forward = problem.args();
  if (!upstream.logp.empty()) {
    args.d_logp = matrix(upstream.logp.data(), ISOBIT_FP32, problem.shape.rows, problem.shape.targets);
    args.d_logp.rank = args.forward.target.rank;
    if (args.d_logp.rank == 1) args.d_logp.stride[0] = 1;
  }
  if (!upstream.lse.empty()) args.d_lse = vector(upstream.lse.data(), ISOBIT_FP32, problem.shape.rows);
  if (!upstream.entropy.empty()) args.d_entropy = vector(upstream.entropy.data(), ISOBIT_FP32, problem.shape.rows);
  return args;
}

void with_workspace(BackwardArgs args, Workspace workspace,
                    const std::function<isobit_status(const BackwardArgs*)>& call) {
  size_t minimum = 0;
  size_t recommended = 0;
  ASSERT_EQ(isobit_linear_logp_backward_workspace(&args, &minimum, &recommended), ISOBIT_OK) << isobit_last_error();
  ASSERT_LE(minimum, recommended);
  Guarded memory(workspace == Workspace::kMinimum ? minimum : recommended);
  args.forward.workspace = memory.data();
  args.forward.workspace_bytes = memory.bytes();
  EXPECT_EQ(call(&args), ISOBIT_OK) << isobit_last_error();
  EXPECT_TRUE(memory.guards_intact());
}

Guarded save(const Problem& problem, const BackwardOptions& options) {
  const UpstreamValues none;
  BackwardArgs args = backward_args(problem, none);
  args.forward.threads = options.threads;
  args.subtract_p = options.subtract_p ? 1 : 0;
  size_t bytes = 0;
  EXPECT_EQ(isobit_linear_logp_saved_bytes(&args, &bytes), ISOBIT_OK) << isobit_last_error();
  Guarded saved(bytes);
  args.saved = saved.data();
  with_workspace(args, options.workspace, [](const BackwardArgs* a) { return isobit_linear_logp_save(a, nullptr); });
  EXPECT_TRUE(saved.guards_intact());
  return saved;
}

void run_backward_into(const Problem& problem, const UpstreamValues& upstream, const BackwardOptions& options,
                       Gradients* out) {
  BackwardArgs args = backward_args(problem, upstream);
  args.forward.threads = options.threads;
  args.subtract_p = options.subtract_p ? 1 : 0;
  out->attach(&args);
  Guarded saved;
  if (options.saves) {
    saved = save(problem, options);
    args.saved = saved.data();
  }
  options.change(&args);
  with_workspace(args, options.workspace,
                 [](const BackwardArgs* a) { return isobit_linear_logp_backward(a, nullptr); });
  EXPECT_TRUE(out->guards_intact());
}

Gradients run_backward(const Problem& problem, const UpstreamValues& upstream, const BackwardOptions& options) {
  Gradients out(problem, options.wanted, options.dtype);
  run_backward_into(problem, upstream, options, &out);
  return out;
}

}  // namespace isobit::linear_logp::test
