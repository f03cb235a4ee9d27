// The C functions on a machine without a GPU: what they refuse before NCCL is asked for anything.
#include <gtest/gtest.h>

#include "isobit/tensor_parallel.h"

namespace {

TEST(NcclApi, RefusalsNameTheArgument) {
  isobit_linear_logp_args args = ISOBIT_LINEAR_LOGP_ARGS_INIT;
  isobit_tp* tp = nullptr;
  EXPECT_EQ(isobit_tp_create(nullptr, &args, 1000, &tp), ISOBIT_INVALID_ARGUMENT);
  EXPECT_STREQ(isobit_tp_last_error(), "communicator: expected an ncclComm_t, got null");
  EXPECT_EQ(isobit_tp_create(&args, &args, 1000, nullptr), ISOBIT_INVALID_ARGUMENT);
  EXPECT_STREQ(isobit_tp_last_error(), "tp: expected a pointer, got null");
  size_t bytes = 0;
  EXPECT_EQ(isobit_tp_state_bytes(nullptr, &bytes), ISOBIT_INVALID_ARGUMENT);
  EXPECT_EQ(isobit_tp_workspace(nullptr, &args, &bytes, nullptr), ISOBIT_INVALID_ARGUMENT);
  EXPECT_EQ(isobit_tp_linear_logp(nullptr, &args, nullptr), ISOBIT_INVALID_ARGUMENT);
  isobit_tp_destroy(nullptr);
  EXPECT_EQ(tp, nullptr);
}

TEST(NcclApi, AProcessWithoutNccl) {
  isobit_linear_logp_args args = ISOBIT_LINEAR_LOGP_ARGS_INIT;
  isobit_tp* tp = nullptr;
  EXPECT_EQ(isobit_tp_create(&args, &args, 1000, &tp), ISOBIT_UNSUPPORTED);
  EXPECT_STREQ(isobit_tp_last_error(), "communicator: expected a process with NCCL (libnccl.so.2) loaded, got none");
}

}  // namespace
