// A build without CUDA refuses CUDA tensors by name and launches nothing.
#include <gtest/gtest.h>

#include <string>

#include "ops/geglu/test/problem.h"

namespace isobit::geglu::test {
namespace {

TEST(GegluWithoutCuda, CudaTensorsAreRefused) {
  Problem problem(ISOBIT_BF16, {.rows = 4, .columns = 64}, Values::kNormal);
  isobit_geglu_forward_args args = problem.forward(problem.arena.data(), {ISOBIT_CUDA, 0}, ISOBIT_GELU_TANH);
  EXPECT_EQ(isobit_geglu_forward(&args, nullptr), ISOBIT_UNSUPPORTED);
  EXPECT_NE(std::string(isobit_last_error()).find("this build of isobit has no CUDA"), std::string::npos)
      << isobit_last_error();
  EXPECT_EQ(problem.stray_write(false), "");
}

}  // namespace
}  // namespace isobit::geglu::test
