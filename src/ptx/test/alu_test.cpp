// Arithmetic, logic and conversions against written-out expectations.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "ptx/test/snippet.h"

namespace isobit::ptx::test {
namespace {

uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }
constexpr uint32_t kNan = 0x7FFFFFFF;

struct Case {
  const char* body;
  Words in;
  uint32_t expected;  // of %r10
};

class OneInstruction : public testing::TestWithParam<Case> {};

TEST_P(OneInstruction, Gives) {
  EXPECT_EQ(evaluate(GetParam().body, GetParam().in)[0], GetParam().expected) << GetParam().body;
}

INSTANTIATE_TEST_SUITE_P(
    Integer, OneInstruction,
    testing::Values(
        Case{"add.s32 %r10, %r1, %r2;", {0x7FFFFFFF, 1}, 0x80000000},
        Case{"add.sat.s32 %r10, %r1, %r2;", {0x7FFFFFFF, 1}, 0x7FFFFFFF},
        Case{"mul.hi.u32 %r10, %r1, %r2;", {0xFFFFFFFF, 0xFFFFFFFF}, 0xFFFFFFFE},
        Case{"mul.hi.s32 %r10, %r1, %r2;", {0xFFFFFFFF, 5}, 0xFFFFFFFF},
        Case{"mad.lo.s32 %r10, %r1, %r2, %r3;", {7, 6, 5}, 47},
        Case{"mul.wide.s32 %d6, %r1, %r2; shr.u64 %d6, %d6, 32; cvt.u32.u64 %r10, %d6;", {0xFFFFFFFF, 1}, 0xFFFFFFFF},
        Case{"mul.wide.u32 %d6, %r1, %r2; shr.u64 %d6, %d6, 32; cvt.u32.u64 %r10, %d6;", {0xFFFFFFFF, 2}, 1},
        Case{"div.s32 %r10, %r1, %r2;", {static_cast<uint32_t>(-7), 2}, static_cast<uint32_t>(-3)},
        Case{"rem.s32 %r10, %r1, %r2;", {static_cast<uint32_t>(-7), 2}, static_cast<uint32_t>(-1)},
        Case{"div.u32 %r10, %r1, %r2;", {7, 0}, 0xFFFFFFFF},
        Case{"min.s32 %r10, %r1, %r2;", {static_cast<uint32_t>(-7), 2}, static_cast<uint32_t>(-7)},
        Case{"max.u32 %r10, %r1, %r2;", {static_cast<uint32_t>(-7), 2}, static_cast<uint32_t>(-7)},
        Case{"abs.s32 %r10, %r1;", {static_cast<uint32_t>(-7)}, 7},
        Case{"sad.u32 %r10, %r1, %r2, %r3;", {3, 10, 100}, 107},
        Case{"add.cc.u32 %r9, %r1, %r2; addc.u32 %r10, %r3, %r4;", {0xFFFFFFFF, 1, 2, 3}, 6},
        Case{"sub.cc.u32 %r9, %r1, %r2; subc.u32 %r10, %r3, %r4;", {0, 1, 5, 3}, 1}));

INSTANTIATE_TEST_SUITE_P(
    Logic, OneInstruction,
    testing::Values(Case{"shl.b32 %r10, %r1, %r2;", {1, 31}, 0x80000000}, Case{"shl.b32 %r10, %r1, %r2;", {1, 32}, 0},
                    Case{"shr.s32 %r10, %r1, %r2;", {0x80000000, 40}, 0xFFFFFFFF},
                    Case{"shr.u32 %r10, %r1, %r2;", {0x80000000, 4}, 0x08000000},
                    Case{"shf.l.wrap.b32 %r10, %r1, %r2, %r3;", {0xAAAA0000, 0x12345678, 16}, 0x5678AAAA},
                    Case{"shf.r.clamp.b32 %r10, %r1, %r2, %r3;", {0xAAAA0000, 0x12345678, 40}, 0x12345678},
                    Case{"lop3.b32 %r10, %r1, %r2, %r3, 0x96;", {0b1100, 0b1010, 0b0110}, 0b0000},
                    Case{"lop3.b32 %r10, %r1, %r2, %r3, 0xE8;", {0b1100, 0b1010, 0b0110}, 0b1110},
                    Case{"prmt.b32 %r10, %r1, %r2, 0x7610;", {0x33221100, 0x77665544}, 0x77661100},
                    Case{"prmt.b32 %r10, %r1, %r2, 0xBA98;", {0x80017F80, 0}, 0xFF0000FF},
                    Case{"bfe.u32 %r10, %r1, 4, 8;", {0x12345678}, 0x67},
                    Case{"bfe.s32 %r10, %r1, 4, 4;", {0xF8}, 0xFFFFFFFF},
                    Case{"bfe.s32 %r10, %r1, 28, 12;", {0x80000000}, 0xFFFFFFF8},
                    Case{"bfi.b32 %r10, %r1, %r2, 8, 8;", {0xAB, 0x11223344}, 0x1122AB44},
                    Case{"popc.b32 %r10, %r1;", {0xF0F00001}, 9}, Case{"clz.b32 %r10, %r1;", {0x00010000}, 15},
                    Case{"brev.b32 %r10, %r1;", {1}, 0x80000000}, Case{"bfind.u32 %r10, %r1;", {0x00010000}, 16},
                    Case{"bfind.s32 %r10, %r1;", {0xFFFFFFFF}, 0xFFFFFFFF},
                    Case{"mov.b64 %d6, {%r1, %r2}; mov.b64 {%r9, %r10}, %d6;", {5, 6}, 6},
                    Case{"mov.b32 {%h1, %h2}, %r1; mov.b32 %r10, {%h2, %h1};", {0x12345678}, 0x56781234}));

INSTANTIATE_TEST_SUITE_P(
    Float, OneInstruction,
    testing::Values(Case{"add.rn.f32 %r10, %r1, %r2;", {bits(1.0f), bits(0x1p-25f)}, bits(1.0f)},
                    Case{"fma.rn.f32 %r10, %r1, %r2, %r3;",
                         {bits(1.0f + 0x1p-12f), bits(1.0f - 0x1p-12f), bits(-1.0f)},
                         bits(-0x1p-24f)},
                    Case{"div.rn.f32 %r10, %r1, %r2;", {bits(1.0f), bits(3.0f)}, 0x3EAAAAAB},
                    Case{"sqrt.rn.f32 %r10, %r1;", {bits(2.0f)}, 0x3FB504F3},
                    Case{"add.rn.f32 %r10, %r1, %r2;", {0x7F800000, 0xFF800000}, kNan},
                    Case{"mul.rn.f32 %r10, %r1, %r2;", {0x7FC12345, bits(1.0f)}, kNan},
                    Case{"mul.rn.ftz.f32 %r10, %r1, %r2;", {bits(0x1p-100f), bits(0x1p-30f)}, 0},
                    Case{"mul.rn.f32 %r10, %r1, %r2;", {bits(0x1p-100f), bits(0x1p-30f)}, bits(0x1p-130f)},
                    Case{"add.rn.sat.f32 %r10, %r1, %r2;", {bits(3.0f), bits(1.0f)}, bits(1.0f)},
                    Case{"min.f32 %r10, %r1, %r2;", {0x7FC00000, bits(2.0f)}, bits(2.0f)},
                    Case{"min.f32 %r10, %r1, %r2;", {0x00000000, 0x80000000}, 0x80000000},
                    Case{"max.f32 %r10, %r1, %r2;", {0x80000000, 0x00000000}, 0},
                    Case{"max.NaN.f32 %r10, %r1, %r2;", {0x7FC00000, bits(2.0f)}, kNan},
                    Case{"neg.f32 %r10, %r1;", {0x7FC12345}, 0x7FFFFFFF},
                    Case{"abs.f32 %r10, %r1;", {bits(-2.0f)}, bits(2.0f)},
                    Case{"copysign.f32 %r10, %r1, %r2;", {bits(-1.0f), bits(5.0f)}, bits(-5.0f)},
                    Case{"mul.rn.bf16x2 %r10, %r1, %r2;", {0x40403F80, 0x40404040}, 0x41104040},
                    Case{"fma.rn.f16x2 %r10, %r1, %r2, %r3;", {0x3C003C00, 0x3C003C00, 0x3C003C00}, 0x40004000}));

INSTANTIATE_TEST_SUITE_P(
    Convert, OneInstruction,
    testing::Values(
        Case{"cvt.rzi.s32.f32 %r10, %r1;", {bits(-2.9f)}, static_cast<uint32_t>(-2)},
        Case{"cvt.rni.s32.f32 %r10, %r1;", {bits(2.5f)}, 2},
        Case{"cvt.rmi.s32.f32 %r10, %r1;", {bits(-2.1f)}, static_cast<uint32_t>(-3)},
        Case{"cvt.rpi.s32.f32 %r10, %r1;", {bits(2.1f)}, 3}, Case{"cvt.rzi.s32.f32 %r10, %r1;", {kNan}, 0},
        Case{"cvt.rzi.s32.f32 %r10, %r1;", {bits(1e20f)}, 0x7FFFFFFF},
        Case{"cvt.rzi.u32.f32 %r10, %r1;", {bits(-5.0f)}, 0},
        Case{"cvt.rn.f32.u32 %r10, %r1;", {0xFFFFFFFF}, bits(0x1p32f)},
        Case{"cvt.rn.f32.s32 %r10, %r1;", {static_cast<uint32_t>(-5)}, bits(-5.0f)},
        Case{"cvt.rni.f32.f32 %r10, %r1;", {bits(3.5f)}, bits(4.0f)},
        Case{"cvt.s32.s8 %r10, %r1;", {0x180}, 0xFFFFFF80},
        Case{"mov.b16 %h1, 0xBEEF; cvt.u32.u16 %r10, %h1;", {0}, 0xBEEF},
        Case{"cvt.rn.bf16x2.f32 %r10, %r1, %r2;", {bits(1.0f), bits(-2.0f)}, 0x3F80C000},
        Case{"cvt.rn.bf16x2.f32 %r10, %r1, %r2;", {0x7F812345, bits(1.00390625f)}, 0x7FFF3F80},
        Case{"cvt.rn.f16x2.f32 %r10, %r1, %r2;", {bits(65520.0f), bits(0x1p-25f)}, 0x7C000000},
        Case{"cvt.rn.satfinite.e4m3x2.f32 %h1, %r1, %r2; cvt.u32.u16 %r10, %h1;", {bits(1000.0f), bits(-0.5f)}, 0x7EB0},
        Case{"mov.b16 %h1, 0x7EB0; cvt.rn.f16x2.e4m3x2 %r10, %h1;", {0}, 0x5F00B800},
        Case{"cvt.rp.satfinite.ue8m0x2.f32 %h1, %r1, %r2; cvt.u32.u16 %r10, %h1;", {bits(1.5f), bits(0.0f)}, 0x8000},
        Case{"cvt.rp.ue8m0x2.f32 %h1, %r1, %r2; cvt.u32.u16 %r10, %h1;", {kNan, bits(0x1p-127f)}, 0xFF00},
        Case{"cvt.rz.satfinite.ue8m0x2.f32 %h1, %r1, %r2; cvt.u32.u16 %r10, %h1;", {bits(-6.0f), 0x7F800000}, 0x81FE},
        Case{"mov.b16 %h1, 0xFF00; cvt.rn.bf16x2.ue8m0x2 %r10, %h1;", {0}, 0x7FFF0040},
        Case{"cvt.rna.tf32.f32 %r10, %r1;", {0x3F801000}, 0x3F802000}));

TEST(Alu, ComparisonsWithNanFollowTheirOrder) {
  const char* body = R"(
    setp.lt.f32 %p1, %r1, %r2; selp.u32 %r10, 1, 0, %p1;
    setp.ltu.f32 %p1, %r1, %r2; selp.u32 %r11, 1, 0, %p1;
    setp.ne.f32 %p1|%p2, %r1, %r2; selp.u32 %r12, 1, 0, %p1; selp.u32 %r3, 2, 0, %p2; add.u32 %r12, %r12, %r3;
    setp.neu.and.f32 %p1, %r1, %r2, !%p2; selp.u32 %r13, 1, 0, %p1;)";
  EXPECT_EQ(evaluate(body, {kNan, bits(1.0f)}), (Words{0, 1, 2, 0}));
  EXPECT_EQ(evaluate(body, {bits(0.5f), bits(1.0f)}), (Words{1, 1, 1, 1}));
}

TEST(Alu, ApproximationsAreRefusedUnlessAllowed) {
  SnippetOptions options;
  SnippetResult result = run_snippet("ex2.approx.ftz.f32 %r10, %r1;", {{bits(3.0f)}}, options);
  ASSERT_EQ(result.report.findings.size(), 1u);
  EXPECT_EQ(result.report.findings[0].kind, FindingKind::kUnsupported);
  EXPECT_EQ(result.report.findings[0].instruction, "ex2.approx.ftz.f32 %r10, %r1");
  result = run_snippet("mul.f32 %r10, %r1, %r1;", {{bits(3.0f)}}, options);
  EXPECT_FALSE(result.report.ok());
  options.machine.allow_approximate = true;
  result = run_snippet("ex2.approx.ftz.f32 %r10, %r1;", {{bits(3.0f)}}, options);
  EXPECT_TRUE(result.report.ok());
  EXPECT_EQ(result.out[0][0], bits(8.0f));
}

}  // namespace
}  // namespace isobit::ptx::test
