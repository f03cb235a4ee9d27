#include "ptx/test/snippet.h"

#include <gtest/gtest.h>

namespace isobit::ptx::test {

std::string snippet_text(const std::string& body) {
  return R"(.version 8.8
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 dynamic[];
.visible .entry k(.param .u64 in, .param .u64 out) {
.reg .pred %p<8>;
.reg .b16 %h<16>;
.reg .b32 %r<64>;
.reg .b64 %d<32>;
.shared .align 1024 .b8 space[4096];
ld.param.u64 %d1, [in];
ld.param.u64 %d2, [out];
mov.u32 %r60, %tid.x;
mov.u32 %r61, %ctaid.x;
mov.u32 %r62, %ntid.x;
mad.lo.u32 %r63, %r61, %r62, %r60;
mul.wide.u32 %d3, %r63, 16;
add.s64 %d4, %d1, %d3;
add.s64 %d5, %d2, %d3;
ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%d4];
mov.b32 %r10, 0;
mov.b32 %r11, 0;
mov.b32 %r12, 0;
mov.b32 %r13, 0;
)" + body +
         R"(
st.global.v4.b32 [%d5], {%r10, %r11, %r12, %r13};
ret;
}
)";
}

SnippetResult run_snippet(const std::string& body, std::vector<Words> in, const SnippetOptions& options) {
  SnippetResult result;
  auto parsed = Module::parse(snippet_text(body));
  if (const Error* error = std::get_if<Error>(&parsed)) {
    result.error = "line " + std::to_string(error->line) + ": " + error->message;
    return result;
  }
  const size_t threads = size_t{options.threads} * options.grid;
  in.resize(threads, in.empty() ? Words{} : in.back());
  result.out.assign(threads, Words{0xAAAAAAAA, 0xAAAAAAAA, 0xAAAAAAAA, 0xAAAAAAAA});
  Machine machine(options.machine);
  machine.register_buffer(in.data(), in.size() * sizeof(Words), Access::kRead, true);
  machine.register_buffer(result.out.data(), result.out.size() * sizeof(Words), Access::kReadWrite, false);
  const void* from = in.data();
  void* to = result.out.data();
  const void* parameters[] = {&from, &to};
  const LaunchConfig config{
      {options.grid, 1, 1}, {options.threads, 1, 1}, {options.cluster, 1, 1}, options.dynamic_shared};
  result.report = machine.launch(std::get<Module>(parsed), "k", config, parameters, 2);
  return result;
}

Words evaluate(const std::string& body, Words in) {
  const SnippetResult result = run_snippet(body, {in});
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(result.report.text(), "");
  return result.out.empty() ? Words{} : result.out[0];
}

}  // namespace isobit::ptx::test
