#include "ops/linear_logp/bench/cases.h"

namespace isobit::linear_logp {
namespace {

constexpr ForwardShape kGpuShapes[] = {
    {1, 4096, 151936},    {64, 4096, 151936},   {512, 4096, 151936},  {4096, 2048, 32768},  {4096, 2048, 50257},
    {4096, 2048, 131072}, {4096, 4096, 151936}, {8192, 4096, 128256}, {8192, 2304, 256000}, {16384, 5120, 151936},
};

// The heads of small models, at sizes that two cores compute in seconds.
constexpr ForwardShape kCpuShapes[] = {
    {1, 640, 262144}, {8, 640, 262144}, {64, 640, 262144}, {64, 896, 151936}, {64, 4096, 32768}, {256, 768, 50257},
};

constexpr ForwardShape kGpuBackwardShapes[] = {
    {4096, 2048, 131072},
    {4096, 4096, 151936},
    {8192, 4096, 151936},
};
constexpr ForwardShape kCpuBackwardShapes[] = {
    {64, 640, 32768},
    {256, 640, 8192},
};

}  // namespace

std::span<const ForwardShape> gpu_backward_shapes() { return kGpuBackwardShapes; }
std::span<const ForwardShape> cpu_backward_shapes() { return kCpuBackwardShapes; }
std::span<const ForwardShape> gpu_forward_shapes() { return kGpuShapes; }
std::span<const ForwardShape> cpu_forward_shapes() { return kCpuShapes; }

double forward_bytes(const ForwardShape& shape) {
  const auto n = static_cast<double>(shape.n);
  const double operands = 2.0 * (n + static_cast<double>(shape.v)) * static_cast<double>(shape.h);
  return operands + n * (8.0 + 4.0 + 4.0);
}

double forward_flops(const ForwardShape& shape) {
  return 2.0 * static_cast<double>(shape.n) * static_cast<double>(shape.h) * static_cast<double>(shape.v);
}

}  // namespace isobit::linear_logp
