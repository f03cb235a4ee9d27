// Mistakes planted in the PTX of the block-scaled kernels: each is caught by the interpreter or by the bytes, or stands
// here as a known blind spot. Two blocks take two tiles each, of six stages: more than once round the ring, and every
// accumulator is used twice.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "ops/nvfp4_geglu/test/problem.h"
#include "ptx/runtime/emulation.h"
#include "ptx/test/mutants.h"

namespace isobit::nvfp4_geglu::test {
namespace {

using ptx::test::Mutant;

constexpr const char* kDrop = "";
constexpr const char* kPass = "setp.eq.u32 complete, 0, 0;";
constexpr const char* kWait = "mbarrier.try_wait.parity";

const Mutant kSingle[] = {
    {"initialisation fence dropped", "fence.mbarrier_init", 1, kDrop, "proxy-fence"},
    {"barrier after initialisation dropped", "bar.sync \t0", 1, kDrop, "uninitialised-read"},
    {"fence before the first barrier dropped", "tcgen05.fence::before", 1, kDrop, "survives"},
    {"fence after the first barrier dropped", "tcgen05.fence::after", 1, kDrop, "survives"},
    {"wait for the sums always passes", kWait, 1, kPass, "uninitialised-read", "tcgen05.ld.sync"},
    {"fence before the load of sums dropped", "tcgen05.fence::after", 2, kDrop, "tensor-fence"},
    {"wait for the loaded sums dropped", "tcgen05.wait::ld", 1, kDrop, "race"},
    {"fence after the load of sums dropped", "tcgen05.fence::before", 2, kDrop, "tensor-fence"},
    {"sums never given back", "mbarrier.arrive.shared::cta", 1, kDrop, "deadlock"},
    {"wait for an empty stage always passes", kWait, 1, kPass, "race", "mbarrier.arrive.expect_tx"},
    {"too many bytes expected", ", 55296;", 1, ", 55312;", "deadlock"},
    {"bytes of the codes expected", ", 55296;", 1, ", 49152;", "deadlock"},
    {"copy of x dropped", "cp.async.bulk.tensor.2d", 1, kDrop, "deadlock"},
    {"copy of scales dropped", "cp.async.bulk.tensor.3d", 1, kDrop, "deadlock"},
    {"last wait of the copying thread always passes", kWait, 6, kPass, "survives"},
    {"wait for free sums always passes", kWait, 7, kPass, "race"},
    {"wait for a full stage always passes", kWait, 1, kPass, "uninitialised-read", "tcgen05.cp"},
    {"fence after the wait for a stage dropped", "tcgen05.fence::after", 3, kDrop, "tensor-fence"},
    {"scales of x not copied on", "tcgen05.cp", 1, kDrop, "uninitialised-read"},
    {"scales of the weight's second half not copied on", "tcgen05.cp", 3, kDrop, "uninitialised-read"},
    {"scales of a later step not copied on", "tcgen05.cp", 10, kDrop, "uninitialised-read"},
    {"first step dropped", "tcgen05.mma", 1, kDrop, "uninitialised-read"},
    {"last step dropped", "tcgen05.mma", 4, kDrop, "values"},
    {"first step adds to old sums", "setp.ne.u32 accumulate", 1, "setp.eq.u32 accumulate, 0, 0;", "uninitialised-read"},
    {"second step adds to nothing", "setp.ne.u32 accumulate", 2, "setp.ne.u32 accumulate, 0, 0;", "values"},
    {"128 columns in the instruction", ", 138413184;", 1, ", 136316032;", "uninitialised-read"},
    {"scales as powers of two", ", 138413184;", 2, ", 146801792;", "tensor-memory"},
    {"no swizzle in a descriptor", ", 4611756662049472512;", 1, ", 70643622084608;", "values"},
    {"second step reads the first", ", 4611756662049472514;", 1, ", 4611756662049472512;", "values"},
    {"stage never released", "tcgen05.commit", 1, kDrop, "deadlock"},
    {"sums never announced", "tcgen05.commit", 2, kDrop, "deadlock"},
    {"barrier before the end dropped", "bar.sync \t0", 2, kDrop, "race"},
    {"tensor memory not given back", "tcgen05.dealloc", 1, kDrop, "tensor-memory"},
    {"right to allocate kept", "tcgen05.relinquish", 1, kDrop, "survives"},
};

const Mutant kPair[] = {
    {"cluster barrier dropped", "barrier.cluster", 1, kDrop, "barrier-misuse"},
    {"x to one block only", ", 3;\n\t// begin inline asm\n\tcp.async.bulk.tensor.2d", 1,
     ", 1;\n\tcp.async.bulk.tensor.2d", "deadlock"},
    {"multicast of x dropped", "cp.async.bulk.tensor.2d", 1, kDrop, "deadlock"},
    {"commit to both blocks dropped", "tcgen05.commit", 1, kDrop, "deadlock"},
    {"last wait of the copying thread always passes", kWait, 6, kPass, "race"},
};

class MutatedFolder {
 public:
  MutatedFolder(const std::string& entry, const Mutant* mutant)
      : folder_(std::filesystem::path(testing::TempDir()) / ("scaled_mutant_" + std::to_string(::getpid()))) {
    std::ifstream file(ISOBIT_BINARY_DIR "/ptx/nvfp4_geglu/sm100/launch.110a.ptx");
    const std::string text = ptx::test::only_kernel({std::istreambuf_iterator<char>(file), {}}, entry);
    const auto changed = mutant != nullptr ? ptx::test::planted(text, *mutant) : std::optional(text);
    planted_ = changed.has_value();
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "launch.110a.ptx") << changed.value_or("");
  }
  ~MutatedFolder() { std::filesystem::remove_all(folder_); }
  MutatedFolder(const MutatedFolder&) = delete;
  MutatedFolder& operator=(const MutatedFolder&) = delete;
  bool planted() const { return planted_; }
  std::string path() const { return folder_.string(); }

