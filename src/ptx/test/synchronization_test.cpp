// Barriers, deadlocks, convergence and the race checker, each with a legal and a broken program.
#include <gtest/gtest.h>

#include "ptx/test/snippet.h"

namespace isobit::ptx::test {
namespace {

Report report_of(const std::string& body, uint32_t threads, Schedule schedule = Schedule::kEager,
                 uint32_t cluster = 1) {
  SnippetOptions options;
  options.threads = threads;
  options.grid = options.cluster = cluster;
  options.machine.check_races = true;
  options.machine.schedule = schedule;
  const SnippetResult result = run_snippet(body, {{1, 2, 3, 4}}, options);
  EXPECT_EQ(result.error, "");
  return result.report;
}

std::string first_kind(const Report& report) { return report.ok() ? "none" : name_of(report.findings[0].kind); }

// Every thread writes its word and reads the next warp's.
constexpr const char* kExchange = R"(
  mov.u32 %r20, space;
  shl.b32 %r21, %r60, 2;
  add.u32 %r22, %r20, %r21;
  st.shared.b32 [%r22], %r60;
  BARRIER
  xor.b32 %r23, %r21, 128;
  add.u32 %r23, %r23, %r20;
  ld.shared.b32 %r10, [%r23];)";

std::string with(std::string text, const std::string& mark, const std::string& replacement) {
  return text.replace(text.find(mark), mark.size(), replacement);
}

TEST(Synchronization, BarrierOrdersAnExchange) {
  for (const Schedule s : {Schedule::kEager, Schedule::kLazy, Schedule::kRandom}) {
    EXPECT_EQ(report_of(with(kExchange, "BARRIER", "bar.sync 0;"), 64, s).text(), "");
    EXPECT_EQ(report_of(with(kExchange, "BARRIER", "barrier.sync 3, 64;"), 64, s).text(), "");
  }
}

TEST(Synchronization, MissingBarrierIsARace) {
  const Report report = report_of(with(kExchange, "BARRIER", ""), 64);
  ASSERT_FALSE(report.ok());
  EXPECT_TRUE(report.findings.back().kind == FindingKind::kRace) << report.text();
  EXPECT_NE(report.text().find("[st.shared.b32 [%r22], %r60]"), std::string::npos) << report.text();
}

TEST(Synchronization, NeighbouringBytesDoNotRace) {
  const char* body = R"(
    mov.u32 %r20, space; and.b32 %r21, %r60, 31; shr.u32 %r22, %r60, 5; shl.b32 %r21, %r21, 2; add.u32 %r21, %r21, %r22;
    add.u32 %r20, %r20, %r21; st.shared.b8 [%r20], %r60;)";
  EXPECT_EQ(report_of(body, 128).text(), "");
}

TEST(Synchronization, DeadlockNamesEveryWaitingWarp) {
  const Report report = report_of(R"(setp.lt.u32 %p1, %r60, 32; @%p1 bra SKIP; bar.sync 0; SKIP:)", 96);
  ASSERT_EQ(report.findings.size(), 2u) << report.text();
  for (const Finding& f : report.findings) {
    EXPECT_EQ(f.kind, FindingKind::kDeadlock);
    EXPECT_EQ(f.instruction, "bar.sync 0");
  }
  EXPECT_EQ(report.findings[0].warp, 1);
  EXPECT_EQ(report.findings[1].warp, 2);
}

// Half of the lanes wait, at the barrier or at the vote, for as long as the other half counts: nothing but that half
// makes progress.
TEST(Synchronization, LanesThatWorkWhileOthersWaitAreNoDeadlock) {
  const std::string body = R"(
    setp.eq.u32 %p1, %r60, 0; @%p1 mbarrier.init.shared.b64 [space], 1; bar.warp.sync -1;
    setp.lt.u32 %p2, %r60, 16; @%p2 bra COUNT;
    setp.lt.u32 %p3, %r60, 24; @%p3 bra MEET;
    WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [space], 0; @!%p3 bra WAIT; bra MEET;
    COUNT: add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 300000; @%p3 bra COUNT;
    @%p1 mbarrier.arrive.shared.b64 _, [space];
    MEET: vote.sync.any.pred %p3, %p2, 0xFFFFFFFF; selp.u32 %r11, 1, 0, %p3;)";
  for (const Schedule schedule : {Schedule::kEager, Schedule::kLazy, Schedule::kRandom}) {
    SnippetOptions options;
    options.machine.schedule = schedule;
    const SnippetResult result = run_snippet(body, {{1, 2, 3, 4}}, options);
    ASSERT_EQ(result.error, "");
    EXPECT_EQ(result.report.text(), "");
    EXPECT_EQ(result.out[3][0], 300000u);
    EXPECT_EQ(result.out[31][0], 0u);
    EXPECT_EQ(result.out[31][1], 1u);
  }
}

TEST(Synchronization, BarrierOnABranchIsReported) {
  EXPECT_EQ(first_kind(report_of("setp.lt.u32 %p1, %r60, 16; @%p1 bar.sync 0;", 32)), "convergence");
}

