// Scores as safetensors, CSV or JSON lines.
#pragma once

#include <string>

#include "score/inputs.h"
#include "score/options.h"
#include "score/run.h"

namespace isobit::cli::score {

// options.format, else what the name of the output says, else CSV. Throws std::invalid_argument for safetensors without
// a file. Asked before any work is done.
std::string choose_format(const Options& options);

// To options.output, or stdout. Throws std::runtime_error if it cannot be written whole.
//  - safetensors: logp and rank in the shape of the targets, lse and entropy in that of the rows, top_id and top_logp
//    [..., T]; the contract id in __metadata__.
//  - CSV: one line a row after a header line; with K > 1 targets the columns of target k end in _k.
//  - JSON lines: one object a row; numbers, or lists where K > 1 and for the top list.
// Floats are the shortest decimal that reads back to the same bits; CSV has nan, inf, -inf, JSON the same as strings.
void write(const Scores& scores, const Inputs& inputs, const Options& options, const std::string& format);

}  // namespace isobit::cli::score
