// Shapes that linear_logp's figures are quoted at, and what a forward call moves and computes.
#pragma once

#include <cstdint>
#include <span>

namespace isobit::linear_logp {

struct ForwardShape {
  int64_t n, h, v;
};

// One model's head or serving load each; those of the GPU take minutes on a CPU.
std::span<const ForwardShape> gpu_forward_shapes();
std::span<const ForwardShape> cpu_forward_shapes();

// The same for forward and backward in one call.
std::span<const ForwardShape> gpu_backward_shapes();
std::span<const ForwardShape> cpu_backward_shapes();

// Bytes read and written at least once: 16-bit operands, int64 targets, logp and lse.
double forward_bytes(const ForwardShape& shape);

// Multiply and add counted as two.
double forward_flops(const ForwardShape& shape);

}  // namespace isobit::linear_logp
