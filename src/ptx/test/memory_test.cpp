// What the memory checks report, and that legal code stays without findings.
#include <gtest/gtest.h>

#include "ptx/memory/tensor_map.h"
#include "ptx/runtime/emulated_runtime.h"
#include "ptx/test/snippet.h"

namespace isobit::ptx::test {
namespace {

// The kind of the only finding of a body, or nothing.
std::string finding(const std::string& body, SnippetOptions options = {}) {
  const SnippetResult result = run_snippet(body, {{1, 2, 3, 4}}, options);
  if (!result.error.empty()) return result.error;
  if (result.report.ok()) return "none";
  return name_of(result.report.findings[0].kind);
}

struct MemoryCase {
  const char* body;
  const char* expected;
};

class MemoryCheck : public testing::TestWithParam<MemoryCase> {};

TEST_P(MemoryCheck, Reports) { EXPECT_EQ(finding(GetParam().body), GetParam().expected) << GetParam().body; }

INSTANTIATE_TEST_SUITE_P(
    Cases, MemoryCheck,
    testing::Values(MemoryCase{"ld.global.b32 %r10, [%d2+512];", "out-of-bounds"},
                    MemoryCase{"ld.global.b32 %r10, [%d1+-4];", "out-of-bounds"},
                    MemoryCase{"ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%d1+500];", "misaligned"},
                    MemoryCase{"ld.global.b32 %r10, [%d1+2];", "misaligned"},
                    MemoryCase{"st.global.b32 [%d1], %r1;", "access-violation"},
                    MemoryCase{"ld.global.b32 %r10, [%d2];", "uninitialised-read"},
                    MemoryCase{"ld.shared.b32 %r10, [space+64];", "uninitialised-read"},
                    MemoryCase{"st.shared.b32 [space+64], %r1; ld.shared.b32 %r10, [space+64];", "none"},
                    MemoryCase{"ld.shared.b32 %r10, [space+4096];", "out-of-bounds"},
                    MemoryCase{"mov.b32 %r9, 512; ld.shared.b32 %r10, [%r9];", "out-of-bounds"},
                    MemoryCase{"mov.b32 %r9, 0x03000800; ld.shared::cluster.b32 %r10, [%r9];", "out-of-bounds"},
                    MemoryCase{"mov.u32 %r9, space; cvt.u64.u32 %d9, %r9; cvta.shared.u64 %d9, %d9; st.b32 [%d9], %r1; "
                               "ld.b32 %r10, [%d9];",
                               "none"},
                    MemoryCase{"cvta.to.shared.u64 %d9, %d1;", "access-violation"},
                    MemoryCase{"mov.b32 %r9, 0; ld.global.b64 %d9, [%d1]; trap;", "trap"},
                    MemoryCase{"st.shared.b8 [space+1], %r1; ld.shared.b16 %h1, [space];", "uninitialised-read"}));

TEST(Memory, FindingNamesInstructionAndThread) {
  const SnippetResult result =
      run_snippet("setp.eq.u32 %p1, %r5, 0;\n@%r60 ld.global.b32 %r10, [%d2];", {{1, 2, 3, 4}});
  EXPECT_NE(result.error.find("is not a predicate"), std::string::npos);
  SnippetOptions options;
  options.threads = 96;
  options.grid = 2;
  const SnippetResult second = run_snippet(
      "setp.eq.u32 %p1, %r63, 161; mov.u64 %d9, 16;\n@%p1 st.global.b32 [%d9], %r1;", {{1, 2, 3, 4}}, options);
  ASSERT_EQ(second.report.findings.size(), 1u);
  const Finding& f = second.report.findings[0];
  EXPECT_EQ(f.kind, FindingKind::kOutOfBounds);
  EXPECT_EQ(f.instruction, "@%p1 st.global.b32 [%d9], %r1");
  EXPECT_EQ(f.cta[0], 1u);
  EXPECT_EQ(f.warp, 2);
}

TEST(Memory, BuffersMayNotOverlapAndHaveRedZones) {
  Machine machine;
  std::vector<uint32_t> data(64);
  EXPECT_TRUE(machine.register_buffer(data.data(), 256, Access::kRead, true));
  EXPECT_FALSE(machine.register_buffer(data.data() + 63, 8, Access::kRead, true));
  EXPECT_EQ(machine.bytes_from(data.data() + 60), 16u);
  EXPECT_TRUE(machine.unregister_buffer(data.data()));
  EXPECT_EQ(machine.bytes_from(data.data()), 0u);
  DeviceBuffer a(machine, 100, true), b(machine, 100, true);
  EXPECT_EQ(machine.bytes_from(a.as<char>() + 100), 0u);
  EXPECT_EQ(machine.bytes_from(a.as<char>() - 1), 0u);
  EXPECT_EQ(machine.bytes_from(b.as<char>() + 99), 1u);
}

struct MapCase {
  const char* rule;
  void (*spoil)(TensorMapDescription&);
};

class TensorMapRule : public testing::TestWithParam<MapCase> {};

TEST_P(TensorMapRule, IsEnforced) {
  alignas(64) unsigned char bytes[128];
  TensorMapDescription d{2, 2, 0x10000, {128, 64}, {256}, {64, 32}, {1, 1, 1, 1, 1}, Swizzle::k128};
  ASSERT_FALSE(encode_tensor_map(d, bytes).has_value());
  GetParam().spoil(d);
  const auto error = encode_tensor_map(d, bytes);
  ASSERT_TRUE(error.has_value()) << GetParam().rule;
  EXPECT_EQ(error->substr(0, error->find(':')), GetParam().rule);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, TensorMapRule,
    testing::Values(MapCase{"rank", [](TensorMapDescription& d) { d.rank = 6; }},
                    MapCase{"address", [](TensorMapDescription& d) { d.address += 8; }},
                    MapCase{"shape[1]", [](TensorMapDescription& d) { d.shape[1] = 0; }},
                    MapCase{"shape[0]", [](TensorMapDescription& d) { d.shape[0] = (uint64_t{1} << 32) + 1; }},
                    MapCase{"stride_bytes[0]", [](TensorMapDescription& d) { d.stride_bytes[0] = 264; }},
                    MapCase{"stride_bytes[0]", [](TensorMapDescription& d) { d.stride_bytes[0] = uint64_t{1} << 40; }},
                    MapCase{"box[1]", [](TensorMapDescription& d) { d.box[1] = 257; }},
                    MapCase{"box[0]", [](TensorMapDescription& d) { d.box[0] = 128; }},
                    MapCase{"box[0]", [](TensorMapDescription& d) { d.box[0] = 4; }},
                    MapCase{"shape[0] and box[0]", [](TensorMapDescription& d) { d.packed = 2, d.shape[0] = 129; }},
                    MapCase{"element_strides[1]", [](TensorMapDescription& d) { d.element_strides[1] = 2; }}));

}  // namespace
}  // namespace isobit::ptx::test
