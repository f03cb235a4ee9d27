#include "nvfp4/view.h"

#include <cmath>
#include <cstdio>

namespace isobit {
namespace {

// "out.codes" and the like.
struct Name {
  char text[48];
  Name(const char* matrix, const char* part) { std::snprintf(text, sizeof text, "%s.%s", matrix, part); }
};

bool known(isobit_nvfp4_layout layout) {
  return layout == ISOBIT_NVFP4_LINEAR || layout == ISOBIT_NVFP4_128X4 || layout == ISOBIT_NVFP4_8X4;
}

Status check_codes(const char* name, const isobit_tensor& codes, const isobit_tensor* leading, int64_t rows, int64_t k,
                   Device device, Nvfp4View* out) {
  if (Status s = check_view(name, codes, {ISOBIT_UINT8}, {2, 3, 4}); !s.ok()) return s;
  if (Status s = check_device(name, codes, device); !s.ok()) return s;
  const int last = codes.rank - 1;
  if (leading != nullptr) {
    if (codes.rank != leading->rank) {
      char expected[48];
      std::snprintf(expected, sizeof expected, "rank %d like x", leading->rank);
      return refuse(name, expected, "rank %d", codes.rank);
    }
    for (int i = 0; i < last; ++i) {
      if (Status s = check_extent(name, codes, i, leading->shape[i], "that of x"); !s.ok()) return s;
    }
  }
  if (Status s = check_extent(name, codes, last, k / 2, "K/2"); !s.ok()) return s;
  RowView view;
  if (Status s = collapse_rows(name, codes, &view); !s.ok()) return s;
  if (view.rows != rows) {
    char expected[48];
    std::snprintf(expected, sizeof expected, "%lld rows", static_cast<long long>(rows));
    return refuse(name, expected, "%lld", static_cast<long long>(view.rows));
  }
  out->codes = static_cast<uint8_t*>(codes.data);
  out->row_stride = view.stride;
  return rows == 0 ? Status() : check_unit_stride(name, codes, last);
}

Status check_scales(const char* name, const isobit_nvfp4_matrix& matrix, int64_t rows, int64_t k, Device device,
                    Nvfp4View* out) {
  const isobit_tensor& scales = matrix.scales;
  if (Status s = check_view(name, scales, {ISOBIT_UINT8}, {1, 2}); !s.ok()) return s;
  if (Status s = check_device(name, scales, device); !s.ok()) return s;
  const auto layout = static_cast<numerics::ScaleLayout>(matrix.layout);
  const int64_t padded_rows = numerics::padded_scale_rows(layout, rows);
  const int64_t padded_blocks = numerics::padded_scale_blocks(layout, k / 16);
  if (scales.rank == 1) {
    if (Status s = check_extent(name, scales, 0, padded_rows * padded_blocks, "bytes of the padded scales"); !s.ok()) {
      return s;
    }
  } else {
    if (Status s = check_extent(name, scales, 0, padded_rows, "padded rows"); !s.ok()) return s;
    if (Status s = check_extent(name, scales, 1, padded_blocks, "padded blocks"); !s.ok()) return s;
    if (padded_rows > 1 && scales.stride[0] != padded_blocks) {
      return refuse(name, "dense scales (a row's stride is its padded blocks)", "stride[0] = %lld",
                    static_cast<long long>(scales.stride[0]));
    }
  }
  out->scales = static_cast<uint8_t*>(scales.data);
  out->layout = layout;
  return padded_rows == 0 ? Status() : check_unit_stride(name, scales, scales.rank - 1);
}

}  // namespace

Status collapse_rows(const char* name, const isobit_tensor& tensor, RowView* out) {
  *out = {1, 0};
  for (int i = 0; i + 1 < tensor.rank; ++i) {
    if (tensor.shape[i] == 0) return *out = {}, Status();
  }
  for (int i = 0; i + 1 < tensor.rank; ++i) {
    if (tensor.shape[i] > kNvfp4MaxRows / out->rows) return refuse(name, "fewer than 2^31 rows", "more");
    out->rows *= tensor.shape[i];
  }
  int64_t next_stride = 0;
  int64_t next_extent = 0;
  for (int i = tensor.rank - 2; i >= 0; --i) {
    if (tensor.shape[i] <= 1) continue;
    if (next_extent == 0) {
      out->stride = tensor.stride[i];
    } else if (tensor.stride[i] != next_stride * next_extent) {
      char expected[96];
      std::snprintf(expected, sizeof expected, "leading dimensions at one distance (stride[%d] = %lld)", i,
                    static_cast<long long>(next_stride) * next_extent);
      return refuse(name, expected, "%lld", static_cast<long long>(tensor.stride[i]));
    }
    next_stride = tensor.stride[i];
    next_extent = tensor.shape[i];
  }
  return Status();
}

Status check_k(const char* name, int64_t k) {
  if (k > 0 && k % 16 == 0 && k <= kNvfp4MaxK) return Status();
  return refuse(name, "K a positive multiple of 16, at most 2^24", "%lld", static_cast<long long>(k));
}

Status check_nvfp4(const char* name, const isobit_nvfp4_matrix& matrix, const isobit_tensor* leading, int64_t rows,
                   int64_t k, Device device, Nvfp4View* out) {
  if (!known(matrix.layout)) {
    return refuse(Name(name, "layout").text, "ISOBIT_NVFP4_LINEAR, _128X4 or _8X4", "%d", matrix.layout);
  }
  if (matrix.reserved != 0) return refuse(Name(name, "reserved").text, "0", "%d", matrix.reserved);
  if (Status s = check_codes(Name(name, "codes").text, matrix.codes, leading, rows, k, device, out); !s.ok()) return s;
  return check_scales(Name(name, "scales").text, matrix, rows, k, device, out);
}

Status check_nvfp4_input(const char* name, const isobit_nvfp4_matrix& matrix, Device device, Nvfp4Shape* shape,
                         Nvfp4View* out) {
  const Name codes(name, "codes");
  if (Status s = check_view(codes.text, matrix.codes, {ISOBIT_UINT8}, {2, 3, 4}); !s.ok()) return s;
  const int64_t bytes = matrix.codes.shape[matrix.codes.rank - 1];
  if (bytes > kNvfp4MaxK) return refuse(codes.text, "K of at most 2^24", "more");
  if (Status s = check_k(codes.text, 2 * bytes); !s.ok()) return s;
  RowView rows;
  if (Status s = collapse_rows(codes.text, matrix.codes, &rows); !s.ok()) return s;
  *shape = {rows.rows, 2 * bytes};
  return check_nvfp4(name, matrix, nullptr, rows.rows, shape->k, device, out);
}

Status check_nvfp4_scale(const char* name, const isobit_nvfp4_scale& scale, Device device, Nvfp4ScaleView* out) {
  if (scale.reserved != 0) return refuse(Name(name, "reserved").text, "0", "%d", scale.reserved);
  *out = {nullptr, scale.value};
  if (!present(scale.tensor)) {
    if (scale.value > 0.0f && std::isfinite(scale.value)) return Status();
    return refuse(Name(name, "value").text, "a positive finite number", "%g", static_cast<double>(scale.value));
  }
  const Name tensor(name, "tensor");
  if (Status s = check_view(tensor.text, scale.tensor, {ISOBIT_FP32}, {0, 1}); !s.ok()) return s;
  if (Status s = check_device(tensor.text, scale.tensor, device); !s.ok()) return s;
  if (scale.tensor.rank == 1) {
    if (Status s = check_extent(tensor.text, scale.tensor, 0, 1, "one element"); !s.ok()) return s;
  }
  out->device = static_cast<const float*>(scale.tensor.data);
  return Status();
}

Status check_apart(const char* name, const isobit_tensor& written, const char* other_name, const isobit_tensor& other) {
  if (!byte_range(written).overlaps(byte_range(other))) return Status();
  char expected[96];
  std::snprintf(expected, sizeof expected, "memory that does not overlap %s", other_name);
  return refuse(name, expected, "an overlap");
}

}  // namespace isobit

extern "C" isobit_status isobit_nvfp4_scales_shape(isobit_nvfp4_layout layout, int64_t rows, int64_t k,
                                                   int64_t* padded_rows, int64_t* padded_blocks) {
  using namespace isobit;
  if (!known(layout)) return refuse("layout", "ISOBIT_NVFP4_LINEAR, _128X4 or _8X4", "%d", layout).code();
  if (rows < 0 || rows > kNvfp4MaxRows) {
    return refuse("rows", "0 to 2^31 - 1", "%lld", static_cast<long long>(rows)).code();
  }
  if (const Status s = check_k("k", k); !s.ok()) return s.code();
  const auto scale_layout = static_cast<numerics::ScaleLayout>(layout);
  if (padded_rows != nullptr) *padded_rows = numerics::padded_scale_rows(scale_layout, rows);
  if (padded_blocks != nullptr) *padded_blocks = numerics::padded_scale_blocks(scale_layout, k / 16);
  return ISOBIT_OK;
}
