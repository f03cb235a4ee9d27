#include "ops/nvfp4_linear/contract.h"

#include "core/threads.h"

namespace isobit::nvfp4_linear {
namespace {

Status check_weight(const isobit_nvfp4_matrix& weight, Device device, Params* params) {
  Nvfp4Shape shape;
  if (Status s = check_nvfp4_input("weight", weight, device, &shape, &params->weight); !s.ok()) return s;
  if (weight.codes.rank != 2) return refuse("weight.codes", "rank 2", "rank %d", weight.codes.rank);
  params->columns = shape.rows;
  return check_extent("weight.codes", weight.codes, 1, params->k / 2, "K/2 of x");
}

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

Status check_overlaps(const isobit_nvfp4_linear_args& args) {
  const struct {
    const char* name;
    const isobit_tensor& tensor;
  } inputs[] = {{"x.codes", args.x.codes},           {"x.scales", args.x.scales},
                {"weight.codes", args.weight.codes}, {"weight.scales", args.weight.scales},
                {"x_scale", args.x_scale.tensor},    {"weight_scale", args.weight_scale.tensor}};
  for (const auto& input : inputs) {
    if (Status s = check_apart("out", args.out, input.name, input.tensor); !s.ok()) return s;
  }
  return Status();
}

}  // namespace

Status check(const isobit_nvfp4_linear_args* args, Params* params) {
  if (args == nullptr) return refuse("args", "a pointer", "null");
  if (args->struct_size != sizeof *args) {
    return refuse("struct_size", "sizeof(isobit_nvfp4_linear_args)", "%u", args->struct_size);
  }
  *params = {};
  const isobit_tensor& first = args->x.codes;
  const Device device = {first.device_type, first.device_type == ISOBIT_CPU ? 0 : first.device_id};
  Nvfp4Shape shape;
  if (Status s = check_nvfp4_input("x", args->x, device, &shape, &params->x); !s.ok()) return s;
  params->rows = shape.rows;
  params->k = shape.k;
  if (Status s = check_weight(args->weight, device, params); !s.ok()) return s;
  if (Status s = check_nvfp4_scale("x_scale", args->x_scale, device, &params->x_scale); !s.ok()) return s;
  if (Status s = check_nvfp4_scale("weight_scale", args->weight_scale, device, &params->weight_scale); !s.ok())
    return s;
  params->dtype = args->out.dtype;
  if (Status s = check_out(*args, device, params); !s.ok()) return s;
  params->workspace = args->workspace;
  params->workspace_bytes = args->workspace_bytes;
  params->device = device;
  if (Status s = check_threads(args->threads); !s.ok()) return s;
  params->threads = args->threads;
  params->kernel = args->kernel;
  return check_overlaps(*args);
}

}  // namespace isobit::nvfp4_linear
