#include "ops/geglu/dispatch.h"

#include <bit>
#include <climits>
#include <cstdio>
#include <iterator>

#include "core/build_config.h"
#include "core/capability.h"
#include "ops/geglu/cpu/kernel.h"
#include "ops/geglu/cuda/launch.h"

namespace isobit::geglu {
namespace {

constexpr const char* kOp = "geglu";
constexpr const char* kArchitectures = "80, 86, 89, 90, 100, 103, 110, 120, 121";
constexpr cuda::Tile kTile1024 = {1024, 4};

constexpr Rule kRules[] = {
    {103, 103, 0, 16384, Schedule::kTile, kTile1024,
     "wide rows: a block per row leaves too few warps resident to hide the loads",
     "Liger pull request 1403, B300: 5.46 TB/s forward, 6.37 TB/s backward at 8192 x 14336; isobit's kernels never ran "
     "there"},
    {103,
     103,
     0,
     0,
     Schedule::kRow,
     {},
     "narrower rows keep the row schedule, as in Liger pull request 1403",
     "none of isobit's on this device"},
    {90, 90, 0, 0, Schedule::kTile, kTile1024, "one 16-byte vector a lane and operand, and as many blocks as fit",
     "H200, 2026-11-30, 8192 rows of 4096 to 29568 bf16, time over a copy of the same bytes: 1024x4 0.982 to 1.013, "
     "512x4 and 2048x8 as fast, 2048x4 1.10 to 1.17, 4096 1.10 to 1.21, 256 1.02 to 1.68; row 1.08 to 1.20"},
    {0, INT_MAX, 0, 0, Schedule::kTile, kTile1024, "default",
     "none on this device; the rule of compute capability 9.0"},
};

int64_t next_power_of_two(int64_t columns) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(columns)));
}

Status cpu_takes(const Params&, const DeviceProperties&) { return Status(); }

Status tile_takes(const Params& params, const DeviceProperties& device) {
  if (params.kernel != nullptr) return Status();
  const Rule& rule = rule_for(device.capability, params.rows, params.columns);
  if (rule.schedule == Schedule::kTile) return Status();
  return fail(ISOBIT_UNSUPPORTED, "not chosen for %lld columns on compute capability %d.%d: %s",
              static_cast<long long>(params.columns), device.capability / 10, device.capability % 10, rule.reason);
}

Status row_takes(const Params&, const DeviceProperties&) { return Status(); }

Status run_tile(const Params& params, void* stream) {
  DeviceProperties device;
  if (Status s = runtime().properties(params.device.id, &device); !s.ok()) return s;
  const Rule& rule = rule_for(device.capability, params.rows, params.columns);
  return cuda::launch_tile(params, rule.schedule == Schedule::kTile ? rule.tile : kTile1024, stream);
}

WorkspaceBytes no_workspace(const Params&) { return {}; }

constexpr Kernel<Params> kTable[] = {
    {.info = {kOp, "cpu", "x86-64-v3, aarch64", kContract, ISOBIT_CPU, 0, 0, true},
     .takes = cpu_takes,
     .run = cpu::run,
     .workspace = no_workspace},
    {.info = {kOp, "tile", kArchitectures, kContract, ISOBIT_CUDA, 80, kLatestCapability, kBuiltWithCuda},
     .takes = tile_takes,
     .run = run_tile,
     .workspace = no_workspace},
    {.info = {kOp, "row", kArchitectures, kContract, ISOBIT_CUDA, 80, kLatestCapability, kBuiltWithCuda},
     .takes = row_takes,
     .run = cuda::launch_row,
     .workspace = no_workspace},
};

// A call whose tensors are empty needs no kernel, only correct arguments.
bool is_empty(const Params& params) { return params.rows == 0 || params.columns == 0; }

template <class Args>
Status prepare(const Args* args, Params* params, const Kernel<Params>** kernel) {
  if (Status s = check(args, params); !s.ok()) return s;
  return select_kernel<Params>(kTable, params->kernel, *params, params->device, kernel);
}

template <class Args>
isobit_status run(const Args* args, void* stream) {
  Params params;
  const Kernel<Params>* kernel = nullptr;
  const Status status = prepare(args, &params, &kernel);
  if (kernel == nullptr) return status.code();
  return is_empty(params) ? ISOBIT_OK : kernel->run(params, stream).code();
}

template <class Args>
isobit_status supported(const Args* args, char* why, size_t n) {
  Params params;
  const Kernel<Params>* kernel = nullptr;
  const Status status = prepare(args, &params, &kernel);
  if (why != nullptr && n > 0) std::snprintf(why, n, "%s", status.ok() ? "" : last_error());
  return status.code();
}

}  // namespace

const Rule& rule_for(int capability, int64_t rows, int64_t columns) {
  for (const Rule& rule : kRules) {
    if (capability < rule.min_capability || capability > rule.max_capability) continue;
    if (rows >= rule.min_rows && next_power_of_two(columns) >= rule.min_columns_pow2) return rule;
  }
  return kRules[std::size(kRules) - 1];
}

const Rule* rule_at(int index) { return index < static_cast<int>(std::size(kRules)) ? &kRules[index] : nullptr; }

const KernelInfo* kernel_at(int index) {
  return index < static_cast<int>(std::size(kTable)) ? &kTable[index].info : nullptr;
}

}  // namespace isobit::geglu

extern "C" {

const char* isobit_geglu_contract(void) { return isobit::geglu::kContract; }

isobit_status isobit_geglu_forward_supported(const isobit_geglu_forward_args* args, char* why, size_t n) {
  return isobit::geglu::supported(args, why, n);
}

isobit_status isobit_geglu_backward_supported(const isobit_geglu_backward_args* args, char* why, size_t n) {
  return isobit::geglu::supported(args, why, n);
}

isobit_status isobit_geglu_forward(const isobit_geglu_forward_args* args, void* stream) {
  return isobit::geglu::run(args, stream);
}

isobit_status isobit_geglu_backward(const isobit_geglu_backward_args* args, void* stream) {
  return isobit::geglu::run(args, stream);
}

}  // extern "C"
