// Tensor memory and tcgen05.
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "ptx/arithmetic/tensor_arithmetic.h"
#include "ptx/test/snippet.h"
#include "ptx/test/tensor_tile.h"

namespace isobit::ptx::test {
namespace {

class TensorTile : public testing::TestWithParam<TileKind> {};

TEST_P(TensorTile, GivesTheExactProductInEverySchedule) {
  const std::string text = tile_text(GetParam());
  for (const ScheduleCase& schedule : kScheduleCases) {
    const TileResult result = run_tile(text, GetParam(), schedule);
    ASSERT_EQ(result.error, "");
    EXPECT_EQ(result.report.text(), "") << schedule.name;
    EXPECT_EQ(result.out, tile_expected(GetParam())) << schedule.name;
    EXPECT_EQ(result.report.statistics.mma, 8u);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, TensorTile,
                         testing::Values(TileKind::kNvfp4, TileKind::kBf16, TileKind::kBf16ColumnsOfB));

std::string with(std::string text, const std::string& mark, const std::string& replacement) {
  const size_t at = text.find(mark);
  return at == std::string::npos ? std::string() : text.replace(at, mark.size(), replacement);
}

// Fills D with `value` before the first turn.
std::string filled(const std::string& text, const std::string& value) {
  std::string vector;
  for (int i = 0; i < kTileN; ++i) vector += i == 0 ? "%v0" : ", %v0";
  return with(text, "  mov.b32 %r8, 0;\n",
              "  mov.b32 %v0, " + value +
                  ";\n  shl.b32 %r20, %r3, 21;\n  add.u32 %r20, %r20, %r7;\n"
                  "  tcgen05.st.sync.aligned.32x32b.x32.b32 [%r20], {" +
                  vector +
                  "};\n"
                  "  tcgen05.wait::st.sync.aligned;\n  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n"
                  "  tcgen05.fence::after_thread_sync;\n  mov.b32 %r8, 0;\n");
}

TEST(Tensor, StoredValuesAreWhatAProductAddsTo) {
  const std::string text =
      with(filled(tile_text(TileKind::kBf16), "0f41200000"), "or.b32 %r17, %r15, %r8;", "mov.b32 %r17, 1;");
  std::vector<float> expected = tile_expected(TileKind::kBf16);
  for (float& x : expected) x += 10;
  for (const ScheduleCase& schedule : kScheduleCases) {
    const TileResult result = run_tile(text, TileKind::kBf16, schedule);
    EXPECT_EQ(result.error + result.report.text(), "") << schedule.name;
    EXPECT_EQ(result.out, expected) << schedule.name;
  }
}

TEST(Tensor, AStoreNeedsItsWaitAndBothFences) {
  const std::string text = filled(tile_text(TileKind::kBf16), "0");
  const auto kind = [](const std::string& t) {
    const TileResult result = run_tile(t, TileKind::kBf16, kScheduleCases[0]);
    return result.report.ok() ? std::string("none") + result.error : name_of(result.report.findings[0].kind);
  };
  EXPECT_EQ(kind(text), "none");
  EXPECT_EQ(kind(with(text, "tcgen05.wait::st.sync.aligned;", "")), "race");
  EXPECT_EQ(kind(with(text, "tcgen05.fence::before_thread_sync;", "")), "tensor-fence");
  EXPECT_EQ(kind(with(text, "tcgen05.fence::after_thread_sync;", "")), "tensor-fence");
}

// Rows 16 to 31 lie in lanes 32 to 47, and so on; the other lanes keep what they had.
TEST(Tensor, SixtyFourRowsUseHalfOfTheLanes) {
  const std::string text = with(filled(tile_text(TileKind::kBf16), "0"), "0x08080490", "0x04080490");
  const TileResult result = run_tile(text, TileKind::kBf16, kScheduleCases[0]);
  ASSERT_EQ(result.error + result.report.text(), "");
  const std::vector<float> expected = tile_expected(TileKind::kBf16);
  for (size_t lane = 0; lane < kTileM; ++lane) {
    const size_t row = lane / 32 * 16 + lane % 16;
    for (size_t n = 0; n < kTileN; ++n)
      EXPECT_EQ(result.out[lane * kTileN + n], lane % 32 < 16 ? expected[row * kTileN + n] : 0.0f);
  }
}

TEST(Tensor, DisabledLanesKeepTheirValues) {
  const std::string text = with(filled(tile_text(TileKind::kBf16), "0f3F800000"), "%d5, %d6, %r16, %p11;",
                                "%d5, %d6, %r16, {1, 0, 0, -1}, %p11;");
  const TileResult result = run_tile(text, TileKind::kBf16, kScheduleCases[0]);
  ASSERT_EQ(result.error + result.report.text(), "");
  const std::vector<float> expected = tile_expected(TileKind::kBf16);
  for (size_t m = 0; m < kTileM; ++m)
    EXPECT_EQ(result.out[m * kTileN], m == 0 || m >= 96 ? 1.0f : expected[m * kTileN]) << m;
}

TEST(Tensor, SignsOfTheInstructionDescriptorNegate) {
  std::vector<float> expected = tile_expected(TileKind::kBf16);
  for (float& x : expected) x = 0 - x;
  for (const char* descriptor : {"0x0808a490", "0x0808c490"}) {  // also M- and N-major, which is undone below
    const uint32_t bits = static_cast<uint32_t>(std::stoul(descriptor, nullptr, 16)) & ~0x18000u;
    const TileResult result = run_tile(with(tile_text(TileKind::kBf16), "0x08080490", std::to_string(bits)),
                                       TileKind::kBf16, kScheduleCases[0]);
    EXPECT_EQ(result.out, expected) << descriptor;
  }
}

TEST(Tensor, MulticastCommitArrivesInEveryCtaOfTheMask) {
  const std::string body = R"(
    mov.u32 %r20, %cluster_ctarank; setp.eq.u32 %p1, %r60, 0; mov.u32 %r21, space;
    @%p1 mbarrier.init.shared.b64 [%r21], 1; fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    setp.eq.u32 %p2, %r20, 0; and.pred %p2, %p1, %p2; mov.b16 %h1, MASK;
    @%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r21], %h1;
    WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [%r21], 0; @!%p3 bra WAIT;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;)";
  SnippetOptions options;
  options.grid = options.cluster = 2;
  options.machine.check_races = true;
  for (const ScheduleCase& schedule : kScheduleCases) {
    options.machine.schedule = schedule.schedule;
    const SnippetResult both = run_snippet(with(body, "MASK", "3"), {{1}}, options);
    EXPECT_EQ(both.error + both.report.text(), "") << schedule.name;
  }
  const SnippetResult one = run_snippet(with(body, "MASK", "1"), {{1}}, options);
  ASSERT_FALSE(one.report.ok());
  EXPECT_EQ(one.report.findings[0].kind, FindingKind::kDeadlock);
}

TEST(Tensor, AllocationRules) {
  const auto kind = [](const std::string& body) {
    const SnippetResult result = run_snippet("mov.u32 %r20, space;" + body, {{1}}, {});
    return result.report.ok() ? std::string("none") + result.error : name_of(result.report.findings[0].kind);
  };
  const std::string alloc =
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r20], N; ld.shared.b32 %r21, [%r20];";
  const std::string release = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r21, N;";
  const auto n = [](const std::string& text, const char* columns) {
    return with(text, "N;", std::string(columns) + ";");
  };
  EXPECT_EQ(kind(n(alloc, "64") + n(release, "64")), "none");
  EXPECT_EQ(kind(n(alloc, "64") + n(release, "64") + n(alloc, "64") + n(release, "64")), "none");
  EXPECT_EQ(kind(n(alloc, "64") + n(alloc, "128")), "tensor-memory") << "allocations may not grow";
  EXPECT_EQ(kind(n(alloc, "512") + n(alloc, "32")), "deadlock") << "no columns are left";
  EXPECT_EQ(kind(n(alloc, "16")), "tensor-memory");
  EXPECT_EQ(kind(n(alloc, "64")), "tensor-memory") << "never given back";
  EXPECT_EQ(kind("mov.b32 %r21, 0;" + n(release, "32")), "tensor-memory");
  EXPECT_EQ(kind("setp.lt.u32 %p1, %r60, 16; @%p1 bra L;" + n(alloc, "32") + "L:"), "convergence");
}

