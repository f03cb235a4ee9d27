#include "pack/matrix.h"

#include <cmath>
#include <cstring>

#include "numerics/bf16.h"
#include "numerics/fp16.h"

namespace isobit::cli {
namespace {

using checkpoint::Dtype;
using checkpoint::refuse;
using checkpoint::Result;
using checkpoint::Status;
using checkpoint::TensorView;

Status wrong(const TensorView& tensor, const std::string& rule, const std::string& expected, const std::string& got) {
  return refuse(tensor.file, "tensor " + checkpoint::in_quotes(tensor.name), rule, expected, got);
}

std::string shape_text(const TensorView& tensor) {
  std::string text = "[";
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    text += std::string(i > 0 ? ", " : "") + std::to_string(tensor.shape[i]);
  return text + "]";
}

Status check_float(const TensorView& tensor) {
  if (tensor.dtype == Dtype::kBF16 || tensor.dtype == Dtype::kF16 || tensor.dtype == Dtype::kF32) return Status{};
  return wrong(tensor, "dtype", "BF16, F16 or F32", std::string(checkpoint::dtype_name(tensor.dtype)));
}

Status check_shape(const TensorView& tensor, const std::vector<uint64_t>& shape) {
  if (tensor.shape == shape) return Status{};
  std::string expected = "[";
  for (size_t i = 0; i < shape.size(); ++i) expected += std::string(i > 0 ? ", " : "") + std::to_string(shape[i]);
  return wrong(tensor, "shape", expected + "]", shape_text(tensor));
}

Result<Matrix> plain(const TensorView& tensor) {
  if (Status s = check_float(tensor); !s.ok()) return s;
  if (tensor.shape.size() != 2) return wrong(tensor, "shape", "two dimensions", shape_text(tensor));
  Matrix m;
  m.rows = static_cast<int64_t>(tensor.shape[0]);
  m.columns = static_cast<int64_t>(tensor.shape[1]);
  m.data = tensor.bytes.data();
  m.dtype = tensor.dtype;
  m.row_stride = m.columns;
  m.column_stride = 1;
  return m;
}

// A scalar of fp32, whatever its rank.
Result<float> scalar(const TensorView& tensor) {
  float value = 0;
  if (tensor.dtype != Dtype::kF32 || tensor.bytes.size() != sizeof value) {
    return wrong(tensor, "global scale", "one F32",
                 std::string(checkpoint::dtype_name(tensor.dtype)) + " " + shape_text(tensor));
  }
  std::memcpy(&value, tensor.bytes.data(), sizeof value);
  if (value > 0 && std::isfinite(value)) return value;
  return wrong(tensor, "global scale", "a positive finite number", std::to_string(value));
}

// ModelOpt: weight, weight_scale, weight_scale_2 (decode). compressed-tensors: weight_packed, weight_scale,
// weight_global_scale (its reciprocal).
Result<Matrix> quantized(checkpoint::Checkpoint* from, const std::string& name, const TensorView& codes,
                         bool reciprocal) {
  if (codes.dtype != Dtype::kU8) return wrong(codes, "dtype", "U8", std::string(checkpoint::dtype_name(codes.dtype)));
  if (codes.shape.size() != 2) return wrong(codes, "shape", "two dimensions", shape_text(codes));
  auto scales = from->find(name + ".weight_scale");
  if (!scales.ok()) return scales.status();
  auto global = from->find(name + (reciprocal ? ".weight_global_scale" : ".weight_scale_2"));
  if (!global.ok()) return global.status();
  if (scales->dtype != Dtype::kF8E4M3) {
    return wrong(*scales, "dtype", "F8_E4M3", std::string(checkpoint::dtype_name(scales->dtype)));
  }
  if (codes.shape[1] % 8 != 0) return wrong(codes, "shape", "K a multiple of 16", shape_text(codes));
  if (Status s = check_shape(*scales, {codes.shape[0], codes.shape[1] / 8}); !s.ok()) return s;
  const auto value = scalar(*global);
  if (!value.ok()) return value.status();
  Matrix m;
  m.rows = static_cast<int64_t>(codes.shape[0]);
  m.columns = static_cast<int64_t>(2 * codes.shape[1]);
  m.packed = true;
  m.codes = reinterpret_cast<const uint8_t*>(codes.bytes.data());
  m.scales = reinterpret_cast<const uint8_t*>(scales->bytes.data());
  m.decode_scale = reciprocal ? 1.0f / *value : *value;
  return m;
}

// Matrix `index` of [.., inner, outer]: as stored, or its transpose [outer, inner].
Matrix slice(const TensorView& tensor, int64_t index, bool transposed) {
  const auto inner = static_cast<int64_t>(tensor.shape[tensor.shape.size() - 2]);
  const auto outer = static_cast<int64_t>(tensor.shape.back());
  Matrix m;
  m.rows = transposed ? outer : inner;
  m.columns = transposed ? inner : outer;
  m.data = tensor.bytes.data() + static_cast<size_t>(index * inner * outer) * checkpoint::dtype_bits(tensor.dtype) / 8;
  m.dtype = tensor.dtype;
  m.row_stride = transposed ? 1 : outer;
  m.column_stride = transposed ? outer : 1;
  return m;
}

Result<Matrix> stacked(const TensorView& tensor, const MatrixName& name) {
  const bool down = name.stack == Stack::kDown;
  if (tensor.shape.size() != (down ? 3 : 4) || (!down && tensor.shape[1] != 2)) {
    return wrong(tensor, "shape", down ? "[L, I, H]" : "[L, 2, H, I]", shape_text(tensor));
  }
  if (static_cast<uint64_t>(name.layer) >= tensor.shape[0]) {
    return wrong(tensor, "shape", std::to_string(name.layer + 1) + " layers", shape_text(tensor));
  }
  const int64_t half = name.stack == Stack::kUp ? 1 : 0;
  // The stored matrix is [in, out]; the product's weight is its transpose [out, in].
  return slice(tensor, down ? name.layer : 2 * name.layer + half, true);
}

// gating_einsum [2, H, I] or [2, I, H] of a layer by itself; linear is [I, H] either way.
Result<Matrix> gating(const TensorView& tensor, const TensorView& linear, Stack stack) {
  if (tensor.shape.size() != 3 || tensor.shape[0] != 2 || linear.shape.size() != 2) {
    return wrong(tensor, "shape", "[2, H, I] or [2, I, H] beside a linear [I, H]",
                 shape_text(tensor) + " beside " + shape_text(linear));
  }
  if (linear.shape[0] == linear.shape[1]) {
    return wrong(tensor, "shape", "I and H that differ, to tell [2, H, I] from [2, I, H]", shape_text(tensor));
  }
  const bool inputs_first = tensor.shape[1] == linear.shape[1] && tensor.shape[2] == linear.shape[0];
  const bool outputs_first = tensor.shape[1] == linear.shape[0] && tensor.shape[2] == linear.shape[1];
  if (!inputs_first && !outputs_first) {
    return wrong(tensor, "shape", "the two sizes of its linear, " + shape_text(linear), shape_text(tensor));
  }
  return slice(tensor, stack == Stack::kUp ? 1 : 0, inputs_first);
}

float element(const std::byte* data, Dtype dtype) {
  uint16_t half = 0;
  float value = 0;
  if (dtype == Dtype::kF32) {
    std::memcpy(&value, data, sizeof value);
    return value;
  }
  std::memcpy(&half, data, sizeof half);
  return dtype == Dtype::kBF16 ? numerics::bf16_to_float(half) : numerics::fp16_to_float(half);
}

}  // namespace

void Matrix::read(int64_t first, int64_t count, float* out) const {
  const auto size = static_cast<int64_t>(checkpoint::dtype_bits(dtype) / 8);
  for (int64_t r = first; r < first + count; ++r) {
    const float row = row_factors.empty() ? 1.0f : row_factors[static_cast<size_t>(r)];
    for (int64_t c = 0; c < columns; ++c) {
      const float value = element(data + (r * row_stride + c * column_stride) * size, dtype);
      *out++ = column_factors.empty() ? value * row : value * row * column_factors[static_cast<size_t>(c)];
    }
  }
}

Result<Matrix> open_matrix(checkpoint::Checkpoint* from, const MatrixName& name) {
  const auto named = [&](Result<Matrix> matrix) {
    if (matrix.ok()) matrix->name = name.name;
    return matrix;
  };
  if (name.stack != Stack::kNone) {
    auto tensor = from->find(name.name);
    if (!tensor.ok()) return tensor.status();
    if (Status s = check_float(*tensor); !s.ok()) return s;
    if (name.stack == Stack::kDown && tensor->shape.size() == 2) return named(slice(*tensor, 0, true));
    if (name.stack == Stack::kDown || tensor->shape.size() != 3) return named(stacked(*tensor, name));
    auto linear = from->find(name.linear);
    return linear.ok() ? named(gating(*tensor, *linear, name.stack)) : Result<Matrix>(linear.status());
  }
  if (auto packed = from->find(name.name + ".weight_packed"); packed.ok()) {
    return named(quantized(from, name.name, *packed, true));
  }
  auto tensor = from->find(name.name + ".weight");
  if (!tensor.ok()) return tensor.status();
  return named(tensor->dtype == Dtype::kU8 ? quantized(from, name.name, *tensor, false) : plain(*tensor));
}

Result<int64_t> stack_size(checkpoint::Checkpoint* from, const MatrixName& name) {
  auto tensor = from->find(name.name);
  if (!tensor.ok()) return tensor.status();
  if (tensor->shape.size() == 3) return int64_t{0};
  if (tensor->shape.empty()) return wrong(*tensor, "shape", "a stack of layers", "a scalar");
  return static_cast<int64_t>(tensor->shape[0]);
}

}  // namespace isobit::cli
