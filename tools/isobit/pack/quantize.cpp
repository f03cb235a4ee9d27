#include "pack/quantize.h"

#include <isobit/nvfp4_quantize.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/scale_layout.h"

namespace isobit::cli {
namespace {

using checkpoint::refuse;
using checkpoint::Result;
using checkpoint::Status;

constexpr int64_t kChunkElements = int64_t{1} << 22;

isobit_tensor view(void* data, isobit_dtype dtype, int64_t rows, int64_t columns) {
  return {data, dtype, ISOBIT_CPU, 0, 2, {rows, columns}, {columns, 1}};
}

// Sums over the elements and blocks of a matrix.
struct Sums {
  double error = 0, norm = 0, got = 0, dot = 0;
  int64_t blocks = 0, saturated = 0, flushed = 0;

  void add(const float* x, const uint8_t* codes, uint8_t scale, float encode) {
    float amax = 0;
    const double factor = static_cast<double>(numerics::e4m3_to_float(scale)) / static_cast<double>(encode);
    for (int i = 0; i < 16; ++i) {
      const auto code = static_cast<uint8_t>(codes[i / 2] >> (i % 2 * 4) & 15);
      const double value = static_cast<double>(numerics::e2m1_to_float(code)) * factor;
      const auto wanted = static_cast<double>(x[i]);
      error += (value - wanted) * (value - wanted);
      norm += wanted * wanted;
      got += value * value;
      dot += value * wanted;
      amax = std::max(amax, std::fabs(x[i]));
    }
    ++blocks;
    // Half a step above 448 still rounds to it.
    saturated += amax * encode > 6.0f * 464 ? 1 : 0;
    flushed += scale == 0 && amax > 0 ? 1 : 0;
  }
  PackReport report() const {
    const auto share = [&](int64_t count) {
      return static_cast<double>(count) / static_cast<double>(std::max<int64_t>(blocks, 1));
    };
    PackReport r = {0, 1, share(saturated), share(flushed)};
    if (norm > 0) r.relative_l2 = std::sqrt(error / norm);
    if (norm > 0 && got > 0) r.cosine = dot / std::sqrt(norm * got);
    return r;
  }
};

// Rows [first, first + count) of the matrix in a buffer of `columns` a row, zeros behind them.
void read_padded(const Matrix& m, int64_t first, int64_t count, int64_t columns, std::vector<float>* out) {
  out->assign(static_cast<size_t>(count * columns), 0.0f);
  if (m.columns == columns) return m.read(first, count, out->data());
  for (int64_t r = 0; r < count; ++r) m.read(first + r, 1, out->data() + r * columns);
}

Result<float> largest(const Matrix& m, int64_t chunk) {
  std::vector<float> values;
  float amax = 0;
  for (int64_t row = 0; row < m.rows; row += chunk) {
    read_padded(m, row, std::min(chunk, m.rows - row), m.columns, &values);
    for (const float value : values) {
      if (!std::isfinite(value)) return refuse(m.name, "", "weights", "finite values", std::to_string(value));
      amax = std::max(amax, std::fabs(value));
    }
  }
  return amax;
}

PackedMatrix take_over(const Matrix& m, PackedMatrix out) {
  for (int64_t row = 0; row < m.rows; ++row) {
    std::memcpy(out.codes.data() + row * out.columns / 2, m.codes + row * m.columns / 2,
                static_cast<size_t>(m.columns / 2));
    std::memcpy(out.scales.data() + row * out.columns / 16, m.scales + row * m.columns / 16,
                static_cast<size_t>(m.columns / 16));
  }
  out.decode_scale = m.decode_scale;
  out.taken_over = true;
  return out;
}

Status quantize_rows(std::vector<float>* values, int64_t row, int64_t count, float encode, PackedMatrix* out) {
  isobit_nvfp4_quantize_args args = ISOBIT_NVFP4_QUANTIZE_ARGS_INIT;
  args.x = view(values->data(), ISOBIT_FP32, count, out->columns);
  args.global_scale.value = encode;
  args.out.codes = view(out->codes.data() + row * out->columns / 2, ISOBIT_UINT8, count, out->columns / 2);
  args.out.scales = view(out->scales.data() + row * out->columns / 16, ISOBIT_UINT8, count, out->columns / 16);
  return isobit_nvfp4_quantize(&args, nullptr) == ISOBIT_OK ? Status{} : Status{isobit_last_error()};
}

void place_scales(const PackedMatrix& m, isobit_nvfp4_layout layout, int64_t step, int64_t first, Arranged* out) {
  const int64_t blocks = m.columns / 16;
  for (int64_t row = 0; row < m.rows; ++row) {
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t at =
          numerics::scale_offset(static_cast<numerics::ScaleLayout>(layout), step * row + first, block, blocks);
      out->scales[static_cast<size_t>(at)] = m.scales[static_cast<size_t>(row * blocks + block)];
    }
  }
}

Arranged empty(int64_t rows, int64_t columns, isobit_nvfp4_layout layout) {
  Arranged out;
  int64_t padded_rows = 0, padded_blocks = 0;
  isobit_nvfp4_scales_shape(layout, rows, columns, &padded_rows, &padded_blocks);
  out.rows = rows;
  out.codes.resize(static_cast<size_t>(rows * columns / 2));
  out.scales.resize(static_cast<size_t>(padded_rows * padded_blocks));
  return out;
}

}  // namespace

