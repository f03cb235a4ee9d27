// One table of kernels per operator, best row first. Dispatch, error messages, `isobit list` and the operator pages all
// read the same rows, so they cannot drift apart.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <span>

#include "core/runtime.h"
#include "core/status.h"
#include "core/tensor.h"

namespace isobit {

struct KernelInfo {
  const char* op;
  const char* name;
  const char* architectures;
  const char* contract;
  isobit_device_type device;
  int min_capability;  // of a CUDA row, inclusive; 0 on the CPU
  int max_capability;
  bool built;
};

// With `minimum` a call works in pieces, with `recommended` (at least minimum) nothing is gained by more.
struct WorkspaceBytes {
  size_t minimum = 0;
  size_t recommended = 0;
};

template <class Params>
struct Kernel {
  KernelInfo info;
  Status (*takes)(const Params& params, const DeviceProperties& device);  // ok, or a refusal that says why not
  Status (*run)(const Params& params, void* stream);
  WorkspaceBytes (*workspace)(const Params& params);  // of shapes, dtypes, options and threads; never of pointers
};

// Whether a row can run on a device of these properties at all; the reason goes to the thread's message.
Status check_row(const KernelInfo& info, Device device, const DeviceProperties& properties);

// The caller's workspace against what a call needs.
Status check_workspace(const WorkspaceBytes& needed, const void* workspace, size_t bytes, size_t alignment);

// Collects "name: reason" lines while a table is searched.
class RefusalList {
 public:
  void add(const char* kernel, const char* reason);
  const char* text() const { return text_; }

 private:
  char text_[3072] = "";
  size_t length_ = 0;
};

// First row that takes the call, or the row called `forced`. No silent fallback: if none fits, the status is
// UNSUPPORTED and the message has one line per row.
template <class Params>
Status select_kernel(std::span<const Kernel<Params>> table, const char* forced, const Params& params, Device device,
                     const Kernel<Params>** selected) {
  DeviceProperties properties;
  if (device.type == ISOBIT_CUDA) {
    if (Status s = runtime().properties(device.id, &properties); !s.ok()) return s;
  }
  RefusalList refusals;
  bool known = false;
  for (const Kernel<Params>& kernel : table) {
    if (forced != nullptr && std::strcmp(forced, kernel.info.name) != 0) continue;
    known = true;
    Status status = check_row(kernel.info, device, properties);
    if (status.ok()) status = kernel.takes(params, properties);
    if (status.ok()) {
      *selected = &kernel;
      return status;
    }
    refusals.add(kernel.info.name, last_error());
  }
  if (!known) return refuse("kernel", "the name of a row of `isobit list`", "\"%s\"", forced);
  return fail(ISOBIT_UNSUPPORTED, "%s: no kernel takes this call%s", table.front().info.op, refusals.text());
}

}  // namespace isobit
