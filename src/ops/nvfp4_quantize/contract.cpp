#include "ops/nvfp4_quantize/contract.h"

#include "core/threads.h"

namespace isobit::nvfp4_quantize {
namespace {

Status check_input(const isobit_tensor& x, Device device, Params* params) {
  if (Status s = check_view("x", x, {ISOBIT_BF16, ISOBIT_FP16, ISOBIT_FP32}, {2, 3, 4}); !s.ok()) return s;
  if (Status s = check_device("x", x, device); !s.ok()) return s;
  RowView view;
  if (Status s = collapse_rows("x", x, &view); !s.ok()) return s;
  if (Status s = check_k("x", x.shape[x.rank - 1]); !s.ok()) return s;
  params->rows = view.rows;
  params->k = x.shape[x.rank - 1];
  params->x = x.data;
  params->x_stride = view.stride;
  params->dtype = x.dtype;
  return view.rows == 0 ? Status() : check_unit_stride("x", x, x.rank - 1);
}

Status check_overlaps(const isobit_nvfp4_quantize_args& args) {
  const isobit_tensor& global = args.global_scale.tensor;
  if (Status s = check_writable("out.codes", args.out.codes); !s.ok()) return s;
  if (Status s = check_apart("out.codes", args.out.codes, "x", args.x); !s.ok()) return s;
  if (Status s = check_apart("out.scales", args.out.scales, "x", args.x); !s.ok()) return s;
  if (Status s = check_apart("out.scales", args.out.scales, "out.codes", args.out.codes); !s.ok()) return s;
  if (!present(global)) return Status();
  if (Status s = check_apart("out.codes", args.out.codes, "global_scale", global); !s.ok()) return s;
  return check_apart("out.scales", args.out.scales, "global_scale", global);
}

}  // namespace

Status check(const isobit_nvfp4_quantize_args* args, Params* params) {
  if (args == nullptr) return refuse("args", "a pointer", "null");
  if (args->struct_size != sizeof *args) {
    return refuse("struct_size", "sizeof(isobit_nvfp4_quantize_args)", "%u", args->struct_size);
  }
  *params = {};
  const Device device = {args->x.device_type, args->x.device_type == ISOBIT_CPU ? 0 : args->x.device_id};
  if (Status s = check_input(args->x, device, params); !s.ok()) return s;
  if (Status s = check_nvfp4_scale("global_scale", args->global_scale, device, &params->global); !s.ok()) return s;
  if (Status s = check_nvfp4("out", args->out, &args->x, params->rows, params->k, device, &params->out); !s.ok()) {
    return s;
  }
  params->device = device;
  if (Status s = check_threads(args->threads); !s.ok()) return s;
  params->threads = args->threads;
  params->kernel = args->kernel;
  return check_overlaps(*args);
}

}  // namespace isobit::nvfp4_quantize
