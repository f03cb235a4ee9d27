// Packs the gated MLPs of a checkpoint for nvfp4_geglu and nvfp4_linear, one layer at a time.
#pragma once

#include <isobit/nvfp4.h>

#include <functional>
#include <string>

#include "checkpoint/status.h"
#include "pack/quantize.h"

namespace isobit::cli {

struct PackOptions {
  std::string input, output;
  isobit_nvfp4_layout layout = ISOBIT_NVFP4_128X4;
  std::string gelu;         // "", "tanh" or "erf"
  std::string activations;  // safetensors of prescale.h, or "": no pre-scale
  float alpha = 0.5f;       // of the pre-scale
};

// What pack() tells on the way: a matrix that is done, and how far the one at hand is.
struct PackListener {
  std::function<void(const std::string& layer, const char* matrix, const PackedMatrix&)> done;
  std::function<void(const std::string& layer, int64_t row, int64_t rows)> progress;
};

// Per layer NAME of the checkpoint the output holds
//   NAME.gate_up.codes U8 [2I, H/2] and .scales U8 [padded rows, padded blocks], rows gate 0, up 0, gate 1, up 1, ...
//   NAME.gate_up.gate_scale and .up_scale F32 [1]: decode scales
//   NAME.down.codes U8 [H, I/2], .scales and .scale likewise
//   with a pre-scale NAME.gate_up.input_scale F32 [H], by which x must be multiplied before it is quantised
// I is padded to a multiple of 16 with zero rows of gate and of up, each, and zero columns of down.
checkpoint::Status pack(const PackOptions& options, const PackListener& listener);

}  // namespace isobit::cli
