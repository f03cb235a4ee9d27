// Mutants of the conformance kernels: each planted mistake is caught, or stands here as a known blind spot.
#include <gtest/gtest.h>

#include <cstring>

#include "ptx/memory/tensor_map.h"
#include "ptx/runtime/emulation.h"
#include "ptx/test/conformance/cases.h"
#include "ptx/test/conformance/run_case.h"
#include "ptx/test/mutants.h"

namespace isobit::ptx::test {
namespace {

struct CaseMutant {
  const char* case_name;
  Mutant mutant;
};

constexpr const char* kDrop = "";
constexpr const char* kPass = "setp.eq.u32 %p2, 0, 0;";

const CaseMutant kMutants[] = {
    {"bulk_copy", {"initialisation fence dropped", "fence.mbarrier_init", 1, kDrop, "proxy-fence"}},
    {"bulk_copy", {"barrier after initialisation dropped", "bar.sync", 1, kDrop, "race"}},
    {"bulk_copy", {"wait for the data dropped", "mbarrier.test_wait", 1, kPass, "uninitialised-read"}},
    {"bulk_copy", {"proxy fence before the store dropped", "fence.proxy.async", 1, kDrop, "proxy-fence"}},
    {"bulk_copy", {"barrier before the store dropped", "bar.sync", 2, kDrop, "race"}},
    {"bulk_copy", {"wait for the store dropped", "cp.async.bulk.wait_group", 1, kDrop, "race"}},
    {"bulk_copy",
     {"too few bytes expected", "2048;\n  mov.b32 %r11, 1024", 1, "1024;\n  mov.b32 %r11, 1024;", "deadlock"}},
    {"tensor_copy_128", {"initialisation fence dropped", "fence.mbarrier_init", 1, kDrop, "proxy-fence"}},
    {"tensor_copy_128", {"barrier after initialisation dropped", "bar.sync", 1, kDrop, "race"}},
    {"tensor_copy_128", {"wait for the boxes always passes", "mbarrier.try_wait", 1, kPass, "uninitialised-read"}},
    {"tensor_copy_128", {"too many bytes expected", "_, [%r10], 4096", 1, "_, [%r10], 4112;", "deadlock"}},
    {"tensor_copy_128", {"too few bytes expected", "_, [%r10], 4096", 1, "_, [%r10], 3072;", "race"}},
    {"tensor_copy_128", {"one load dropped", "cp.async.bulk.tensor", 2, kDrop, "deadlock"}},
    {"tensor_copy_128", {"coordinate off by one", "mov.b32 %r21, 27", 1, "mov.b32 %r21, 26;", "values"}},
    {"tensor_copy_128", {"proxy fence before the store dropped", "fence.proxy.async", 1, kDrop, "proxy-fence"}},
    {"tensor_copy_128", {"store before the tensor", "mov.b32 %r20, 24", 1, "mov.b32 %r20, -24;", "tensor-map"}},
    {"tensor_copy_128",
     {"both waits for the store dropped", "cp.async.bulk.wait_group.read 0;\n  cp.async.bulk.wait_group 0;", 1, kDrop,
      "race"}},
    {"cluster_pair",
     {"first cluster barrier dropped",
      "barrier.cluster.arrive.release.aligned;\n  barrier.cluster.wait.acquire.aligned;", 1, kDrop, "barrier-misuse"}},
    {"cluster_pair",
     {"last cluster barrier dropped",
      "barrier.cluster.arrive.release.aligned;\n  barrier.cluster.wait.acquire.aligned;", 2, kDrop, "race"}},
    {"cluster_pair", {"wait for the boxes always passes", "mbarrier.try_wait", 1, kPass, "uninitialised-read"}},
    {"cluster_pair", {"wait for the peer always passes", "mbarrier.try_wait", 2, kPass, "uninitialised-read"}},
    {"cluster_pair", {"multicast to one CTA", "mov.b16 %h1, 3", 1, "mov.b16 %h1, 1;", "deadlock"}},
    {"cluster_pair", {"remote arrival dropped", "mbarrier.arrive.release", 1, kDrop, "deadlock"}},
    {"mma_bf16", {"wait for the copies dropped", "cp.async.wait_group", 1, kDrop, "race"}},
    {"mma_bf16", {"one group still pending", "cp.async.wait_group 0", 1, "cp.async.wait_group 1;", "race"}},
    {"mma_bf16", {"commit dropped", "cp.async.commit_group", 2, kDrop, "race"}},
    {"mma_bf16",
     {"transposed load made plain", "x2.trans.shared.b16 {%r26, %r27}", 1, "x2.shared.b16 {%r26, %r27}, [%r13+512];",
      "values"}},
    {"wgmma_shapes", {"proxy fence before the products dropped", "fence.proxy.async", 1, kDrop, "proxy-fence"}},
    {"wgmma_shapes", {"barrier before the products dropped", "bar.sync", 1, kDrop, "race"}},
    {"wgmma_shapes", {"wgmma.fence dropped", "wgmma.fence", 3, kDrop, "barrier-misuse"}},
    {"wgmma_shapes", {"wgmma wait dropped", "wgmma.wait_group.sync.aligned 0", 2, kDrop, "race"}},
    {"wgmma_shapes", {"wgmma commit dropped", "wgmma.commit_group", 2, kDrop, "race"}},
    {"wgmma_shapes", {"wrong swizzle", "0x4000004000010000", 1, "0x8000004000010000;", "values"}},
    {"shared_memory", {"barrier after clearing dropped", "bar.sync 0", 1, kDrop, "race"}},
    {"shared_memory", {"barrier before reading dropped", "bar.sync 1, 128", 1, kDrop, "uninitialised-read"}},
    {"divergence", {"warp barrier dropped", "bar.warp.sync", 1, kDrop, "survives"}},
};

const conformance::Case& case_named(const std::string& name) {
  for (const conformance::Case& c : conformance::cases()) {
    if (name == c.name) return c;
  }
  throw std::runtime_error("no case " + name);
}

std::string outcome(const conformance::Case& c, const std::string& text, const std::vector<uint32_t>& expected) {
  auto parsed = Module::parse(text);
  if (const Error* error = std::get_if<Error>(&parsed))
    return "line " + std::to_string(error->line) + ": " + error->message;
  for (const ScheduleCase& schedule : kScheduleCases) {
    const conformance::Result result = conformance::run_case(c, std::get<Module>(parsed), schedule);
    if (!result.report.ok()) return name_of(result.report.findings[0].kind);
    if (result.out != expected) return "values";
  }
  return "survives";
}

class Mutation : public testing::TestWithParam<CaseMutant> {};

TEST_P(Mutation, IsCaught) {
  const auto& [name, mutant] = GetParam();
  const conformance::Case& c = case_named(name);
  const std::string text =
      only_kernel(conformance::read_file(conformance::source_folder() + c.file), std::string(c.kernel) + "(");
  auto original = Module::parse(text);
  ASSERT_TRUE(std::holds_alternative<Module>(original));
  const auto expected = conformance::run_case(c, std::get<Module>(original), kScheduleCases[0]).out;
  const auto mutated = planted(text, mutant);
  ASSERT_TRUE(mutated.has_value()) << "the pattern is not in the kernel: " << mutant.find;
  EXPECT_EQ(outcome(c, *mutated, expected), mutant.caught) << name << ": " << mutant.name;
}

INSTANTIATE_TEST_SUITE_P(Kernels, Mutation, testing::ValuesIn(kMutants));

}  // namespace
}  // namespace isobit::ptx::test
