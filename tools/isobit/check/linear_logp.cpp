#include "check/linear_logp.h"

namespace isobit::cli {

void check_linear_logp(const CheckOptions& options, CheckReport& report) {
  for (const Kernel& kernel : options.kernels) {
    if (options.invariance) {
      check_linear_logp_invariance(options, kernel, report);
    } else {
      check_linear_logp_values(options, kernel, report);
    }
  }
}

}  // namespace isobit::cli
