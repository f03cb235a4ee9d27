// FloatEnvironment, parallel_for and the choice of the SIMD target.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <csignal>
#include <limits>
#include <string>
#include <vector>

#include "cpu/float_environment.h"
#include "cpu/parallel_for.h"
#include "cpu/simd_target.h"

namespace isobit::cpu::test {
namespace {

// Not constants, so that the arithmetic happens at run time.
volatile double one = 1.0;
volatile double tiny = 0x1p-60;
volatile float smallest = std::numeric_limits<float>::denorm_min();

TEST(FloatEnvironment, RoundsAsAskedAndRestores) {
  std::fesetround(FE_UPWARD);
  {
    const FloatEnvironment toward_zero(Rounding::kTowardZero);
    const volatile double sum = one - tiny;
    EXPECT_LT(sum, 1.0);
    {
      const FloatEnvironment nearest(Rounding::kNearest);
      const volatile double rounded = one - tiny;
      EXPECT_EQ(rounded, 1.0);
    }
    const volatile double again = one - tiny;
    EXPECT_LT(again, 1.0);
  }
  const volatile double up = one + tiny;
  EXPECT_GT(up, 1.0);
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
}

TEST(FloatEnvironment, KeepsSubnormals) {
#if defined(__x86_64__)
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);
  const volatile float flushed = smallest * 2.0f;
  EXPECT_EQ(flushed, 0.0f);
#endif
  {
    const FloatEnvironment environment(Rounding::kNearest);
    const volatile float kept = smallest * 2.0f;
    EXPECT_GT(kept, 0.0f);
  }
#if defined(__x86_64__)
  EXPECT_EQ(_mm_getcsr() & 0x8040, 0x8040u);
  _mm_setcsr(before);
#endif
}

TEST(ParallelFor, VisitsEveryIndexOnceRoundingToNearest) {
  std::fesetround(FE_DOWNWARD);
  for (const int threads : {1, 2, 3, 8}) {
    for (const int64_t count : {0, 1, 2, 100, 1000}) {
      std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
      std::atomic<int> wrong{0};
      parallel_for(count, threads, [&](int64_t index, int thread) {
        ++visits[static_cast<size_t>(index)];
        const volatile double rounded = one - tiny;
        if (thread < 0 || thread >= threads || rounded != 1.0) ++wrong;
      });
      for (const std::atomic<int>& visit : visits) EXPECT_EQ(visit, 1);
      EXPECT_EQ(wrong, 0);
    }
  }
  EXPECT_EQ(std::fegetround(), FE_DOWNWARD);
  std::fesetround(FE_TONEAREST);
}

TEST(ParallelFor, ThreadCount) {
  EXPECT_GE(thread_count(0), 1);
  EXPECT_GE(thread_count(-5), 1);
#ifdef _OPENMP
  EXPECT_EQ(thread_count(7), 7);
#endif
}

// GNU's OpenMP would wait for workers that the child does not have.
TEST(ParallelFor, AChildOfForkWorksOn) {
  const auto sum = [] {
    std::atomic<int64_t> total{0};
    parallel_for(64, 2, [&](int64_t index, int) { total += index; });
    return total.load();
  };
  ASSERT_EQ(sum(), 2016);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(sum() == 2016 ? 0 : 1);
  int status = -1;
  for (int tenths = 0; tenths < 100 && waitpid(child, &status, WNOHANG) == 0; ++tenths) usleep(100'000);
  if (status == -1) kill(child, SIGKILL);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(SimdTarget, ForcingNeedsSupport) {
  const SimdTarget fastest = best_simd_target();
  EXPECT_TRUE(simd_target_supported(fastest));
  EXPECT_TRUE(simd_target_supported(SimdTarget::kScalar));
  for (const SimdTarget target : {SimdTarget::kScalar, SimdTarget::kAvx2, SimdTarget::kAvx512, SimdTarget::kNeon}) {
    EXPECT_NE(std::string(simd_target_name(target)), "unknown");
    force_simd_target(target);
    EXPECT_EQ(best_simd_target(), simd_target_supported(target) ? target : fastest);
    unforce_simd_target();
  }
  EXPECT_EQ(best_simd_target(), fastest);
}

}  // namespace
}  // namespace isobit::cpu::test
