#include "ops/nvfp4_linear/contract.h"

namespace isobit::nvfp4_linear {
namespace {

Status check_out(const isobit_nvfp4_linear_args& args, Device device, Params* params) {
  const isobit_tensor& out = args.out;
  if (Status s = check_view("out", out, {ISOBIT_BF16, ISOBIT_FP32}, {2, 3, 4}); !s.ok()) return s;
  if (Status s = check_device("out", out, device); !s.ok()) return s;
  if (out.rank != args.x.codes.rank) return refuse("out", "the rank of x", "rank %d", out.rank);
  for (int i = 0; i + 1 < out.rank; ++i) {
    if (Status s = check_extent("out", out, i, args.x.codes.shape[i], "that of x"); !s.ok()) return s;
  }
  if (Status s = check_extent("out", out, out.rank - 1, params->columns, "N"); !s.ok()) return s;
  if (params->rows == 0 || params->columns == 0) return Status();
  RowView view;
  if (Status s = collapse_rows("out", out, &view); !s.ok()) return s;
  if (Status s = check_unit_stride("out", out, out.rank - 1); !s.ok()) return s;
  params->out = out.data;
  params->out_stride = view.stride;
  return check_writable("out", out);
}

}  // namespace

Status check(const isobit_nvfp4_linear_args* args, Params* params) {
  if (args == nullptr) return refuse("args", "a pointer", "null");
  if (args->struct_size != sizeof *args) {
    return refuse("struct_size", "sizeof(isobit_nvfp4_linear_args)", "%u", args->struct_size);
  }
  *params = {};
  if (Status s = check_nvfp4_product(*args, params, &params->columns); !s.ok()) return s;
  const isobit_nvfp4_scale& scale = args->weight_scale;
  if (Status s = check_nvfp4_scale("weight_scale", scale, params->device, &params->weight_scale); !s.ok()) return s;
  params->dtype = args->out.dtype;
  if (Status s = check_out(*args, params->device, params); !s.ok()) return s;
  return check_apart_from("out", args->out,
                          {{"x.codes", args->x.codes},
                           {"x.scales", args->x.scales},
                           {"weight.codes", args->weight.codes},
                           {"weight.scales", args->weight.scales},
                           {"x_scale", args->x_scale.tensor},
                           {"weight_scale", args->weight_scale.tensor}});
}

}  // namespace isobit::nvfp4_linear
