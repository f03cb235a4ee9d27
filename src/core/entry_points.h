// The C entry functions of an operator with a workspace, written once over its table of kernels.
#pragma once

#include <cstdio>
#include <span>

#include "core/kernel_table.h"

namespace isobit {

template <class Args, class Params>
struct EntryPoints {
  std::span<const Kernel<Params>> table;
  Status (*check)(const Args* args, Params* params);
  bool (*is_empty)(const Params& params);  // nothing to write: such a call needs no workspace and launches nothing
  size_t workspace_alignment;

  isobit_status workspace(const Args* args, size_t* minimum, size_t* recommended) const {
    Params params;
    const auto answer = [&](const Kernel<Params>& kernel) {
      const WorkspaceBytes bytes = kernel.workspace(params);
      if (minimum != nullptr) *minimum = bytes.minimum;
      if (recommended != nullptr) *recommended = bytes.recommended;
      return Status();
    };
    return with_kernel(args, &params, answer).code();
  }

  isobit_status supported(const Args* args, char* why, size_t n) const {
    Params params;
    const Status status =
        with_kernel(args, &params, [&](const Kernel<Params>& kernel) { return check_memory(params, kernel); });
    if (why != nullptr && n > 0) std::snprintf(why, n, "%s", status.ok() ? "" : last_error());
    return status.code();
  }

  isobit_status run(const Args* args, void* stream) const {
    Params params;
    const auto launch = [&](const Kernel<Params>& kernel) {
      const Status status = check_memory(params, kernel);
      return status.ok() && !is_empty(params) ? kernel.run(params, stream) : status;
    };
    return with_kernel(args, &params, launch).code();
  }

 private:
  // Checks the arguments and calls `then` with the row of the table that takes the call, or says why there is none.
  template <class Then>
  Status with_kernel(const Args* args, Params* params, const Then& then) const {
    if (Status s = check(args, params); !s.ok()) return s;
    const Kernel<Params>* kernel = nullptr;
    const Status status = select_kernel<Params>(table, params->kernel, *params, params->device, &kernel);
    return kernel == nullptr ? status : then(*kernel);
  }

  Status check_memory(const Params& params, const Kernel<Params>& kernel) const {
    return check_workspace(is_empty(params) ? WorkspaceBytes{} : kernel.workspace(params), params.workspace,
                           params.workspace_bytes, workspace_alignment);
  }
};

}  // namespace isobit
