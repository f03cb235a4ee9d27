// What the parser and the strict decoder refuse, and that they name the line.
#include <gtest/gtest.h>

#include <algorithm>

#include "ptx/test/snippet.h"

namespace isobit::ptx::test {
namespace {

Error parse_error(const std::string& text) {
  auto parsed = Module::parse(text);
  const Error* error = std::get_if<Error>(&parsed);
  return error ? *error : Error{-1, "no error"};
}

// The line of the first line of a snippet's body.
int body_line() {
  const std::string text = snippet_text("MARK");
  return static_cast<int>(
             std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find("MARK")), '\n')) +
         1;
}

struct Refusal {
  const char* body;
  const char* message;
};

class StrictDecoder : public testing::TestWithParam<Refusal> {};

TEST_P(StrictDecoder, NamesTheLine) {
  const Error error = parse_error(snippet_text("mov.b32 %r10, %r1;\n" + std::string(GetParam().body)));
  EXPECT_EQ(error.line, body_line() + 1) << error.message;
  EXPECT_NE(error.message.find(GetParam().message), std::string::npos) << error.message;
}

INSTANTIATE_TEST_SUITE_P(
    Refusals, StrictDecoder,
    testing::Values(Refusal{"frobnicate.b32 %r10, %r1;", "unknown instruction"},
                    Refusal{"add.fancy.s32 %r10, %r1, %r2;", "unknown modifier .fancy"},
                    Refusal{"add.s32 %r10, %r1;", "wrong number of operands"},
                    Refusal{"add.s32 %r10, %r1, %d1;", "is a .b64 register where the instruction wants .s32"},
                    Refusal{"add.s64 %r10, %d1, %d2;", "is a .b32 register where the instruction wants .s64"},
                    Refusal{"add.s32 %r10, %r1, %r99;", "unknown special register %r99"},
                    Refusal{"add.s32 %r10, %r1, nowhere;", "unknown symbol nowhere"},
                    Refusal{"add.s32 5, %r1, %r2;", "must be a register"},
                    Refusal{"add.s32 %r10, %p1, %r2;", "is a .pred register"},
                    Refusal{"selp.b32 %r10, %r1, %r2, %r3;", "expected a predicate"},
                    Refusal{"bra nowhere;", "unknown label nowhere"},
                    Refusal{"@%r1 mov.b32 %r10, 1;", "is not a predicate register"},
                    Refusal{"ld.shared.v2.b32 %r10, [%r1];", "another length"},
                    Refusal{"ld.global.b32 %r10, [%r1];", "needs a 64-bit address"},
                    Refusal{"ld.shared.b32 %r10, [in];", "another state space"},
                    Refusal{"cvt.f32.s32 %r10, %r1;", "expected modifier .rn"},
                    Refusal{"mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%r1,%r2,%r3,%r4},{%r1,%r2},{%r1},"
                            "{%r1,%r2,%r3,%r4};",
                            "only m16n8k16"},
                    Refusal{"tcgen05.commit.cta_group::2.mbarrier::arrive::one.b64 [%d1];", "pairs of CTAs"},
                    Refusal{"tcgen05.ld.sync.aligned.16x256b.x1.b32 {%r1, %r2, %r3, %r4}, [%r5];", "expected modifier"},
                    Refusal{"tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1}, [%r5];", "number of registers"},
                    Refusal{"tcgen05.mma.cta_group::1.kind::i8 [%r1], %d1, %d2, %r2, %p1;", "expected one of"},
                    Refusal{"tcgen05.mma.cta_group::1.kind::f16 [%r1], [%r2], %d2, %r2, %p1;", "A from tensor memory"},
                    Refusal{"tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block32 [%r1], %d1, %d2, %r2, [%r3],"
                            " [%r4], %p1;",
                            "expected one of"},
                    Refusal{"add.s64 %d1, %d1, 0f3F800000;", "needs a 32-bit operand"}));

