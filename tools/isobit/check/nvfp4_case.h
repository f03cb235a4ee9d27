// Operands of the NVFP4 operators on a device, and calls over parts of them: any rows, layout, workspace, threads.
#pragma once

#include <isobit/nvfp4_geglu.h>
#include <isobit/nvfp4_linear.h>
#include <isobit/nvfp4_quantize.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device.h"
#include "kernels.h"

namespace isobit::cli {

struct Nvfp4CaseShape {
  int64_t m, n, k;  // n: outputs of nvfp4_linear, I of nvfp4_geglu, not used by nvfp4_quantize
};

// What a call may do differently without a change of bits.
struct Nvfp4Call {
  int64_t first_row = 0;
  int64_t rows = 1;
  isobit_nvfp4_layout layout = ISOBIT_NVFP4_128X4;  // of x and of the output
  int64_t gap = 0;                                  // bytes or elements between rows of x and of the output
  bool minimum_workspace = false;
  int32_t threads = 1;
};

// What the scales are: kExact makes every sum exact in fp32 in any order, kWide takes all of E4M3's positive values.
enum class Nvfp4Values { kNormal, kExact, kWide };

// Codes and scales on the host, the scales row by row.
struct Nvfp4Host {
  Nvfp4Host(int64_t matrix_rows, int64_t matrix_k, uint64_t seed, Nvfp4Values values = Nvfp4Values::kNormal);
  double value(int64_t row, int64_t column) const;
  int64_t rows, k;
  std::vector<uint8_t> codes, scales;
};

// One operator with its operands. Outputs of a call come row by row: codes, then scales; or the elements. None come if
// the kernel does not take the call.
class Nvfp4Case {
 public:
  Nvfp4Case(Kernel kernel, Nvfp4CaseShape shape, isobit_dtype dtype, uint64_t seed,
            Nvfp4Values values = Nvfp4Values::kNormal, int32_t device = 0);
  std::vector<std::string> run(const Nvfp4Call& call) const;
  // Compares one row of an output with the oracle; errors in units of their bounds.
  double worst_error(int64_t row, const std::string& bytes) const;

  const Kernel& kernel() const { return kernel_; }
  const Nvfp4CaseShape& shape() const { return shape_; }
  const Nvfp4Host& x() const { return x_; }
  const Nvfp4Host& weight() const { return weight_; }

 private:
  std::vector<std::string> run_quantize(const Nvfp4Call& call) const;
  std::vector<std::string> run_linear(const Nvfp4Call& call) const;
  std::vector<std::string> run_geglu(const Nvfp4Call& call) const;
  double quantize_error(int64_t row, const std::string& bytes) const;
  double linear_error(int64_t row, const std::string& bytes) const;
  double geglu_error(int64_t row, const std::string& bytes) const;
  // sum x w and sum |x w| of a row and a weight row, times x_scale.
  struct Dot {
    double sum, absolute;
  };
  Dot dot(int64_t row, int64_t weight_row) const;

  Kernel kernel_;
  Place place_;
  Nvfp4CaseShape shape_;
  isobit_dtype dtype_;
  uint64_t seed_;
  Nvfp4Host x_, weight_;
  float x_scale_;  // a power of two unless the values are kNormal
};

}  // namespace isobit::cli
