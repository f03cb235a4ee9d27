#include "ops/linear_logp/test/backward_shards.h"

#include <gtest/gtest.h>

namespace isobit::linear_logp::test {
namespace {

using Args = isobit_linear_logp_backward_args;

void expect_ok(isobit_status status) { EXPECT_EQ(status, ISOBIT_OK) << isobit_last_error(); }

// The rows of a tensor from `first` on.
isobit_tensor rows_from(isobit_tensor tensor, int64_t first, int64_t count) {
  if (tensor.dtype == ISOBIT_NONE) return tensor;
  const int64_t size = tensor.dtype == ISOBIT_FP32 ? 4 : 2;
  tensor.data = static_cast<unsigned char*>(tensor.data) + first * tensor.stride[0] * size;
  tensor.shape[0] = count;
  return tensor;
}

class ShardedCall {
 public:
  ShardedCall(const BackwardCase& c, const std::vector<int64_t>& cuts, Place* place, const char* kernel)
      : cuts_(cuts), place_(place), call_(c, place, {.kernel = kernel, .saves = true, .subtract_p = 1}) {}

  ShardedBytes run() {
    save();
    ShardedBytes bytes;
    size_t saved = 0;
    expect_ok(isobit_linear_logp_saved_bytes(&call_.args, &saved));
    bytes.saved = contents(call_.saved(), saved);
    std::vector<isobit_linear_logp_state> parts;
    for (size_t i = 0; i + 1 < cuts_.size(); ++i) parts.insert(parts.begin(), part(i, &bytes));
    expect_ok(
        isobit_linear_logp_backward_merge(&call_.args, parts.data(), static_cast<int32_t>(parts.size()), nullptr));
    bytes.merged = call_.fetch();
    return bytes;
  }

 private:
  Args shard(size_t i) const {
    Args args = call_.args;
    const int64_t first = cuts_[i];
    const int64_t count = cuts_[i + 1] - first;
    args.forward.first_id = first;
    args.forward.weight = rows_from(args.forward.weight, first, count);
    args.forward.bias = rows_from(args.forward.bias, first, count);
    args.d_weight = rows_from(args.d_weight, first, count);
    args.d_bias = rows_from(args.d_bias, first, count);
    args.d_hidden = {};
    return args;
  }

  std::string contents(const void* data, size_t bytes) const {
    std::string out(bytes, '\0');
    place_->fetch(out.data(), data, bytes);
    return out;
  }

  void with_workspace(isobit_linear_logp_args* args, size_t bytes) const {
    args->workspace = place_->room(bytes);
    args->workspace_bytes = bytes;
  }

  // Row records from the states of all shards.
  void save() {
    std::vector<isobit_linear_logp_state> states;
    for (size_t i = 0; i + 1 < cuts_.size(); ++i) {
      isobit_linear_logp_args f = shard(i).forward;
      size_t bytes = 0;
      size_t workspace = 0;
      expect_ok(isobit_linear_logp_state_bytes(&f, &bytes));
      expect_ok(isobit_linear_logp_workspace(&f, nullptr, &workspace));
      with_workspace(&f, workspace);
      void* const state = place_->room(bytes);
      expect_ok(isobit_linear_logp_shard(&f, state, nullptr));
      states.push_back({f.first_id, cuts_[i + 1] - cuts_[i], state});
    }
    Args args = call_.args;
    args.saved = call_.saved();
    args.forward.hidden = args.forward.weight = args.forward.bias = {};
    args.d_logp = args.d_lse = args.d_entropy = args.d_hidden = args.d_weight = args.d_bias = {};
    expect_ok(isobit_linear_logp_save_merge(&args, states.data(), static_cast<int32_t>(states.size()), nullptr));
  }

  isobit_linear_logp_state part(size_t i, ShardedBytes* out) const {
    Args args = shard(i);
    args.forward.logp = args.forward.lse = args.forward.entropy = {};
    size_t bytes = 0;
    size_t workspace = 0;
    expect_ok(isobit_linear_logp_part_bytes(&args, &bytes));
    expect_ok(isobit_linear_logp_backward_workspace(&args, &workspace, nullptr));
    with_workspace(&args.forward, workspace);
    args.saved = call_.saved();
    void* const data = place_->room(bytes);
    expect_ok(isobit_linear_logp_backward_shard(&args, data, nullptr));
    out->parts.push_back(contents(data, bytes));
    return {cuts_[i], cuts_[i + 1] - cuts_[i], data};
  }

  const std::vector<int64_t>& cuts_;
  Place* place_;
  BackwardCall call_;
};

}  // namespace

ShardedBytes run_backward_shards(const BackwardCase& c, const std::vector<int64_t>& cuts, Place* place,
                                 const char* kernel) {
  return ShardedCall(c, cuts, place, kernel).run();
}

ShardedBytes run_backward_shards_on_cpu(const BackwardCase& c, const std::vector<int64_t>& cuts) {
  const std::unique_ptr<Place> host = host_place();
  return run_backward_shards(c, cuts, host.get());
}

}  // namespace isobit::linear_logp::test
