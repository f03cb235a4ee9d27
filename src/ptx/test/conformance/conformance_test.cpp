// The conformance kernels in the interpreter, under every schedule with the race checker on, against the GPU's outputs.
#include <gtest/gtest.h>

#include <cstring>

#include "ptx/test/conformance/run_case.h"

namespace isobit::ptx::conformance {
namespace {

std::vector<uint32_t> run(const Case& c, Module& module, const ScheduleCase& schedule) {
  const Result result = run_case(c, module, schedule);
  EXPECT_EQ(result.report.text(), "") << c.name << " " << schedule.name;
  return result.out;
}

// Recorded on an H200 (driver 580.159, 2026-11-29), twice with equal bytes, by record_gpu.cpp.
std::string golden_of(const Case& c) { return read_file(source_folder() + "golden/" + c.name + ".bin"); }

Module parse(const Case& c) {
  auto parsed = Module::parse(read_file(source_folder() + c.file));
  const Error* error = std::get_if<Error>(&parsed);
  EXPECT_EQ(error, nullptr) << c.file << ":" << error->line << ": " << error->message;
  return error ? Module() : std::move(std::get<Module>(parsed));
}

class Schedules : public testing::TestWithParam<Case> {};

TEST_P(Schedules, AgreeWithoutFindings) {
  Module module = parse(GetParam());
  const std::vector<uint32_t> first = run(GetParam(), module, kScheduleCases[0]);
  for (const ScheduleCase& schedule : kScheduleCases)
    EXPECT_EQ(run(GetParam(), module, schedule), first) << schedule.name;
}

class Conformance : public testing::TestWithParam<Case> {};

TEST_P(Conformance, EqualsTheGpu) {
  const Case& c = GetParam();
  Module module = parse(c);
  const std::string golden = golden_of(c);
  ASSERT_EQ(golden.size(), c.out_words * 4u) << "golden/" << c.name << ".bin is missing or of another length";
  const std::vector<uint32_t> out = run(c, module, kScheduleCases[0]);
  size_t different = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    uint32_t expected;
    std::memcpy(&expected, golden.data() + 4 * i, 4);
    if (out[i] == expected) continue;
    if (++different <= 5) ADD_FAILURE() << "word " << i << ": " << hex(out[i]) << ", the GPU gave " << hex(expected);
  }
  EXPECT_EQ(different, 0u);
}

std::string case_name(const testing::TestParamInfo<Case>& p) { return p.param.name; }

INSTANTIATE_TEST_SUITE_P(Kernels, Schedules, testing::ValuesIn(cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Kernels, Conformance, testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace isobit::ptx::conformance
