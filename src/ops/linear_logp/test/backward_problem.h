// Calls and outputs of the backward pass on the CPU for the room's tests.
#pragma once

#include <functional>

#include "ops/linear_logp/backward_reference.h"
#include "ops/linear_logp/test/problem.h"

namespace isobit::linear_logp::test {

using BackwardArgs = isobit_linear_logp_backward_args;

// Upstream gradients; an empty one is absent.
struct UpstreamValues {
  std::vector<float> logp;     // [N, K]
  std::vector<float> lse;      // [N]
  std::vector<float> entropy;  // [N]
};

enum Gradient : unsigned { kHiddenGradient = 1, kWeightGradient = 2, kBiasGradient = 4 };

// The gradients of a call that are wanted.
struct Gradients {
  Gradients(const Problem& problem, unsigned wanted, isobit_dtype dtype);
  void attach(BackwardArgs* args);
  bool guards_intact() const;
  bool poisoned() const { return hidden.poisoned() && weight.poisoned() && bias.poisoned(); }
  std::string bytes() const { return hidden.contents() + weight.contents() + bias.contents(); }
  std::string hidden_row(int64_t row) const;
  double hidden_at(int64_t row, int64_t k) const { return at(hidden, row * width + k); }
  double weight_at(int64_t id, int64_t k) const { return at(weight, id * width + k); }
  double bias_at(int64_t id) const { return at(bias, id); }

  int64_t rows, width, vocab;
  unsigned wanted;
  isobit_dtype dtype;
  Guarded hidden, weight, bias;

 private:
  double at(const Guarded& memory, int64_t index) const;
};

// What a test changes about a call.
struct BackwardOptions {
  unsigned wanted = kHiddenGradient | kWeightGradient;
  isobit_dtype dtype = ISOBIT_FP32;
  Workspace workspace = Workspace::kRecommended;
  int threads = 1;
  bool subtract_p = false;
  bool saves = false;  // isobit_linear_logp_save first, then the backward pass from what it saved
  std::function<void(BackwardArgs*)> change = [](BackwardArgs*) {};
};

// Distinct values for every row and target: bit k of `present` for logp, lse, entropy.
UpstreamValues random_upstream(const Problem& problem, uint64_t seed, unsigned present = 7);
ReferenceUpstream reference_upstream(const UpstreamValues& upstream);

// Inputs only; problem and upstream must outlive the arguments.
BackwardArgs backward_args(const Problem& problem, const UpstreamValues& upstream);

// Workspace of the queried size around `call`; fails the test unless it is OK and the guards hold.
void with_workspace(BackwardArgs args, Workspace workspace,
                    const std::function<isobit_status(const BackwardArgs*)>& call);

Gradients run_backward(const Problem& problem, const UpstreamValues& upstream, const BackwardOptions& options = {});
void run_backward_into(const Problem& problem, const UpstreamValues& upstream, const BackwardOptions& options,
                       Gradients* out);

// What isobit_linear_logp_save leaves.
Guarded save(const Problem& problem, const BackwardOptions& options = {});

}  // namespace isobit::linear_logp::test
