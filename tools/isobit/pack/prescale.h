// The pre-scale of activation-aware quantisation: input channels with large activations get larger weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/status.h"

namespace isobit::cli {

// Factors of one layer; both empty without a pre-scale.
//   input   [H]: columns of gate and of up are multiplied by it; x must be divided by it before it is quantised, so the
//           packed file holds the reciprocals
//   hidden  [I]: columns of down are multiplied by it and rows of up divided: gelu(gate) up is linear in up, so nothing
//           is left to do for the caller
struct Prescale {
  std::vector<float> input, hidden;
  bool present() const { return !input.empty(); }
};

// From LAYER.input [H] and LAYER.hidden [I], F32: the mean magnitude of each channel of x and of gelu(gate(x)) up(x)
// over some text. A channel's factor is its mean to the power alpha, all of them scaled so that the largest times the
// smallest is 1; a channel that was always zero counts as the smallest one that was not. Finite and not negative.
checkpoint::Result<Prescale> read_prescale(checkpoint::Checkpoint* statistics, const std::string& layer, int64_t hidden,
                                           int64_t width, float alpha);

}  // namespace isobit::cli
