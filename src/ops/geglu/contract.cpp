#include "ops/geglu/contract.h"

#include <cstdio>

#include "core/threads.h"

namespace isobit::geglu {
namespace {

// A tensor with its place in the matrix view of the call.
struct Operand {
  const char* name;
  const isobit_tensor* tensor;
  Matrix matrix;
};

bool is_empty(const isobit_tensor& tensor) {
  for (int i = 0; i < tensor.rank; ++i) {
    if (tensor.shape[i] == 0) return true;
  }
  return false;
}

int64_t last_extent(const isobit_tensor& tensor) { return tensor.shape[tensor.rank - 1]; }

// Distance of neighbours in a row; 1 if there are none.
int64_t step_of(const isobit_tensor& tensor) { return last_extent(tensor) > 1 ? tensor.stride[tensor.rank - 1] : 1; }

// The leading dimensions as rows at one distance (dimensions of size 1 have no say); 0 if there is one row.
Status collapse_rows(const char* name, const isobit_tensor& tensor, int64_t* row_stride) {
  int64_t next_stride = 0;
  int64_t next_extent = 0;
  *row_stride = 0;
  for (int i = tensor.rank - 2; i >= 0; --i) {
    if (tensor.shape[i] <= 1) continue;
    if (next_extent == 0) {
      *row_stride = tensor.stride[i];
    } else if (const long long wanted = next_stride * next_extent; tensor.stride[i] != wanted) {
      char expected[96];
      std::snprintf(expected, sizeof expected, "leading dimensions at one distance (stride[%d] = %lld)", i, wanted);
      return refuse(name, expected, "%lld", static_cast<long long>(tensor.stride[i]));
    }
    next_stride = tensor.stride[i];
    next_extent = tensor.shape[i];
  }
  return Status();
}

// View, device, shape and rows of one operand; `first` is the tensor that the others follow.
Status check_operand(Operand* operand, const isobit_tensor& first, Device device) {
  const isobit_tensor& tensor = *operand->tensor;
  const char* name = operand->name;
  if (Status s = check_view(name, tensor, {ISOBIT_BF16, ISOBIT_FP16, ISOBIT_FP32}, {1, 2, 3, 4}); !s.ok()) return s;
  if (Status s = check_device(name, tensor, device); !s.ok()) return s;
  if (tensor.dtype != first.dtype) {
    char expected[64];
    std::snprintf(expected, sizeof expected, "%s like gate", dtype_name(first.dtype));
    return refuse(name, expected, "%s", dtype_name(tensor.dtype));
  }
  if (tensor.rank != first.rank) {
    char expected[64];
    std::snprintf(expected, sizeof expected, "rank %d like gate", first.rank);
    return refuse(name, expected, "rank %d", tensor.rank);
  }
  for (int i = 0; i < tensor.rank; ++i) {
    const char* letter = i == tensor.rank - 1 ? "I of gate" : "that of gate";
    if (Status s = check_extent(name, tensor, i, first.shape[i], letter); !s.ok()) return s;
  }
  operand->matrix.data = tensor.data;
  if (is_empty(tensor)) return Status();
  return collapse_rows(name, tensor, &operand->matrix.row_stride);
}

// Rows of `first`, refused if they do not fit.
Status count_rows(const isobit_tensor& first, int64_t* rows) {
  constexpr int64_t kMaxRows = int64_t{1} << 62;
  *rows = is_empty(first) ? 0 : 1;
  for (int i = 0; i + 1 < first.rank && *rows > 0; ++i) {
    if (first.shape[i] > (kMaxRows - 1) / *rows) return refuse("gate", "fewer than 2^62 rows", "more");
    *rows *= first.shape[i];
  }
  return Status();
}

// Both tensors have neighbours next to each other, or they alternate in one buffer.
Status check_pair(const Operand& first, const Operand& second, int32_t* step) {
  const isobit_tensor& a = *first.tensor;
  const isobit_tensor& b = *second.tensor;
  *step = 1;
  if (step_of(a) == 1 && step_of(b) == 1) return Status();
  if (step_of(a) != 2 || step_of(b) != 2) {
    const Operand& odd = step_of(a) != 1 ? first : second;
    return refuse(odd.name, "last stride 1, or 2 in both tensors of an interleaved pair", "%lld",
                  static_cast<long long>(step_of(*odd.tensor)));
  }
  const int64_t distance = static_cast<const char*>(b.data) - static_cast<const char*>(a.data);
  const int64_t element = dtype_bytes(a.dtype);
  const bool adjacent =
      (distance == element || distance == -element) && first.matrix.row_stride == second.matrix.row_stride;
  if (!adjacent) {
    char expected[96];
    std::snprintf(expected, sizeof expected, "the element next to %s and its row stride (interleaved pair)",
                  first.name);
    return refuse(second.name, expected, "%lld bytes away, row stride %lld against %lld",
                  static_cast<long long>(distance), static_cast<long long>(second.matrix.row_stride),
                  static_cast<long long>(first.matrix.row_stride));
  }
  *step = 2;
  return Status();
}

bool same_view(const Operand& a, const Operand& b) {
  return a.matrix.data == b.matrix.data && a.matrix.row_stride == b.matrix.row_stride &&
         step_of(*a.tensor) == step_of(*b.tensor);
}

// Whether two operands are known to share no element: distant, columns of one row stride that do not meet, or
// alternating elements.
bool disjoint(const Operand& a, const Operand& b) {
  const ByteRange a_range = byte_range(*a.tensor);
  const ByteRange b_range = byte_range(*b.tensor);
  if (!a_range.overlaps(b_range)) return true;
  const int64_t size = dtype_bytes(a.tensor->dtype);
  const int64_t stride = a.matrix.row_stride * size;
  if (stride != b.matrix.row_stride * size) return false;
  const int64_t distance = static_cast<int64_t>(b_range.begin) - static_cast<int64_t>(a_range.begin);
  const bool alternate = step_of(*a.tensor) == 2 && step_of(*b.tensor) == 2 && (distance == size || distance == -size);
  // A pair of rows is twice as wide as either; at an odd distance below that the second row of one meets the other.
  if (alternate) return stride == 0 || stride >= 2 * last_extent(*a.tensor) * size;
  if (stride == 0) return false;
  const auto row_bytes = [size](const Operand& x) {
    return ((last_extent(*x.tensor) - 1) * step_of(*x.tensor) + 1) * size;
  };
  const int64_t offset = ((distance % stride) + stride) % stride;
  return offset >= row_bytes(a) && offset + row_bytes(b) <= stride;
}

Status check_disjoint(const Operand& output, const Operand& other) {
  if (disjoint(output, other)) return Status();
  char expected[96];
  std::snprintf(expected, sizeof expected, "memory that does not overlap %s", other.name);
  return refuse(output.name, expected, "an overlap");
}

Status check_options(isobit_gelu gelu, int32_t round_gelu) {
  if (gelu != ISOBIT_GELU_TANH && gelu != ISOBIT_GELU_ERF) {
    return refuse("gelu", "ISOBIT_GELU_TANH or ISOBIT_GELU_ERF", "%d", gelu);
  }
  if (round_gelu != 0 && round_gelu != 1) return refuse("round_gelu", "0 or 1", "%d", round_gelu);
  return Status();
}

// Checks every operand against the first one and fills what the two directions share.
template <class Args, size_t kCount>
Status check_shared(const Args& args, Operand (&operands)[kCount], Params* params) {
  if (Status s = check_options(args.gelu, args.round_gelu); !s.ok()) return s;
  const isobit_tensor& first = args.gate;
  const Device device = {first.device_type, first.device_type == ISOBIT_CPU ? 0 : first.device_id};
  for (Operand& operand : operands) {
    if (Status s = check_operand(&operand, first, device); !s.ok()) return s;
  }
  if (Status s = count_rows(first, &params->rows); !s.ok()) return s;
  params->columns = last_extent(first);
  params->gate = operands[0].matrix;
  params->up = operands[1].matrix;
  params->out = operands[2].matrix;
  params->dtype = first.dtype;
  params->gelu = static_cast<numerics::Gelu>(args.gelu);
  params->round_gelu = args.round_gelu != 0;
  params->device = device;
  if (Status s = check_threads(args.threads); !s.ok()) return s;
  params->threads = args.threads;
  params->kernel = args.kernel;
  params->gradient_step = 1;
  if (params->rows == 0 || params->columns == 0) {
    params->input_step = 1;
    return Status();
  }
  if (Status s = check_pair(operands[0], operands[1], &params->input_step); !s.ok()) return s;
  return check_unit_stride(operands[2].name, *operands[2].tensor, first.rank - 1);
}

}  // namespace

Status check(const isobit_geglu_forward_args* args, Params* params) {
  if (args == nullptr) return refuse("args", "a pointer", "null");
  if (args->struct_size != sizeof *args) {
    return refuse("struct_size", "sizeof(isobit_geglu_forward_args)", "%u", args->struct_size);
  }
  *params = {};
  Operand operands[] = {{"gate", &args->gate, {}}, {"up", &args->up, {}}, {"out", &args->out, {}}};
  if (Status s = check_shared(*args, operands, params); !s.ok()) return s;
  if (params->rows == 0 || params->columns == 0) return Status();
  if (Status s = check_writable("out", args->out); !s.ok()) return s;
  for (int input = 0; input < 2; ++input) {
    if (Status s = check_disjoint(operands[2], operands[input]); !s.ok()) return s;
  }
  return Status();
}

Status check(const isobit_geglu_backward_args* args, Params* params) {
  if (args == nullptr) return refuse("args", "a pointer", "null");
  if (args->struct_size != sizeof *args) {
    return refuse("struct_size", "sizeof(isobit_geglu_backward_args)", "%u", args->struct_size);
  }
  if (args->in_place != 0 && args->in_place != 1) return refuse("in_place", "0 or 1", "%d", args->in_place);
  if (args->reserved != 0) return refuse("reserved", "0", "%d", args->reserved);
  *params = {};
  params->backward = true;
  Operand operands[] = {{"gate", &args->gate, {}},
                        {"up", &args->up, {}},
                        {"d_out", &args->d_out, {}},
                        {"d_gate", &args->d_gate, {}},
                        {"d_up", &args->d_up, {}}};
  if (Status s = check_shared(*args, operands, params); !s.ok()) return s;
  params->d_gate = operands[3].matrix;
  params->d_up = operands[4].matrix;
  if (params->rows == 0 || params->columns == 0) return Status();
  if (Status s = check_pair(operands[3], operands[4], &params->gradient_step); !s.ok()) return s;
  for (int output = 3; output < 5; ++output) {
    if (Status s = check_writable(operands[output].name, *operands[output].tensor); !s.ok()) return s;
    for (int input = 0; input < 3; ++input) {
      if (args->in_place == 1 && input == output - 3 && same_view(operands[output], operands[input])) continue;
      if (Status s = check_disjoint(operands[output], operands[input]); !s.ok()) return s;
    }
  }
  return check_disjoint(operands[4], operands[3]);
}

Params flattened(const Params& params) {
  const auto gapless = [&](const Matrix& matrix, int32_t step) { return matrix.row_stride == params.columns * step; };
  bool all = gapless(params.gate, params.input_step) && gapless(params.up, params.input_step) && gapless(params.out, 1);
  if (params.backward) {
    all = all && gapless(params.d_gate, params.gradient_step) && gapless(params.d_up, params.gradient_step);
  }
  if (!all || params.rows <= 1) return params;
  Params flat = params;
  flat.columns = params.rows * params.columns;
  flat.rows = 1;
  for (Matrix* matrix : {&flat.gate, &flat.up, &flat.out, &flat.d_gate, &flat.d_up}) matrix->row_stride = 0;
  return flat;
}

}  // namespace isobit::geglu
