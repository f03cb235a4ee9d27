// The conformance kernels in the interpreter, under every schedule with the race checker on, against the GPU's outputs.
#include <gtest/gtest.h>

#include <cstring>

#include "ptx/emulation.h"
#include "ptx/tensor_map.h"
#include "ptx/test/conformance/cases.h"

namespace isobit::ptx::conformance {
namespace {

const std::string kFolder = std::string(ISOBIT_SOURCE_DIR) + "/src/ptx/test/conformance/";

struct alignas(64) MapBytes {
  unsigned char bytes[128] = {};
};

MapBytes encode(const Map& map, const void* in, const void* out) {
  MapBytes bytes;
  if (!map.used) return bytes;
  TensorMapDescription d;
  d.address = reinterpret_cast<uint64_t>(map.over_output ? out : in) + map.byte_offset;
  d.shape[0] = map.columns;
  d.shape[1] = map.rows;
  d.stride_bytes[0] = map.row_bytes;
  d.box[0] = map.box_columns;
  d.box[1] = map.box_rows;
  d.swizzle = static_cast<Swizzle>(map.swizzle);
  const auto error = encode_tensor_map(d, &bytes);
  EXPECT_FALSE(error.has_value()) << *error;
  return bytes;
}

std::vector<uint32_t> run(const Case& c, Module& module, const ScheduleCase& schedule) {
  MachineOptions options;
  options.schedule = schedule.schedule;
  options.seed = schedule.seed;
  options.check_races = true;
  Machine machine(options);
  const std::vector<uint32_t> input = input_of(c), initial = output_of(c);
  DeviceBuffer in(machine, input.size() * 4, true), out(machine, initial.size() * 4, true);
  std::memcpy(in.data(), input.data(), in.size());
  std::memcpy(out.data(), initial.data(), out.size());
  MapBytes map_a = encode(c.map_a, in.data(), out.data()), map_b = encode(c.map_b, in.data(), out.data());
  void *in_address = in.data(), *out_address = out.data();
  const void* parameters[] = {&map_a, &map_b, &in_address, &out_address};
  const Report report =
      machine.launch(module, c.kernel, {{c.grid, 1, 1}, {c.block, 1, 1}, {c.cluster, 1, 1}, 0}, parameters, 4);
  EXPECT_EQ(report.text(), "") << c.name << " " << schedule.name;
  return {out.as<uint32_t>(), out.as<uint32_t>() + initial.size()};
}

std::string golden_of(const Case& c) { return read_file(kFolder + "golden/" + c.name + ".bin"); }

std::vector<Case> cases_with_golden() {
  std::vector<Case> recorded;
  for (const Case& c : cases()) {
    if (!golden_of(c).empty()) recorded.push_back(c);
  }
  return recorded;
}

Module parse(const Case& c) {
  auto parsed = Module::parse(read_file(kFolder + c.file));
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
  ASSERT_EQ(golden.size(), c.out_words * 4u);
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
INSTANTIATE_TEST_SUITE_P(Kernels, Conformance, testing::ValuesIn(cases_with_golden()), case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Conformance);

}  // namespace
}  // namespace isobit::ptx::conformance
