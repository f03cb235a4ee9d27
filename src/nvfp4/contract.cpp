#include "nvfp4/contract.h"

namespace isobit {

Status check_nvfp4_operands(const isobit_nvfp4_matrix& x, const isobit_nvfp4_matrix& weight,
                            const isobit_nvfp4_scale& x_scale, Nvfp4ProductParams* params, int64_t* weight_rows) {
  const isobit_tensor& first = x.codes;
  const Device device = {first.device_type, first.device_type == ISOBIT_CPU ? 0 : first.device_id};
  params->device = device;
  Nvfp4Shape shape;
  if (Status s = check_nvfp4_input("x", x, device, &shape, &params->x); !s.ok()) return s;
  params->rows = shape.rows;
  params->k = shape.k;
  if (Status s = check_nvfp4_input("weight", weight, device, &shape, &params->weight); !s.ok()) return s;
  *weight_rows = shape.rows;
  if (weight.codes.rank != 2) return refuse("weight.codes", "rank 2", "rank %d", weight.codes.rank);
  if (Status s = check_extent("weight.codes", weight.codes, 1, params->k / 2, "K/2 of x"); !s.ok()) return s;
  return check_nvfp4_scale("x_scale", x_scale, device, &params->x_scale);
}

Status check_apart_from(const char* name, const isobit_tensor& written, std::initializer_list<NamedTensor> others) {
  for (const NamedTensor& other : others) {
    if (Status s = check_apart(name, written, other.name, other.tensor); !s.ok()) return s;
  }
  return Status();
}

}  // namespace isobit