Result<PackedMatrix> quantize(const Matrix& m, int64_t rows, int64_t columns, const RowProgress& progress) {
  PackedMatrix out;
  out.rows = rows;
  out.columns = columns;
  out.codes.resize(static_cast<size_t>(rows * columns / 2));
  out.scales.resize(static_cast<size_t>(rows * columns / 16));
  if (m.packed) return take_over(m, std::move(out));
  const int64_t chunk = std::max<int64_t>(1, kChunkElements / columns);
  const auto amax = largest(m, chunk);
  if (!amax.ok()) return amax.status();
  const float wanted = 2688.0f / *amax;
  const float encode = *amax > 0 && std::isfinite(wanted) ? wanted : 1.0f;
  out.decode_scale = 1.0f / encode;
  Sums sums;
  std::vector<float> values;
  for (int64_t row = 0; row < m.rows; row += chunk) {
    const int64_t count = std::min(chunk, m.rows - row);
    read_padded(m, row, count, columns, &values);
    if (Status s = quantize_rows(&values, row, count, encode, &out); !s.ok()) return s;
    for (int64_t block = row * columns / 16; block < (row + count) * columns / 16; ++block) {
      sums.add(values.data() + (block * 16 - row * columns), out.codes.data() + block * 8,
               out.scales[static_cast<size_t>(block)], encode);
    }
    progress(row + count, m.rows);
  }
  out.report = sums.report();
  return out;
}

Arranged interleave(const PackedMatrix& a, const PackedMatrix& b, isobit_nvfp4_layout layout) {
  Arranged out = empty(2 * a.rows, a.columns, layout);
  const auto bytes = static_cast<size_t>(a.columns / 2);
  for (int64_t row = 0; row < a.rows; ++row) {
    std::memcpy(out.codes.data() + 2 * row * a.columns / 2, a.codes.data() + row * a.columns / 2, bytes);
    std::memcpy(out.codes.data() + (2 * row + 1) * a.columns / 2, b.codes.data() + row * a.columns / 2, bytes);
  }
  place_scales(a, layout, 2, 0, &out);
  place_scales(b, layout, 2, 1, &out);
  return out;
}

Arranged arrange(const PackedMatrix& a, isobit_nvfp4_layout layout) {
  Arranged out = empty(a.rows, a.columns, layout);
  out.codes = a.codes;
  place_scales(a, layout, 1, 0, &out);
  return out;
}

}  // namespace isobit::cli
