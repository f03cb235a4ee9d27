#include "ops/nvfp4_geglu/contract.h"

#include "core/threads.h"

namespace isobit::nvfp4_geglu {
namespace {

Status check_weight(const isobit_nvfp4_matrix& weight, Device device, Params* params) {
  Nvfp4Shape shape;
  if (Status s = check_nvfp4_input("weight", weight, device, &shape, &params->weight); !s.ok()) return s;
  if (weight.codes.rank != 2) return refuse("weight.codes", "rank 2", "rank %d", weight.codes.rank);
  if (shape.rows == 0 || shape.rows % 32 != 0) {
    return refuse("weight.codes", "2I rows, I a positive multiple of 16", "%lld rows",
                  static_cast<long long>(shape.rows));
  }
  params->width = shape.rows / 2;
  return check_extent("weight.codes", weight.codes, 1, params->k / 2, "K/2 of x");
}

Status check_global_scales(const isobit_nvfp4_geglu_args& args, Device device, Params* params) {
  if (Status s = check_nvfp4_scale("x_scale", args.x_scale, device, &params->x_scale); !s.ok()) return s;
  if (Status s = check_nvfp4_scale("gate_scale", args.gate_scale, device, &params->gate_scale); !s.ok()) return s;
  if (Status s = check_nvfp4_scale("up_scale", args.up_scale, device, &params->up_scale); !s.ok()) return s;
  return check_nvfp4_scale("out_scale", args.out_scale, device, &params->out_scale);
}

Status check_overlaps(const isobit_nvfp4_geglu_args& args) {
  const struct {
    const char* name;
    const isobit_tensor& tensor;
  } inputs[] = {{"x.codes", args.x.codes},           {"x.scales", args.x.scales},
                {"weight.codes", args.weight.codes}, {"weight.scales", args.weight.scales},
                {"x_scale", args.x_scale.tensor},    {"gate_scale", args.gate_scale.tensor},
                {"up_scale", args.up_scale.tensor},  {"out_scale", args.out_scale.tensor}};
  for (const auto& input : inputs) {
    if (Status s = check_apart("out.codes", args.out.codes, input.name, input.tensor); !s.ok()) return s;
    if (Status s = check_apart("out.scales", args.out.scales, input.name, input.tensor); !s.ok()) return s;
  }
  return check_apart("out.scales", args.out.scales, "out.codes", args.out.codes);
}

}  // namespace

Status check(const isobit_nvfp4_geglu_args* args, Params* params) {
  if (args == nullptr) return refuse("args", "a pointer", "null");
  if (args->struct_size != sizeof *args) {
    return refuse("struct_size", "sizeof(isobit_nvfp4_geglu_args)", "%u", args->struct_size);
  }
  *params = {};
  if (args->gelu != ISOBIT_GELU_TANH && args->gelu != ISOBIT_GELU_ERF) {
    return refuse("gelu", "ISOBIT_GELU_TANH or ISOBIT_GELU_ERF", "%d", args->gelu);
  }
  if (args->reserved != 0) return refuse("reserved", "0", "%d", args->reserved);
  const isobit_tensor& first = args->x.codes;
  const Device device = {first.device_type, first.device_type == ISOBIT_CPU ? 0 : first.device_id};
  Nvfp4Shape shape;
  if (Status s = check_nvfp4_input("x", args->x, device, &shape, &params->x); !s.ok()) return s;
  params->rows = shape.rows;
  params->k = shape.k;
  if (Status s = check_weight(args->weight, device, params); !s.ok()) return s;
  if (Status s = check_global_scales(*args, device, params); !s.ok()) return s;
  if (Status s = check_nvfp4("out", args->out, &first, params->rows, params->width, device, &params->out); !s.ok()) {
    return s;
  }
  if (params->rows > 0) {
    if (Status s = check_writable("out.codes", args->out.codes); !s.ok()) return s;
  }
  params->gelu = static_cast<numerics::Gelu>(args->gelu);
  params->workspace = args->workspace;
  params->workspace_bytes = args->workspace_bytes;
  params->device = device;
  if (Status s = check_threads(args->threads); !s.ok()) return s;
  params->threads = args->threads;
  params->kernel = args->kernel;
  return check_overlaps(*args);
}

}  // namespace isobit::nvfp4_geglu
