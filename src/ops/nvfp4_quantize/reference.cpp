#include "ops/nvfp4_quantize/reference.h"

#include <cmath>
#include <limits>

namespace isobit::nvfp4_quantize {
namespace {

// fp64 holds a product of two fp32 values exactly, and its 53 bits are more than twice 24 plus 2, so a quotient rounded
// to fp64 and then to fp32 is the quotient rounded once (above fp32's subnormals).
float product(float a, float b) { return static_cast<float>(static_cast<double>(a) * static_cast<double>(b)); }
float quotient(float a, float b) { return static_cast<float>(static_cast<double>(a) / static_cast<double>(b)); }

// The code of the list's value nearest to x >= 0; of two equally near ones the even code. The lists ascend with their
// codes, so the last one is where larger values end.
template <int kCount, class ValueOf>
uint8_t nearest(double x, const ValueOf& value_of) {
  for (int code = 0; code + 1 < kCount; ++code) {
    const double middle = (value_of(code) + value_of(code + 1)) / 2;
    if (x < middle || (x == middle && code % 2 == 0)) return static_cast<uint8_t>(code);
  }
  return static_cast<uint8_t>(kCount - 1);
}

}  // namespace

double reference_e2m1(uint8_t code) {
  constexpr double kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return (code & 8) != 0 ? -kValues[code & 7] : kValues[code & 7];
}

double reference_e4m3(uint8_t byte) {
  const int exponent = byte >> 3 & 15;
  const int mantissa = byte & 7;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<double>::quiet_NaN();
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 7 - 3);
  return (byte & 0x80) != 0 ? -magnitude : magnitude;
}

ReferenceBlock reference_block(const float (&x)[16], float global) {
  ReferenceBlock out;
  float amax = 0.0f;
  bool nan = !(global > 0.0f) || std::isinf(global);
  for (const float value : x) {
    nan = nan || std::isnan(value);
    amax = std::fmax(amax, std::fabs(value));
  }
  const float scaled = product(amax, product(global, static_cast<float>(1.0 / 6.0)));
  if (nan || std::isnan(scaled)) {
    out.scale = 0x7F;
    for (uint8_t& code : out.codes) code = 7;
    return out;
  }
  out.scale = nearest<127>(scaled, [](int code) { return reference_e4m3(static_cast<uint8_t>(code)); });
  float multiplier = 0.0f;
  if (out.scale != 0) {
    multiplier =
        std::fmin(quotient(global, static_cast<float>(reference_e4m3(out.scale))), std::numeric_limits<float>::max());
  }
  for (int i = 0; i < 16; ++i) {
    const float y = product(x[i], multiplier);
    const uint8_t code = nearest<8>(std::fabs(y), [](int c) { return reference_e2m1(static_cast<uint8_t>(c)); });
    out.codes[i] = static_cast<uint8_t>(code | (std::signbit(y) ? 8 : 0));
  }
  return out;
}

std::vector<double> reference_dequantize(const std::vector<uint8_t>& codes, const std::vector<uint8_t>& scales,
                                         int64_t rows, int64_t k, double decode_scale) {
  std::vector<double> values(static_cast<size_t>(rows * k));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint8_t pair = codes[i / 2];
    values[i] = reference_e2m1(i % 2 == 0 ? pair & 15 : pair >> 4) * reference_e4m3(scales[i / 16]) * decode_scale;
  }
  return values;
}

}  // namespace isobit::nvfp4_quantize
