// How an operator is timed. A new operator is one function that makes a Workload and one line in operators.cpp's table.
#pragma once

#include <isobit/isobit.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device.h"
#include "kernels.h"
#include "shape.h"

namespace isobit::cli {

// One call, ready to be repeated. `run` throws std::runtime_error with the library's message if the call is refused.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual void run(void* stream) = 0;
  virtual double bytes() const = 0;       // read and written at least once: operands and outputs
  virtual double flops() const = 0;       // multiply and add counted as two
  virtual double peak_bytes() const = 0;  // workspace and outputs
};

struct BenchCase {
  Kernel kernel;
  Place place;
  Shape shape;
  isobit_dtype dtype = ISOBIT_BF16;
  int threads = 0;  // CPU kernels: 0 for the default
  uint64_t seed = 1;
};

struct BenchOperator {
  const char* name;                  // as in result lines, for example "linear_logp_forward"
  const char* op;                    // as in the table of kernels
  std::vector<std::string> letters;  // of the shape, in the order they are printed
  Shape defaults;
  std::unique_ptr<Workload> (*make)(const BenchCase& bench_case);
  std::vector<Shape> (*figures)(isobit_device_type device) = nullptr;  // what --figures runs; null: the defaults
};

const std::vector<BenchOperator>& bench_operators();

// Throws std::runtime_error with the library's message unless the status is ISOBIT_OK.
void require_ok(isobit_status status);

std::unique_ptr<Workload> make_linear_logp_forward(const BenchCase& bench_case);
std::vector<Shape> linear_logp_forward_figures(isobit_device_type device);
std::unique_ptr<Workload> make_linear_logp_forward_backward(const BenchCase& bench_case);
std::vector<Shape> linear_logp_backward_figures(isobit_device_type device);
std::unique_ptr<Workload> make_geglu_forward(const BenchCase& bench_case);
std::unique_ptr<Workload> make_geglu_backward(const BenchCase& bench_case);
std::unique_ptr<Workload> make_nvfp4_quantize(const BenchCase& bench_case);
std::unique_ptr<Workload> make_nvfp4_geglu(const BenchCase& bench_case);
std::unique_ptr<Workload> make_nvfp4_linear(const BenchCase& bench_case);
std::vector<Shape> nvfp4_quantize_figures(isobit_device_type device);
std::vector<Shape> nvfp4_geglu_figures(isobit_device_type device);
std::vector<Shape> nvfp4_linear_figures(isobit_device_type device);

}  // namespace isobit::cli
