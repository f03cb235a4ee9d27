// What the tests of the NVFP4 products share. A room's Problem has its matrices in `arena` and names the room's entry
// functions as kCalls; args(base, device) are the call's arguments for a copy of the arena at `base`.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nvfp4/test/operands.h"

namespace isobit::test {

// The entry functions of an operator.
template <class Args>
struct Calls {
  isobit_status (*run)(const Args* args, void* stream);
  isobit_status (*supported)(const Args* args, char* why, size_t n);
  isobit_status (*workspace)(const Args* args, size_t* minimum, size_t* recommended);
};

// A workspace's bytes and 256 more on either side that nobody may write.
struct GuardedBytes {
  static constexpr size_t kGuard = 256;
  explicit GuardedBytes(size_t bytes) : all(bytes + 2 * kGuard, Arena::kPoison) {}
  bool intact() const {
    const auto poisoned = [](std::byte b) { return b == Arena::kPoison; };
    return std::all_of(all.begin(), all.begin() + kGuard, poisoned) &&
           std::all_of(all.end() - kGuard, all.end(), poisoned);
  }
  std::vector<std::byte> all;
};

// Runs a call on the CPU with a workspace of exactly the size that it asks for.
template <class Args>
isobit_status run_on_cpu(const Calls<Args>& calls, Args args, int threads, bool minimum_workspace) {
  args.threads = threads;
  size_t minimum = 0, recommended = 0;
  if (const isobit_status s = calls.workspace(&args, &minimum, &recommended); s != ISOBIT_OK) return s;
  args.workspace_bytes = minimum_workspace ? minimum : recommended;
  GuardedBytes memory(args.workspace_bytes + 256);
  std::byte* const first = memory.all.data() + GuardedBytes::kGuard;
  args.workspace = first + (256 - reinterpret_cast<uintptr_t>(first) % 256) % 256;
  const isobit_status status = calls.run(&args, nullptr);
  return status == ISOBIT_OK && !memory.intact() ? ISOBIT_INTERNAL_ERROR : status;
}

// Arguments that are refused, and that nothing is written then.
template <class Problem>
class ContractTest : public testing::Test {
 protected:
  using Args = typename Problem::Args;
  using Change = std::function<void(Args&)>;
  static constexpr Calls<Args> kCalls = Problem::kCalls;

  explicit ContractTest(const typename Problem::ShapeType& shape) : problem_(shape) {}

  void refused(const Change& change, const std::string& message, isobit_status status = ISOBIT_INVALID_ARGUMENT) {
    Args args = with_workspace();
    change(args);
    const std::vector<std::byte> before = problem_.arena.bytes;
    char why[512];
    EXPECT_EQ(kCalls.supported(&args, why, sizeof why), status);
    EXPECT_NE(std::string(why).find(message), std::string::npos) << why;
    EXPECT_EQ(kCalls.run(&args, nullptr), status);
    EXPECT_EQ(problem_.arena.bytes, before);
  }
  Args with_workspace() {
    Args args = problem_.args();
    args.workspace = memory_;
    args.workspace_bytes = sizeof memory_;
    return args;
  }
  // The rules that every operator with a workspace has.
  void refuses_unusable_structs_and_workspaces() {
    EXPECT_EQ(kCalls.run(nullptr, nullptr), ISOBIT_INVALID_ARGUMENT);
    refused([](Args& a) { a.struct_size = 8; }, "struct_size");
    refused([](Args& a) { a.kernel = "sm75"; }, "kernel: expected the name of a row");
    size_t minimum = 0, recommended = 0;
    const Args args = problem_.args();
    ASSERT_EQ(kCalls.workspace(&args, &minimum, &recommended), ISOBIT_OK);
    EXPECT_LE(minimum, recommended);
    refused([&](Args& a) { a.workspace_bytes = minimum - 1; }, "workspace_bytes: expected", ISOBIT_WORKSPACE_TOO_SMALL);
    refused([](Args& a) { a.workspace = nullptr; }, "workspace: expected a pointer");
    refused([](Args& a) { a.workspace = static_cast<char*>(a.workspace) + 64; }, "aligned to 256 bytes");
  }

  Problem problem_;
  alignas(256) std::byte memory_[1 << 20];
};

}  // namespace isobit::test
