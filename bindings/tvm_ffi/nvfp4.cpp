// isobit/nvfp4_quantize.h, nvfp4_linear.h and nvfp4_geglu.h for TVM-FFI. A layout is the number of isobit_nvfp4_layout;
// a global scale is a number and, if it is to be read when the kernel runs, a tensor of one element.
#include <isobit/nvfp4_geglu.h>
#include <isobit/nvfp4_linear.h>
#include <isobit/nvfp4_quantize.h>

#include "arguments.h"

namespace isobit::tvm_ffi {
namespace {

isobit_nvfp4_matrix matrix(const char* codes_name, const Tensor& codes, const char* scales_name, const Tensor& scales,
                           int32_t layout) {
  isobit_nvfp4_matrix out = {};
  out.codes = view(codes_name, codes);
  out.scales = view(scales_name, scales);
  out.layout = layout;
  return out;
}

isobit_nvfp4_scale scale(const char* name, double value, const MaybeTensor& tensor) {
  isobit_nvfp4_scale out = {};
  out.value = static_cast<float>(value);
  out.tensor = view(name, tensor);
  return out;
}

void nvfp4_quantize(Tensor x, double global_scale, MaybeTensor global_scale_tensor, Tensor codes, Tensor scales,
                    int32_t layout) {
  isobit_nvfp4_quantize_args args = ISOBIT_NVFP4_QUANTIZE_ARGS_INIT;
  args.x = view("x", x);
  args.global_scale = scale("global_scale", global_scale, global_scale_tensor);
  args.out = matrix("out.codes", codes, "out.scales", scales, layout);
  check(isobit_nvfp4_quantize(&args, stream_of(x)));
}

void nvfp4_linear(Tensor x_codes, Tensor x_scales, int32_t x_layout, Tensor weight_codes, Tensor weight_scales,
                  int32_t weight_layout, double x_scale, MaybeTensor x_scale_tensor, double weight_scale,
                  MaybeTensor weight_scale_tensor, Tensor out, MaybeTensor workspace) {
  isobit_nvfp4_linear_args args = ISOBIT_NVFP4_LINEAR_ARGS_INIT;
  args.x = matrix("x.codes", x_codes, "x.scales", x_scales, x_layout);
  args.weight = matrix("weight.codes", weight_codes, "weight.scales", weight_scales, weight_layout);
  args.x_scale = scale("x_scale", x_scale, x_scale_tensor);
  args.weight_scale = scale("weight_scale", weight_scale, weight_scale_tensor);
  args.out = view("out", out);
  size_t bytes = 0;
  if (!workspace.has_value()) check(isobit_nvfp4_linear_workspace(&args, nullptr, &bytes));
  const Workspace memory(workspace, bytes, x_codes.device());
  args.workspace = memory.data();
  args.workspace_bytes = memory.bytes();
  check(isobit_nvfp4_linear(&args, stream_of(x_codes)));
}

void nvfp4_geglu(Tensor x_codes, Tensor x_scales, int32_t x_layout, Tensor weight_codes, Tensor weight_scales,
                 int32_t weight_layout, double x_scale, MaybeTensor x_scale_tensor, double gate_scale,
                 MaybeTensor gate_scale_tensor, double up_scale, MaybeTensor up_scale_tensor, double out_scale,
                 MaybeTensor out_scale_tensor, int32_t gelu, Tensor out_codes, Tensor out_scales, int32_t out_layout,
                 MaybeTensor workspace) {
  isobit_nvfp4_geglu_args args = ISOBIT_NVFP4_GEGLU_ARGS_INIT;
  args.x = matrix("x.codes", x_codes, "x.scales", x_scales, x_layout);
  args.weight = matrix("weight.codes", weight_codes, "weight.scales", weight_scales, weight_layout);
  args.x_scale = scale("x_scale", x_scale, x_scale_tensor);
  args.gate_scale = scale("gate_scale", gate_scale, gate_scale_tensor);
  args.up_scale = scale("up_scale", up_scale, up_scale_tensor);
  args.out_scale = scale("out_scale", out_scale, out_scale_tensor);
  args.out = matrix("out.codes", out_codes, "out.scales", out_scales, out_layout);
  args.gelu = gelu;
  size_t bytes = 0;
  if (!workspace.has_value()) check(isobit_nvfp4_geglu_workspace(&args, nullptr, &bytes));
  const Workspace memory(workspace, bytes, x_codes.device());
  args.workspace = memory.data();
  args.workspace_bytes = memory.bytes();
  check(isobit_nvfp4_geglu(&args, stream_of(x_codes)));
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(nvfp4_quantize, nvfp4_quantize)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(nvfp4_linear, nvfp4_linear)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(nvfp4_geglu, nvfp4_geglu)

}  // namespace isobit::tvm_ffi
