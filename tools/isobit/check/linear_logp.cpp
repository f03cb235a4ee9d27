#include <stdexcept>

#include "check/check.h"

namespace isobit::cli {

void check_linear_logp(const CheckOptions&, CheckReport&) {
  throw std::runtime_error("linear_logp: this build has no check of it");
}

}  // namespace isobit::cli