TEST(Synchronization, BarrierMisuse) {
  EXPECT_EQ(first_kind(report_of("bar.sync 16;", 32)), "barrier-misuse");
  EXPECT_EQ(first_kind(report_of("bar.sync 1, 48;", 64)), "barrier-misuse");
  EXPECT_EQ(first_kind(report_of(
                "shr.u32 %r20, %r60, 5; add.u32 %r20, %r20, 1; shl.b32 %r20, %r20, 6; bar.sync 1, %r20;", 64)),
            "barrier-misuse");
  EXPECT_EQ(first_kind(report_of("mbarrier.arrive.shared.b64 _, [space];", 32)), "barrier-misuse");
  EXPECT_EQ(first_kind(report_of("barrier.cluster.wait.aligned;", 32)), "barrier-misuse");
  EXPECT_EQ(
      first_kind(report_of(R"(setp.eq.u32 %p1, %r60, 0; @%p1 mbarrier.init.shared.b64 [space], 1; bar.warp.sync -1;
                                    mbarrier.arrive.shared.b64 _, [space];)",
                           2)),
      "none")
      << "two arrivals complete two phases";
  EXPECT_EQ(first_kind(report_of("mov.b32 %r20, 0; mbarrier.init.shared.b64 [space], %r20;", 1)), "barrier-misuse");
  EXPECT_EQ(first_kind(report_of("mbarrier.init.shared.b64 [space], 4; mbarrier.init.shared.b64 [space], 4;", 1)),
            "barrier-misuse");
}

TEST(Synchronization, ShuffleWaitsForLanesAndReportsMissingOnes) {
  const char* joined =
      R"(setp.lt.u32 %p1, %r60, 16; @%p1 bra LOW; mov.b32 %r20, 5; bra MEET; LOW: mov.b32 %r20, 9; MEET:
                          shfl.sync.idx.b32 %r10, %r20, 0, 31, -1;)";
  EXPECT_EQ(report_of(joined, 32).text(), "");
  const char* lost =
      R"(setp.lt.u32 %p1, %r60, 16; @%p1 bra LOW; bra END; LOW: shfl.sync.idx.b32 %r10, %r1, 0, 31, -1; END:
                        bar.warp.sync -1;)";
  EXPECT_EQ(first_kind(report_of(lost, 32)), "convergence");
}

TEST(Synchronization, LanesOfOneWarpMaySpinOnEachOther) {
  // Lane 0 waits for a barrier that lane 1 completes behind it in the program.
  const char* body = R"(
    setp.eq.u32 %p1, %r60, 0; @%p1 mbarrier.init.shared.b64 [space], 1; bar.warp.sync -1; @!%p1 bra OTHER;
    WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [space], 0; @!%p2 bra WAIT; bra END;
    OTHER: mbarrier.arrive.shared.b64 _, [space]; END: bar.warp.sync -1;)";
  EXPECT_EQ(report_of(body, 2).text(), "");
}

TEST(Synchronization, ReleaseAndAcquireThroughAnAtomicOrder) {
  const char* body = R"(
    setp.ge.u32 %p1, %r60, 32; @%p1 bra CONSUMER;
    st.shared.b32 [space], 7; FENCE atom.SEM_RELEASE.cta.shared.exch.b32 %r9, [space+128], 1; bra END;
    CONSUMER: bar.warp.sync -1; SPIN: ld.SEM_ACQUIRE.cta.shared.b32 %r9, [space+128];
    setp.ne.u32 %p2, %r9, 1; @%p2 bra SPIN; FENCE
    ld.shared.b32 %r10, [space]; END:)";
  const auto variant = [&](const std::string& release, const std::string& acquire, const std::string& fence) {
    std::string text = with(with(body, "SEM_RELEASE", release), "SEM_ACQUIRE", acquire);
    return with(with(text, "FENCE", fence), "FENCE", fence);
  };
  const std::string init = "setp.eq.u32 %p3, %r60, 0; @%p3 st.shared.b32 [space+128], 0; bar.sync 0;";
  // One lane of the first warp writes, so the stores of its lanes do not matter here.
  EXPECT_EQ(report_of(init + variant("release", "acquire", ""), 64).text(), "");
  EXPECT_EQ(report_of(init + variant("relaxed", "relaxed", "fence.acq_rel.cta;"), 64).text(), "");
  EXPECT_EQ(first_kind(report_of(init + variant("relaxed", "relaxed", ""), 64)), "race");
}

TEST(Synchronization, EndlessLoopReachesTheLimit) {
  SnippetOptions options;
  options.machine.instruction_limit = 10000000;
  const SnippetResult result = run_snippet("L: add.u32 %r10, %r10, 1; bra L;", {{1}}, options);
  ASSERT_FALSE(result.report.ok());
  EXPECT_EQ(result.report.findings[0].kind, FindingKind::kTimeout);
}

TEST(Synchronization, SameSeedSameRun) {
  SnippetOptions options;
  options.threads = 256;
  options.machine.schedule = Schedule::kRandom;
  options.machine.seed = 7;
  const char* body = R"(setp.eq.u32 %p1, %r60, 0; @%p1 st.shared.b32 [space], 0; bar.sync 0;
                        atom.shared.add.u32 %r10, [space], 1; shr.u32 %r11, %r10, 1;)";
  const auto first = run_snippet(body, {{1}}, options), second = run_snippet(body, {{1}}, options);
  EXPECT_EQ(first.out, second.out);
  options.machine.seed = 8;
  EXPECT_NE(run_snippet(body, {{1}}, options).out, first.out);
}

}  // namespace
}  // namespace isobit::ptx::test
