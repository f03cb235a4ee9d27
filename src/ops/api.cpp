// The C functions of isobit.h.
#include <cstdio>

#include "core/build_config.h"
#include "core/capability.h"
#include "core/runtime.h"
#include "core/tensor.h"
#include "ops/kernel_list.h"

using isobit::DeviceProperties;
using isobit::KernelInfo;
using isobit::runtime;
using isobit::Status;

namespace {

// First device that can run the row, judged by its capability; -1 if none.
int usable_device(const KernelInfo& row) {
  for (int device = 0; device < runtime().device_count(); ++device) {
    DeviceProperties properties;
    if (!runtime().properties(device, &properties).ok()) continue;
    if (check_row(row, {ISOBIT_CUDA, device}, properties).ok()) return device;
  }
  return -1;
}

Status check_usable(const KernelInfo& row) {
  if (row.device == ISOBIT_CPU || !row.built) return check_row(row, {row.device, 0}, {});
  if (runtime().device_count() == 0) return isobit::fail(ISOBIT_UNSUPPORTED, "no CUDA device here");
  if (usable_device(row) >= 0) return Status();
  return isobit::fail(ISOBIT_UNSUPPORTED, "no device here has compute capability %s and code in this build",
                      isobit::CapabilityText(row.min_capability, row.max_capability).text);
}

}  // namespace

extern "C" {

const char* isobit_status_string(isobit_status status) {
  switch (status) {
    case ISOBIT_OK:
      return "ok";
    case ISOBIT_INVALID_ARGUMENT:
      return "invalid argument";
    case ISOBIT_UNSUPPORTED:
      return "unsupported";
    case ISOBIT_WORKSPACE_TOO_SMALL:
      return "workspace too small";
    case ISOBIT_DEVICE_ERROR:
      return "device error";
    case ISOBIT_INTERNAL_ERROR:
      return "internal error";
    default:
      return "unknown status";
  }
}

const char* isobit_last_error(void) { return isobit::last_error(); }

int32_t isobit_version(void) {
  return ISOBIT_VERSION_MAJOR * 10000 + ISOBIT_VERSION_MINOR * 100 + ISOBIT_VERSION_PATCH;
}

const char* isobit_build_info(void) { return isobit::kBuildInfo; }

int32_t isobit_device_count(void) { return runtime().device_count(); }

isobit_status isobit_device_info(int32_t device_id, char* name, size_t name_size, int32_t* capability) {
  const int count = runtime().device_count();
  if (device_id < 0 || device_id >= count) {
    return isobit::refuse("device_id", "the index of a CUDA device", "%d of %d", device_id, count).code();
  }
  DeviceProperties properties;
  if (const Status s = runtime().properties(device_id, &properties); !s.ok()) return s.code();
  if (name != nullptr && name_size > 0) std::snprintf(name, name_size, "%s", properties.name);
  if (capability != nullptr) *capability = properties.capability;
  return ISOBIT_OK;
}

int32_t isobit_kernel_count(void) {
  int32_t count = 0;
  while (isobit::kernel_info(count) != nullptr) ++count;
  return count;
}

isobit_status isobit_get_kernel_info(int32_t index, isobit_kernel_info* info) {
  if (info == nullptr) return isobit::refuse("info", "a pointer", "null").code();
  if (info->struct_size < sizeof(isobit_kernel_info)) {
    return isobit::refuse("info.struct_size", "sizeof(isobit_kernel_info)", "%u", info->struct_size).code();
  }
  const KernelInfo* found = index < 0 ? nullptr : isobit::kernel_info(index);
  if (found == nullptr) return isobit::refuse("index", "a row of the table of kernels", "%d", index).code();
  KernelInfo row = *found;
  const bool real = &runtime() == &isobit::default_runtime();  // devices of tests run what they are given
  if (row.device == ISOBIT_CUDA && real) {
    row.built = row.built && isobit::names_any(row.architectures, isobit::kCudaCapabilities);
  }
  const bool usable = check_usable(row).ok();
  *info = {info->struct_size, row.op,
           row.name,          row.architectures,
           row.contract,      row.built ? 1 : 0,
           usable ? 1 : 0,    usable ? "" : isobit::last_error()};
  return ISOBIT_OK;
}

}  // extern "C"
