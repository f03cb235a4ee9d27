// The calls of linear_logp behind `isobit score`.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <vector>

#include "score/inputs.h"
#include "score/options.h"

namespace isobit::cli::score {

// Outputs of N rows, K targets a row and T ids of the top list; empty where not asked for.
struct Scores {
  std::vector<float> logp;      // [N, K]
  std::vector<float> lse;       // [N]
  std::vector<float> entropy;   // [N]
  std::vector<int32_t> rank;    // [N, K]
  std::vector<int32_t> top_id;  // [N, T]
  std::vector<float> top_logp;  // [N, T]
};

// Thrown when no kernel of this build or no device of this machine can do it (exit code 77).
struct Unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Rows go in chunks, which changes no bit; `progress` gets the rows done so far before each chunk.
Scores run(const Inputs& inputs, const Options& options, const std::function<void(int64_t)>& progress);

}  // namespace isobit::cli::score
