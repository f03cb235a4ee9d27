// The table of what `isobit bench` times.
#include <stdexcept>

#include "bench/bench.h"

namespace isobit::cli {

void require_ok(isobit_status status) {
  if (status != ISOBIT_OK) throw std::runtime_error(isobit_last_error());
}

const std::vector<BenchOperator>& bench_operators() {
  static const std::vector<BenchOperator> rows = {
      {"linear_logp_forward",
       "linear_logp",
       {"N", "H", "V"},
       {{"N", 64}, {"H", 1024}, {"V", 8192}},
       make_linear_logp_forward,
       linear_logp_forward_figures},
      {"linear_logp_forward_backward",
       "linear_logp_backward",
       {"N", "H", "V"},
       {{"N", 64}, {"H", 512}, {"V", 4096}},
       make_linear_logp_forward_backward,
       linear_logp_backward_figures},
      {"geglu_forward", "geglu", {"rows", "cols"}, {{"rows", 256}, {"cols", 11008}}, make_geglu_forward},
      {"geglu_backward", "geglu", {"rows", "cols"}, {{"rows", 256}, {"cols", 11008}}, make_geglu_backward},
      {"nvfp4_quantize",
       "nvfp4_quantize",
       {"M", "K"},
       {{"M", 784}, {"K", 2048}},
       make_nvfp4_quantize,
       nvfp4_quantize_figures},
      {"nvfp4_geglu",
       "nvfp4_geglu",
       {"M", "K", "I"},
       {{"M", 64}, {"K", 1024}, {"I", 1024}},
       make_nvfp4_geglu,
       nvfp4_geglu_figures},
      {"nvfp4_linear",
       "nvfp4_linear",
       {"M", "N", "K"},
       {{"M", 64}, {"N", 1024}, {"K", 1024}},
       make_nvfp4_linear,
       nvfp4_linear_figures},
  };
  return rows;
}

}  // namespace isobit::cli
