#include "ops/nvfp4_geglu/contract.h"

namespace isobit::nvfp4_geglu {
namespace {

Status check_width(int64_t weight_rows, Params* params) {
  params->width = weight_rows / 2;
  if (weight_rows > 0 && weight_rows % 32 == 0) return Status();
  return refuse("weight.codes", "2I rows, I a positive multiple of 16", "%lld rows",
                static_cast<long long>(weight_rows));
}

Status check_global_scales(const isobit_nvfp4_geglu_args& args, Device device, Params* params) {
  if (Status s = check_nvfp4_scale("gate_scale", args.gate_scale, device, &params->gate_scale); !s.ok()) return s;
  if (Status s = check_nvfp4_scale("up_scale", args.up_scale, device, &params->up_scale); !s.ok()) return s;
  return check_nvfp4_scale("out_scale", args.out_scale, device, &params->out_scale);
}

Status check_overlaps(const isobit_nvfp4_geglu_args& args) {
  const std::initializer_list<NamedTensor> inputs = {
      {"x.codes", args.x.codes},           {"x.scales", args.x.scales},
      {"weight.codes", args.weight.codes}, {"weight.scales", args.weight.scales},
      {"x_scale", args.x_scale.tensor},    {"gate_scale", args.gate_scale.tensor},
      {"up_scale", args.up_scale.tensor},  {"out_scale", args.out_scale.tensor}};
  if (Status s = check_apart_from("out.codes", args.out.codes, inputs); !s.ok()) return s;
  if (Status s = check_apart_from("out.scales", args.out.scales, inputs); !s.ok()) return s;
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
  int64_t weight_rows = 0;
  if (Status s = check_nvfp4_product(*args, params, &weight_rows); !s.ok()) return s;
  if (Status s = check_width(weight_rows, params); !s.ok()) return s;
  const Device device = params->device;
  if (Status s = check_global_scales(*args, device, params); !s.ok()) return s;
  if (Status s = check_nvfp4("out", args->out, &args->x.codes, params->rows, params->width, device, &params->out);
      !s.ok()) {
    return s;
  }
  if (params->rows > 0) {
    if (Status s = check_writable("out.codes", args->out.codes); !s.ok()) return s;
  }
  params->gelu = static_cast<numerics::Gelu>(args->gelu);
  return check_overlaps(*args);
}

}  // namespace isobit::nvfp4_geglu
