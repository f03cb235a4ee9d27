// What the contracts of the NVFP4 products read and check alike: x [M, K] times packed weight rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "core/threads.h"
#include "nvfp4/view.h"

namespace isobit {

inline constexpr size_t kNvfp4WorkspaceAlignment = 256;

// Checked parameters.
struct Nvfp4ProductParams {
  int64_t rows;  // M
  int64_t k;     // K, a positive multiple of 16

  Nvfp4View x;             // [M, K]
  Nvfp4View weight;        // [rows as the operator says, K]
  Nvfp4ScaleView x_scale;  // decode

  void* workspace;
  size_t workspace_bytes;
  Device device;
  int threads;         // CPU only, 0: default
  const char* kernel;  // forced row of the table, or nullptr
};

// The device is that of x. `weight_rows` gets how many rows the weight has.
Status check_nvfp4_operands(const isobit_nvfp4_matrix& x, const isobit_nvfp4_matrix& weight,
                            const isobit_nvfp4_scale& x_scale, Nvfp4ProductParams* params, int64_t* weight_rows);

// The operands, and what says how the call runs.
template <class Args>
Status check_nvfp4_product(const Args& args, Nvfp4ProductParams* params, int64_t* weight_rows) {
  params->workspace = args.workspace;
  params->workspace_bytes = args.workspace_bytes;
  params->threads = args.threads;
  params->kernel = args.kernel;
  if (Status s = check_threads(args.threads); !s.ok()) return s;
  return check_nvfp4_operands(args.x, args.weight, args.x_scale, params, weight_rows);
}

struct NamedTensor {
  const char* name;
  const isobit_tensor& tensor;
};

// check_apart of one written tensor and many others.
Status check_apart_from(const char* name, const isobit_tensor& written, std::initializer_list<NamedTensor> others);

}  // namespace isobit
