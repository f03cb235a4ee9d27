// Tensors of the files that a user names, checked and in the form that the library takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "score/options.h"

namespace isobit::cli::score {

// A dense bf16 matrix: inside the mapped file, or converted (or moved from an odd address) into `owned`.
struct Matrix {
  std::string where;  // file and tensor, for messages
  int64_t rows = 0;
  int64_t columns = 0;
  const uint16_t* data = nullptr;
  std::vector<uint16_t> owned;
};

struct Inputs {
  // The matrices point into these.
  checkpoint::Checkpoint hidden_file, head_file;
  Matrix hidden;                    // [N, H]
  Matrix head;                      // [Vw, H]
  std::vector<int64_t> targets;     // [N, K]
  int64_t targets_per_row = 1;      // K
  int64_t vocab_size = 0;           // V
  std::vector<uint64_t> shape;      // of the targets in their file: the shape of what is written per target
  std::vector<uint64_t> row_shape;  // the same without K: the shape of what is written per row
};

// Throws std::invalid_argument with one line that names file, tensor, rule, expected and got.
Inputs load_inputs(const Options& options);

}  // namespace isobit::cli::score