TEST(Parser, ModuleErrorsNameTheLine) {
  EXPECT_EQ(parse_error(".version 8.8\n.target sm_90a\n.address_size 64\n.nonsense x;\n").line, 4);
  EXPECT_EQ(parse_error(".version 8.8\n.visible .entry k(\n.param .u65 x) { ret; }").line, 3);
  EXPECT_EQ(parse_error("/* never closed").line, 1);
  EXPECT_NE(parse_error(".visible .entry k() { ret;").message.find("not closed"), std::string::npos);
  EXPECT_NE(parse_error(".visible .entry k() { a: a: ret; }").message.find("defined twice"), std::string::npos);
}

// Each was a division by zero, a wrapped size or an exhausted stack.
TEST(Parser, SizesAndAlignmentsThatNoKernelHas) {
  const auto message = [](const std::string& line) {
    return parse_error(".version 8.5\n.target sm_90\n.address_size 64\n" + line + "\n").message;
  };
  const std::string alignment = "expected an alignment that is a power of two";
  EXPECT_EQ(message(".entry k(.param .pred p) { ret; }").rfind(alignment, 0), 0u);
  EXPECT_EQ(message(".entry k(.param .align 0 .b8 p[4]) { ret; }").rfind(alignment, 0), 0u);
  EXPECT_EQ(message(".shared .align 24 .b8 s[4];").rfind(alignment, 0), 0u);
  EXPECT_EQ(message(".shared .align 4294967296 .b8 s[4];").rfind(alignment, 0), 0u);
  EXPECT_EQ(message(".entry k(.param .align 8 .b64 p[2305843009213693952]) { ret; }"),
            "expected at most 32764 bytes of parameters");
  EXPECT_EQ(message(".global .b32 x[1] = " + std::string(100000, '{')), "more than 16 braces in an initialiser");
}

TEST(Parser, ScopesHideRegistersAndLabels) {
  const Words out = evaluate(R"(
    { .reg .b32 t; .reg .pred q; mov.b32 t, 7; setp.eq.s32 q, t, 7; @q bra DONE; mov.b32 %r10, 1;
      DONE: add.s32 %r11, t, 1; }
    { .reg .b32 t; mov.b32 t, 9; bra DONE; mov.b32 t, 0; DONE: mov.b32 %r12, t; })",
                             {1, 2, 3, 4});
  EXPECT_EQ(out, (Words{0, 8, 9, 0}));
}

TEST(Parser, ParametersAreLaidOutByAlignment) {
  auto parsed = Module::parse(
      R"(.visible .entry k(.param .u8 a, .param .u64 b, .param .align 64 .b8 c[128], .param .u32 d) { ret; })");
  ASSERT_TRUE(std::holds_alternative<Module>(parsed));
  const Kernel& k = std::get<Module>(parsed).kernels()[0];
  EXPECT_EQ(k.parameters[1].offset, 8u);
  EXPECT_EQ(k.parameters[2].offset, 64u);
  EXPECT_EQ(k.parameters[3].offset, 192u);
  EXPECT_EQ(k.parameter_bytes, 196u);
}

TEST(Parser, VariablesKeepTheirInitialValues) {
  auto parsed = Module::parse(".const .align 4 .u32 table[3] = {1, 0x20, -1};\n.global .align 8 .b8 raw[4] = {1, 2};");
  ASSERT_TRUE(std::holds_alternative<Module>(parsed));
  Module& module = std::get<Module>(parsed);
  const Symbol* table = module.find_symbol("table");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(reinterpret_cast<const uint32_t*>(table->data)[1], 0x20u);
  EXPECT_EQ(reinterpret_cast<const uint32_t*>(table->data)[2], 0xFFFFFFFFu);
  EXPECT_EQ(module.find_symbol("raw")->data[1], 2);
  EXPECT_EQ(module.find_symbol("raw")->data[2], 0);
}

}  // namespace
}  // namespace isobit::ptx::test