TEST(Tensor, ACancelledClusterIsDoneByTheOneThatTookIt) {
  const std::string body = R"({ .reg .b128 %q; .reg .b32 %x;
    mov.u32 %r20, space; setp.ne.u32 %p1, %r60, 0; @%p1 bra END;
    mbarrier.init.shared.b64 [%r20+24], 1; fence.mbarrier_init.release.cluster; add.u32 %r21, %r20, 24; mov.b32 %r22, 0;
    NEXT: mbarrier.arrive.expect_tx.shared.b64 _, [%r21], 16;
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r20], [%r21];
    WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r21], %r22; @!%p2 bra WAIT;
    ld.shared.b128 %q, [%r20];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q; @!%p3 bra END;
    clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%x, _, _, _}, %q;
    mad.lo.u32 %r10, %r10, 10, %x;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r11, %q;
    xor.b32 %r22, %r22, 1; bra NEXT; END: })";
  SnippetOptions options;
  options.grid = 3;
  options.machine.resident_clusters = 1;
  options.machine.check_races = true;
  const SnippetResult result = run_snippet(body, {{1}}, options);
  ASSERT_EQ(result.error + result.report.text(), "");
  EXPECT_EQ(result.out[0][0], 12u);
  EXPECT_EQ(result.out[0][1], 2u);
  EXPECT_EQ(result.out[32][0], 0xAAAAAAAA) << "cluster 1 never ran";

  const auto kind = [&](const char* find, const char* put) {
    const SnippetResult mutant = run_snippet(with(body, find, put), {{1}}, options);
    return mutant.report.ok() ? std::string("none") + mutant.error : name_of(mutant.report.findings[0].kind);
  };
  EXPECT_EQ(kind("mbarrier.try_wait.parity.shared.b64 %p2, [%r21], %r22;", "setp.eq.u32 %p2, 0, 0;"), "race");
  EXPECT_EQ(kind("_, [%r21], 16;", "_, [%r21], 8;"), "deadlock");
  EXPECT_EQ(kind("fence.mbarrier_init.release.cluster;", ""), "proxy-fence");
  EXPECT_EQ(kind("@!%p3 bra END;", ""), "launch");
  EXPECT_EQ(kind("[%r20], [%r21];", "[%r21], [%r21];"), "misaligned") << "the barrier lies at an odd multiple of 8";
}

