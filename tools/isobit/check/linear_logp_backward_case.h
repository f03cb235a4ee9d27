// Operands and upstream gradients of the backward pass on a device, and calls over parts of them.
#pragma once

#include "check/linear_logp_case.h"
#include "ops/linear_logp/backward_reference.h"

namespace isobit::cli {

// What a call may do differently without a change of bits.
struct BackwardCall {
  int64_t first_row = 0;
  int64_t rows = 1;
  double workspace_share = 1.0;  // 0: the minimum, 1: what is recommended
  int32_t threads = 1;
  bool saves = false;  // the forward pass of training first
};

// fp32, contiguous.
struct GradientBytes {
  std::string hidden;  // [rows, H]
  std::string weight;  // [V, H]
  std::string bias;    // [V], empty without a bias
};

class BackwardCase {
 public:
  BackwardCase(const Kernel& kernel, Place place, const LogpShape& shape, const LogpOptions& options, uint64_t seed);

  const LogpCase& forward() const { return forward_; }
  // Where the kernel does not take subtract_p = 0, the calls say 1.
  bool subtract_p() const { return subtract_p_; }
  bool takes_shards() const;
  GradientBytes whole(const BackwardCall& call) const;
  // Equal shards of V ids, a multiple of `ranks`; their parts merged.
  GradientBytes sharded(const BackwardCall& call, int64_t ranks) const;
  linear_logp::ReferenceUpstream upstream() const;

 private:
  struct Outputs;
  isobit_linear_logp_backward_args arguments(const BackwardCall& call) const;
  Buffer save(const BackwardCall& call) const;
  void run_shard(const BackwardCall& call, const Outputs& outputs, const Buffer& saved, int64_t first, int64_t count,
                 std::vector<Buffer>* parts) const;

  LogpCase forward_;
  Place place_;
  bool subtract_p_ = false;
  Placed<float> d_logp_;     // [N, K]
  Placed<float> d_lse_;      // [N]
  Placed<float> d_entropy_;  // [N]
};

}  // namespace isobit::cli
