// Mistakes planted in the PTX of the SM90 and SM80 kernels: each is caught by the interpreter or by the bytes, or
// stands here as a known blind spot. One block multiplies three tiles in eight steps of depth 64, so that it goes round
// the five stages of the SM90 kernel more than once.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "ops/linear_logp/test/problem.h"
#include "ptx/runtime/emulation.h"
#include "ptx/test/conformance/cases.h"
#include "ptx/test/mutants.h"

namespace isobit::linear_logp::test {
namespace {

using ptx::test::Mutant;

constexpr const char* kDrop = "";
constexpr const char* kPass = "setp.eq.u32 complete, 0, 0;";

const Mutant kSm90[] = {
    {"initialisation fence dropped", "fence.mbarrier_init", 1, kDrop, "proxy-fence"},
    {"barrier after initialisation dropped", "bar.sync \t0", 1, kDrop, "race"},
    {"wait for a full stage always passes", "mbarrier.try_wait.parity", 1, kPass, "race", "wgmma.fence"},
    {"wait for an empty stage always passes", "mbarrier.try_wait.parity", 1, kPass, "race",
     "mbarrier.arrive.expect_tx"},
    {"wait for the turn dropped", "bar.sync %", 1, kDrop, "race"},
    {"turn never given", "bar.arrive %", 2, kDrop, "deadlock"},
    {"wgmma.fence dropped", "wgmma.fence", 1, kDrop, "barrier-misuse"},
    {"wgmma.commit_group dropped", "wgmma.commit_group", 1, kDrop, "race"},
    {"wait for all but one group made all but four", "wgmma.wait_group.sync.aligned 1", 1,
     "wgmma.wait_group.sync.aligned 4;", "race"},
    {"last wgmma wait dropped", "wgmma.wait_group.sync.aligned 0", 1, kDrop, "race"},
    {"stage never released", "mbarrier.arrive.shared::cta", 3, kDrop, "deadlock"},
    {"last stage never released", "mbarrier.arrive.shared::cta", 4, kDrop, "deadlock"},
    {"too many bytes expected", ", 40960;\n\t// begin inline asm\n\tmbarrier.arrive.expect_tx", 1,
     ", 40976;\n\tmbarrier.arrive.expect_tx", "deadlock"},
    {"bytes of one operand expected", ", 40960;\n\t// begin inline asm\n\tmbarrier.arrive.expect_tx", 1,
     ", 16384;\n\tmbarrier.arrive.expect_tx", "race"},
    {"one copy dropped", "cp.async.bulk.tensor", 1, kDrop, "deadlock"},
    {"64-byte swizzle in the descriptor of A", ", 4611686293305294848", 1, ", 9223372311732682752;", "values"},
    {"descriptor of a later step not advanced", ", 514;", 1, ", 512;", "values"},
    {"setmaxnreg dropped", "setmaxnreg.dec", 1, kDrop, "survives"},
    {"launch_dependents dropped", "griddepcontrol.launch_dependents", 1, kDrop, "survives"},
};

const Mutant kSm80[] = {
    {"wait for the copies dropped", "cp.async.wait_group", 1, kDrop, "race"},
    {"one group too many pending", "cp.async.wait_group 1", 1, "cp.async.wait_group 2;", "race"},
    {"first commit dropped", "cp.async.commit_group", 1, kDrop, "race"},
    {"barrier before a stage is read dropped", "bar.sync \t0", 1, kDrop, "uninitialised-read"},
    {"one copy dropped", "cp.async.cg.shared.global", 3, kDrop, "uninitialised-read"},
};

class MutatedBuild {
 public:
  // A folder with the build's PTX, where `mutant` replaces the text of one kernel.
  MutatedBuild(const std::string& source, const std::string& kernel, const Mutant* mutant)
      : folder_(std::filesystem::path(testing::TempDir()) / ("mutant_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    const std::filesystem::path build = ISOBIT_BINARY_DIR "/ptx/linear_logp";
    const std::string text = ptx::test::only_kernel(ptx::conformance::read_file((build / source).string()), kernel);
    const auto changed = mutant ? ptx::test::planted(text, *mutant) : std::optional(text);
    planted_ = changed.has_value();
    std::ofstream(folder_ / std::filesystem::path(source).filename()) << changed.value_or("");
    for (const auto& entry : std::filesystem::directory_iterator(build / "cuda")) {
      if (entry.path().extension() != ".ptx") continue;
      std::filesystem::create_symlink(entry.path(), folder_ / ("cuda_" + entry.path().filename().string()));
    }
  }
  ~MutatedBuild() { std::filesystem::remove_all(folder_); }
  MutatedBuild(const MutatedBuild&) = delete;
  MutatedBuild& operator=(const MutatedBuild&) = delete;
  bool planted() const { return planted_; }
  std::string folder() const { return folder_.string(); }

 private:
  std::filesystem::path folder_;
  bool planted_ = false;
};

void place(isobit_tensor* view, const ptx::DeviceBuffer& buffer) {
  view->data = buffer.data();
  view->device_type = ISOBIT_CUDA;
}

// What notices: the kind of the first finding, "values", or "survives".
std::string outcome(const Problem& problem, const Outputs& expected, const MutatedBuild& build, const char* kernel) {
  for (const ptx::ScheduleCase& c : ptx::kScheduleCases) {
    ptx::EmulationOptions options{.multiprocessors = 1};
    options.machine.schedule = c.schedule;
    options.machine.seed = c.seed;
    options.machine.instruction_limit = 1 << 24;
    ptx::EmulatedRuntime device(build.folder(), options);
    const ScopedRuntime scope(&device);
    isobit_linear_logp_args args = problem.args();
    args.kernel = kernel;
    const ptx::DeviceBuffer hidden = device.upload(problem.hidden.data(), problem.hidden.size() * 2);
    const ptx::DeviceBuffer weight = device.upload(problem.weight.data(), problem.weight.size() * 2);
    const ptx::DeviceBuffer target = device.upload(problem.target.data(), problem.target.size() * 8);
    place(&args.hidden, hidden);
    place(&args.weight, weight);
    place(&args.target, target);
    Outputs found(problem, Outputs::kLogp | Outputs::kLse);
    found.attach(&args);
    const size_t bytes = static_cast<size_t>(problem.shape.rows) * 4;
    void *const logp_host = args.logp.data, *const lse_host = args.lse.data;
    const ptx::DeviceBuffer logp = device.allocate(bytes), lse = device.allocate(bytes);
    place(&args.logp, logp);
    place(&args.lse, lse);
    size_t minimum = 0;
    if (isobit_linear_logp_workspace(&args, &minimum, nullptr) != ISOBIT_OK) return isobit_last_error();
    const ptx::DeviceBuffer workspace = device.allocate(minimum);
    args.workspace = workspace.data();
    args.workspace_bytes = minimum;
    const isobit_status status = isobit_linear_logp(&args, nullptr);
    if (!device.report().ok()) return ptx::name_of(device.report().findings[0].kind);
    if (status != ISOBIT_OK) return isobit_last_error();
    std::memcpy(logp_host, logp.data(), bytes);
    std::memcpy(lse_host, lse.data(), bytes);
    for (int64_t row = 0; row < expected.rows; ++row) {
      if (expected.row_bytes(row) != found.row_bytes(row)) return "values";
    }
  }
  return "survives";
}

template <size_t Count>
void expect_caught(const Mutant (&mutants)[Count], const std::string& source, const std::string& mangled,
                   const char* kernel) {
  const Problem problem = random_problem({128, 512, 450}, 21);
  const Outputs expected = run(problem, Outputs::kLogp | Outputs::kLse);
  ASSERT_EQ(outcome(problem, expected, MutatedBuild(source, mangled, nullptr), kernel), "survives")
      << "the kernel itself";
  for (const Mutant& m : mutants) {
    const MutatedBuild build(source, mangled, &m);
    EXPECT_TRUE(build.planted()) << "not in the kernel: " << m.find;
    if (!build.planted()) continue;
    EXPECT_EQ(outcome(problem, expected, build, kernel), m.caught) << kernel << ": " << m.name;
  }
}

TEST(LinearLogpMutation, Sm90) {
  expect_caught(kSm90, "sm90/launch.90a.ptx", "tile_kernelINS_8numerics4Bf16ELNS0_4cuda4ModeE0", "sm90");
}

TEST(LinearLogpMutation, Sm80) {
  expect_caught(kSm80, "sm80/launch.90.ptx", "leaf_kernelINS_8numerics4Bf16ELNS0_4cuda4ModeE0ELb1", "sm80");
}

}  // namespace
}  // namespace isobit::linear_logp::test
