// isobit/geglu.h for TVM-FFI. gelu is the number of isobit_gelu.
#include <isobit/geglu.h>

#include "arguments.h"

namespace isobit::tvm_ffi {
namespace {

void geglu_forward(Tensor gate, Tensor up, Tensor out, int32_t gelu, bool round_gelu) {
  isobit_geglu_forward_args args = ISOBIT_GEGLU_FORWARD_ARGS_INIT;
  args.gate = view("gate", gate);
  args.up = view("up", up);
  args.out = view("out", out);
  args.gelu = gelu;
  args.round_gelu = round_gelu;
  check(isobit_geglu_forward(&args, stream_of(gate)));
}

void geglu_backward(Tensor d_out, Tensor gate, Tensor up, Tensor d_gate, Tensor d_up, int32_t gelu, bool round_gelu) {
  isobit_geglu_backward_args args = ISOBIT_GEGLU_BACKWARD_ARGS_INIT;
  args.gate = view("gate", gate);
  args.up = view("up", up);
  args.d_out = view("d_out", d_out);
  args.d_gate = view("d_gate", d_gate);
  args.d_up = view("d_up", d_up);
  args.gelu = gelu;
  args.round_gelu = round_gelu;
  check(isobit_geglu_backward(&args, stream_of(gate)));
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(geglu_forward, geglu_forward)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(geglu_backward, geglu_backward)

}  // namespace isobit::tvm_ffi
