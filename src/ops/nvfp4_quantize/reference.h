// The slow oracle: the rule of docs/bit-contract.md in other arithmetic than the kernels'. Products and quotients are
// formed in fp64 and rounded to fp32 once; the two formats are searched in lists of their values.
#pragma once

#include <cstdint>
#include <vector>

namespace isobit::nvfp4_quantize {

struct ReferenceBlock {
  uint8_t scale;
  uint8_t codes[16];
};

ReferenceBlock reference_block(const float (&x)[16], float global);

// The value that an E2M1 code or an E4M3 byte stands for; NaN for 7F and FF.
double reference_e2m1(uint8_t code);
double reference_e4m3(uint8_t byte);

// Values [rows, k] of a matrix: codes [rows, k/2], scales row-major [rows, k/16], one global decode scale.
std::vector<double> reference_dequantize(const std::vector<uint8_t>& codes, const std::vector<uint8_t>& scales,
                                         int64_t rows, int64_t k, double decode_scale);

}  // namespace isobit::nvfp4_quantize
