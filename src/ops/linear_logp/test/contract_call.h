// A legal call and the ways to change it, for the tests of the contract.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "ops/linear_logp/contract.h"
#include "ops/linear_logp/test/problem.h"

namespace isobit::linear_logp::test {

using Args = isobit_linear_logp_args;
using Change = std::function<void(Args*)>;

// A call that is legal as it stands, with every tensor present.
struct Call {
  Call() {
    problem.bias.assign(20, 0.5f);
    problem.temperature.assign(3, 1.5f);
    problem.top = 4;
    outputs = std::make_unique<Outputs>(problem, Outputs::kAll);
    args = problem.args();
    outputs->attach(&args);
    workspace = Guarded(1 << 20);
    args.workspace = workspace.data();
    args.workspace_bytes = workspace.bytes();
  }
  Problem problem = random_problem({3, 8, 20, 2}, 1);
  std::unique_ptr<Outputs> outputs;
  Guarded workspace;
  Args args;
};

inline void expect_refused(const char* message, const Change& change, isobit_status status = ISOBIT_INVALID_ARGUMENT) {
  SCOPED_TRACE(message);
  Call call;
  change(&call.args);
  EXPECT_EQ(isobit_linear_logp(&call.args, nullptr), status);
  EXPECT_NE(std::string(isobit_last_error()).find(message), std::string::npos) << isobit_last_error();
  EXPECT_TRUE(call.outputs->poisoned()) << "a refused call wrote outputs";
  EXPECT_TRUE(call.workspace.poisoned()) << "a refused call wrote its workspace";
}

inline void expect_taken(const char* what, const Change& change) {
  SCOPED_TRACE(what);
  Call call;
  change(&call.args);
  EXPECT_EQ(isobit_linear_logp(&call.args, nullptr), ISOBIT_OK) << isobit_last_error();
}

// The same arguments, checked without running: for sizes that no test machine has memory for.
inline isobit_status query(const Change& change) {
  Call call;
  change(&call.args);
  size_t minimum = 0;
  return isobit_linear_logp_workspace(&call.args, &minimum, nullptr);
}

}  // namespace isobit::linear_logp::test