 private:
  std::filesystem::path folder_;
  bool planted_ = false;
};

constexpr Shape kShape = {.rows = 200, .width = 256, .k = 1344, .x_scale = 0x1p-8f, .values = ScaleValues::kExact};

// What notices: the kind of the first finding, "values", or "survives".
std::string outcome(const Problem& expected, const MutatedFolder& folder, const char* kernel) {
  for (const ptx::ScheduleCase& c : ptx::kScheduleCases) {
    ptx::EmulationOptions options{.capability = 110, .multiprocessors = 2};
    options.machine.schedule = c.schedule;
    options.machine.seed = c.seed;
    options.machine.instruction_limit = 1 << 24;
    ptx::EmulatedRuntime device(folder.path(), options);
    const ScopedRuntime scope(&device);
    Problem gpu(kShape);
    const ptx::DeviceBuffer memory = device.upload(gpu.arena.bytes.data(), gpu.arena.bytes.size());
    isobit_nvfp4_geglu_args args = gpu.args(memory.data(), {ISOBIT_CUDA, 0});
    args.kernel = kernel;
    const isobit_status status = isobit_nvfp4_geglu(&args, nullptr);
    if (!device.report().ok()) return ptx::name_of(device.report().findings[0].kind);
    if (status != ISOBIT_OK) return isobit_last_error();
    std::memcpy(gpu.arena.bytes.data(), memory.data(), gpu.arena.bytes.size());
    if (gpu.arena.bytes != expected.arena.bytes) return "values";
  }
  return "survives";
}

template <size_t Count>
void expect_caught(const Mutant (&mutants)[Count], const std::string& entry, const char* kernel) {
  Problem expected(kShape);
  ASSERT_EQ(expected.run_cpu(), ISOBIT_OK);
  ASSERT_EQ(outcome(expected, MutatedFolder(entry, nullptr), kernel), "survives") << "the kernel itself";
  for (const Mutant& m : mutants) {
    const MutatedFolder folder(entry, &m);
    EXPECT_TRUE(folder.planted()) << "not in the kernel: " << m.find;
    if (!folder.planted()) continue;
    EXPECT_EQ(outcome(expected, folder, kernel), m.caught) << kernel << ": " << m.name;
  }
}

TEST(Nvfp4GegluScaledMutation, Single) { expect_caught(kSingle, "GeluE1ELi1E", "sm100"); }

TEST(Nvfp4GegluScaledMutation, Pair) { expect_caught(kPair, "GeluE1ELi2E", "sm100-pair"); }

}  // namespace
}  // namespace isobit::nvfp4_geglu::test
