// Operands of linear_logp on a device, and calls over parts of them: any rows, layout, workspace, shards.
#pragma once

#include <isobit/linear_logp.h>

#include <cstdint>
#include <string>
#include <vector>

#include "device.h"
#include "kernels.h"
#include "ops/linear_logp/reference.h"

namespace isobit::cli {

// Numbers of one element type, on the host and on a place.
template <class T>
class Placed {
 public:
  Placed(Place place, std::vector<T> values) : host_(std::move(values)), buffer_(place, host_.size() * sizeof(T)) {
    buffer_.upload(host_.data(), buffer_.bytes());
  }
  const std::vector<T>& host() const { return host_; }
  T* data() const { return static_cast<T*>(buffer_.data()); }
  Place place() const { return buffer_.place(); }

 private:
  std::vector<T> host_;
  Buffer buffer_;
};

struct LogpShape {
  int64_t n, h, v;
  int64_t k = 1;
  int64_t t = 0;  // top list
};

struct LogpOptions {
  isobit_dtype dtype = ISOBIT_BF16;
  bool bias = false;
  bool row_temperature = false;
  float temperature = 1.0f;
  float softcap = 0.0f;
  bool ignored_rows = false;  // every seventh row
  bool exact = false;         // elements that make every logit exact in fp32 in any order of its sum
};

// What a call may do differently without a change of bits.
struct LogpCall {
  int64_t first_row = 0;
  int64_t rows = 1;
  int64_t hidden_gap = 0;  // elements between rows; their contents are NaN
  int64_t weight_gap = 0;
  bool nan_neighbours = false;     // NaN in the hidden states of all rows but the middle one
  bool repeat_middle_row = false;  // that row in every place, by a stride of 0
  double workspace_share = 1.0;    // 0: the minimum, 1: what is recommended
  int32_t threads = 1;
};

// Outputs of a call, row by row: logp, rank, target_logit, lse, entropy, then (whole calls) the top list.
using RowBytes = std::vector<std::string>;

class LogpCase {
 public:
  LogpCase(const Kernel& kernel, Place place, const LogpShape& shape, const LogpOptions& options, uint64_t seed);

  const LogpShape& shape() const { return shape_; }
  const LogpOptions& options() const { return options_; }
  // Inputs of a call over rows [first, first + rows) as they lie on the place; outputs and workspace are the caller's.
  isobit_linear_logp_args inputs(int64_t first, int64_t rows) const;
  RowBytes whole(const LogpCall& call) const;
  // Cuts [0, V) at ascending ids. `swap_states` hands the merge two shards' states the wrong way round.
  RowBytes sharded(const LogpCall& call, const std::vector<int64_t>& cuts, bool swap_states) const;
  // Bytes of a row that whole and sharded calls both have.
  size_t merged_bytes() const { return static_cast<size_t>(3 * shape_.k + 2) * 4; }

  const std::vector<uint16_t>& hidden() const { return hidden_.host(); }
  const std::vector<uint16_t>& weight() const { return weight_.host(); }
  const std::vector<float>& bias() const { return bias_.host(); }
  const std::vector<float>& temperature() const { return temperature_.host(); }
  const std::vector<int64_t>& target() const { return target_.host(); }

 private:
  class Outputs;
  struct Operands;
  isobit_linear_logp_args arguments(const LogpCall& call, const Operands& operands) const;
  Placed<uint16_t> gapped(const std::vector<uint16_t>& rows, int64_t first, int64_t count, int64_t gap) const;

  std::string kernel_;
  Place place_;
  LogpShape shape_;
  LogpOptions options_;
  Placed<uint16_t> hidden_;    // [N, H]
  Placed<uint16_t> weight_;    // [V, H]
  Placed<float> bias_;         // [V]
  Placed<float> temperature_;  // [N]
  Placed<int64_t> target_;     // [N, K]
};

// The same problem for the oracle.
linear_logp::ReferenceProblem reference_of(const LogpCase& c);

}  // namespace isobit::cli