TEST(Tensor, WrongMajorsAndTypesOfTheInstructionDescriptorShow) {
  const TileKind kind = TileKind::kBf16ColumnsOfB;
  for (const char* descriptor : {"0x08080490", "0x08098490", "0x08090010"}) {  // B K-major, A M-major, fp16
    const TileResult result = run_tile(with(tile_text(kind), "0x08090490", descriptor), kind, kScheduleCases[0]);
    EXPECT_EQ(result.error, "");
    EXPECT_TRUE(!result.report.ok() || result.out != tile_expected(kind)) << descriptor;
  }
}

TEST(Tensor, ScaledProductsAreSummedExactlyAndRoundedOnce) {
  std::mt19937_64 random(5);
  constexpr int kM = 8, kN = 24;
  std::vector<uint8_t> a(kM * 32), b(kN * 32);
  std::vector<uint32_t> a_scales(kM), b_scales(kN);
  for (int round = 0; round < 20; ++round) {
    for (uint8_t& x : a) x = static_cast<uint8_t>(random());
    for (uint8_t& x : b) x = static_cast<uint8_t>(random());
    for (auto* scales : {&a_scales, &b_scales}) {
      for (uint32_t& x : *scales) x = static_cast<uint32_t>(random()) & 0x77777777;
    }
    std::vector<float> d(kM * kN);
    for (float& x : d)
      x = std::ldexp(static_cast<float>(random() % 8192) - 4096.0f, static_cast<int>(random() % 8) - 8);
    std::vector<float> expected = d;
    for (size_t m = 0; m < kM; ++m) {
      for (size_t n = 0; n < kN; ++n) {
        long double sum = d[m * kN + n];  // 64 bits hold every partial sum
        for (size_t k = 0; k < 64; ++k) {
          const auto value = [&](const std::vector<uint8_t>& codes, const std::vector<uint32_t>& scales, size_t row) {
            return numerics::e2m1_to_float(static_cast<uint8_t>(codes[row * 32 + k / 2] >> (k % 2 * 4) & 15)) *
                   numerics::e4m3_to_float(static_cast<uint8_t>(scales[row] >> k / 16 * 8));
          };
          sum += static_cast<long double>(value(a, a_scales, m)) * value(b, b_scales, n);
        }
        expected[m * kN + n] = static_cast<float>(sum);
      }
    }
    exact_tensor_arithmetic().multiply_scaled(
        {kM, kN, a.data(), b.data(), a_scales.data(), b_scales.data(), d.data(), kN});
    ASSERT_EQ(d, expected);
  }
  a_scales[1] = 0x7F;
  float d[kM * kN] = {};
  exact_tensor_arithmetic().multiply_scaled({kM, kN, a.data(), b.data(), a_scales.data(), b_scales.data(), d, kN});
  EXPECT_EQ(std::bit_cast<uint32_t>(d[kN]), 0x7FFFFFFFu) << "a NaN scale";
  EXPECT_EQ(d[0], d[0]);
}

}  // namespace
}  // namespace isobit::ptx::test
