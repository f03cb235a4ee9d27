// What a user asks of `isobit score`.
#pragma once

#include <cstdint>
#include <string>

namespace isobit::cli::score {

struct Options {
  std::string hidden, hidden_tensor;
  std::string head, head_tensor;
  std::string targets, targets_tensor;
  bool lse = false, entropy = false, rank = false;
  int top_k = 0;  // 0: no top list
  float temperature = 1.0f;
  float softcap = 0.0f;  // 0: none
  int64_t ignore_index = -100;
  int64_t vocab_size = 0;  // 0: every row of the head is an id
  bool convert = false;    // fp16 and fp32 operands are rounded to bf16 instead of refused
  std::string device = "cpu";
  int device_id = 0;
  std::string kernel;
  int threads = 0;
  int64_t chunk_rows = 0;  // 0: chosen by device
  std::string output;      // "" or "-": stdout
  std::string format;      // "": from the output's name
  bool quiet = false;
};

}  // namespace isobit::cli::score
