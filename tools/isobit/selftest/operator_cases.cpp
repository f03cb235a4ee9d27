#include "selftest/operator_cases.h"

#include <isobit/geglu.h>

#include <stdexcept>

#include "arrays.h"
#include "check/linear_logp_backward_case.h"
#include "check/nvfp4_case.h"

namespace isobit::cli {
namespace {

constexpr uint64_t kSeed = 20261130;

// The whole problem of `rows` rows by run(first, count, last?), and pieces of 1, 2 and the rest but one.
template <class Run>
OutputRows in_pieces(int64_t rows, const Run& run) {
  OutputRows out(static_cast<size_t>(rows));
  int64_t first = 0;
  for (const int64_t count : {int64_t{1}, int64_t{2}, rows - 4}) {
    const OutputRows piece = run(first, count);
    for (int64_t i = 0; i < count; ++i) out[static_cast<size_t>(first + i)] = piece[static_cast<size_t>(i)];
    first += count;
  }
  return out;
}

class LogpCalls final : public OperatorCalls {
 public:
  LogpCalls(const Kernel& kernel, Place place, const LogpShape& shape, const LogpOptions& options)
      : case_(kernel, place, shape, options, kSeed) {}
  OutputRows whole() const override { return case_.whole({.rows = case_.shape().n, .threads = 0}); }
  OutputRows apart() const override {
    return in_pieces(case_.shape().n, [&](int64_t first, int64_t count) {
      return case_.whole({.first_row = first, .rows = count, .hidden_gap = 8, .weight_gap = 16, .workspace_share = 0});
    });
  }

 private:
  LogpCase case_;
};

// Rows of d_hidden; then, as one more row, d_weight and d_bias, which belong to all rows together.
class BackwardCalls final : public OperatorCalls {
 public:
  BackwardCalls(const Kernel& kernel, Place place, const LogpShape& shape, const LogpOptions& options)
      : case_(kernel, place, shape, options, kSeed) {}
  OutputRows whole() const override { return rows_of(case_.whole({.rows = rows(), .threads = 0})); }
  OutputRows apart() const override {
    OutputRows out = in_pieces(rows(), [&](int64_t first, int64_t count) {
      OutputRows piece = rows_of(case_.whole({.first_row = first, .rows = count, .workspace_share = 0}));
      piece.pop_back();
      return piece;
    });
    // The sums over rows once more, with a saved forward pass and the smallest workspace.
    out.push_back(rows_of(case_.whole({.rows = rows(), .workspace_share = 0, .saves = true})).back());
    return out;
  }

 private:
  int64_t rows() const { return case_.forward().shape().n; }
  OutputRows rows_of(const GradientBytes& bytes) const {
    const size_t width = static_cast<size_t>(case_.forward().shape().h) * 4;
    OutputRows out;
    for (size_t at = 0; at < bytes.hidden.size(); at += width) out.push_back(bytes.hidden.substr(at, width));
    out.push_back(bytes.weight + bytes.bias);
    return out;
  }
  BackwardCase case_;
};

class Nvfp4Calls final : public OperatorCalls {
 public:
  Nvfp4Calls(const Kernel& kernel, Place place, isobit_dtype dtype, Nvfp4Values values)
      : case_(kernel, {kRows, 144, 192}, dtype, kSeed, values, place.id) {}
  OutputRows whole() const override { return require({.rows = kRows, .threads = 0}); }
  OutputRows apart() const override {
    return in_pieces(kRows, [&](int64_t first, int64_t count) {
      return require({.first_row = first, .rows = count, .gap = 16, .minimum_workspace = true});
    });
  }

 private:
  static constexpr int64_t kRows = 13;
  OutputRows require(const Nvfp4Call& call) const {
    OutputRows rows = case_.run(call);
    if (rows.empty()) throw std::runtime_error(isobit_last_error());
    return rows;
  }
  Nvfp4Case case_;
};

void require_ok(isobit_status status) {
  if (status != ISOBIT_OK) throw std::runtime_error(isobit_last_error());
}

// out, d_gate and d_up of a row, one after the other.
class GegluCalls final : public OperatorCalls {
 public:
  GegluCalls(const Kernel& kernel, Place place, isobit_dtype dtype, isobit_gelu gelu)
      : kernel_(kernel.name), place_(place), dtype_(dtype), gelu_(gelu) {
    for (uint64_t i = 0; i < 3; ++i) {
      inputs_.emplace_back(place, dtype, std::vector<int64_t>{kRows, kColumns});
      inputs_.back().fill_random(kSeed + i, 3.0f);
    }
  }
  OutputRows whole() const override { return rows(0, kRows, 0); }
  OutputRows apart() const override {
    return in_pieces(kRows, [&](int64_t first, int64_t count) { return rows(first, count, 1); });
  }

 private:
  static constexpr int64_t kRows = 9, kColumns = 1111;

  isobit_tensor part(const Array& array, int64_t first, int64_t count) const {
    isobit_tensor t = array.view();
    t.data = static_cast<char*>(t.data) + first * t.stride[0] * dtype_bytes(dtype_);
    t.shape[0] = count;
    t.shape[1] = kColumns;
    return t;
  }
  // `gap`: elements between rows of the outputs.
  OutputRows rows(int64_t first, int64_t count, int64_t gap) const {
    std::vector<Array> outputs;
    for (int i = 0; i < 3; ++i) {
      outputs.emplace_back(place_, dtype_, std::vector<int64_t>{count, kColumns + gap});
      outputs.back().poison();
    }
    isobit_geglu_forward_args forward = ISOBIT_GEGLU_FORWARD_ARGS_INIT;
    isobit_geglu_backward_args backward = ISOBIT_GEGLU_BACKWARD_ARGS_INIT;
    forward.kernel = backward.kernel = kernel_.c_str();
    forward.gelu = backward.gelu = gelu_;
    forward.gate = backward.gate = part(inputs_[0], first, count);
    forward.up = backward.up = part(inputs_[1], first, count);
    backward.d_out = part(inputs_[2], first, count);
    forward.out = part(outputs[0], 0, count);
    backward.d_gate = part(outputs[1], 0, count);
    backward.d_up = part(outputs[2], 0, count);
    require_ok(isobit_geglu_forward(&forward, nullptr));
    require_ok(isobit_geglu_backward(&backward, nullptr));
    synchronise(place_);
    OutputRows out(static_cast<size_t>(count));
    for (const Array& output : outputs) {
      const std::vector<unsigned char> bytes = output.download();
      const auto width = static_cast<size_t>(kColumns * dtype_bytes(dtype_));
      const auto stride = static_cast<size_t>((kColumns + gap) * dtype_bytes(dtype_));
      for (size_t i = 0; i < out.size(); ++i) {
        out[i].append(reinterpret_cast<const char*>(bytes.data()) + i * stride, width);
      }
    }
    return out;
  }

  std::string kernel_;
  Place place_;
  isobit_dtype dtype_;
  isobit_gelu gelu_;
  std::vector<Array> inputs_;  // gate, up, d_out
};

using Calls = std::unique_ptr<OperatorCalls>;

Calls logp_plain(const Kernel& k, Place p) {
  return std::make_unique<LogpCalls>(k, p, LogpShape{11, 136, 700, 1, 5}, LogpOptions{});
}
Calls logp_exact(const Kernel& k, Place p) {
  return std::make_unique<LogpCalls>(k, p, LogpShape{11, 136, 700, 1, 5}, LogpOptions{.exact = true});
}
Calls logp_options(const Kernel& k, Place p) {
  return std::make_unique<LogpCalls>(
      k, p, LogpShape{21, 72, 450, 3},
      LogpOptions{.dtype = ISOBIT_FP16, .bias = true, .row_temperature = true, .softcap = 20.0f, .ignored_rows = true});
}
Calls logp_levels(const Kernel& k, Place p) {
  return std::make_unique<LogpCalls>(k, p, LogpShape{5, 16, 70001}, LogpOptions{});
}
Calls backward_plain(const Kernel& k, Place p) {
  return std::make_unique<BackwardCalls>(k, p, LogpShape{11, 64, 704}, LogpOptions{});
}
Calls backward_options(const Kernel& k, Place p) {
  return std::make_unique<BackwardCalls>(
      k, p, LogpShape{19, 72, 450, 2},
      LogpOptions{.bias = true, .row_temperature = true, .softcap = 20.0f, .ignored_rows = true});
}
template <isobit_dtype kDtype, isobit_gelu kGelu>
Calls geglu(const Kernel& k, Place p) {
  return std::make_unique<GegluCalls>(k, p, kDtype, kGelu);
}
template <isobit_dtype kDtype, Nvfp4Values kValues>
Calls nvfp4(const Kernel& k, Place p) {
  return std::make_unique<Nvfp4Calls>(k, p, kDtype, kValues);
}

constexpr auto kNormal = Nvfp4Values::kNormal;
constexpr auto kExact = Nvfp4Values::kExact;

constexpr OperatorCase kCases[] = {
    {"linear_logp", "bf16, top list", false, 0x362FDD484FA7DB6D, logp_plain},
    {"linear_logp", "bf16, exact sums", true, 0x9DE0A6F2B36ED167, logp_exact},
    {"linear_logp", "fp16, bias, temperatures, softcap, ignored rows", false, 0xEDFECE69823DB19E, logp_options},
    {"linear_logp", "bf16, six levels of the tree", false, 0xDA2DE87819E809DB, logp_levels, true},
    {"linear_logp_backward", "bf16", false, 0x5F1AB11328D8E3EC, backward_plain},
    {"linear_logp_backward", "bf16, bias, temperatures, softcap, ignored rows", false, 0xD246910D5786B3F9,
     backward_options},
    {"geglu", "bf16 tanh", true, 0x6E4622A1CD8CF56D, geglu<ISOBIT_BF16, ISOBIT_GELU_TANH>},
    {"geglu", "bf16 erf", true, 0x117C1A98C2FDE95C, geglu<ISOBIT_BF16, ISOBIT_GELU_ERF>},
    {"geglu", "fp16 tanh", true, 0x3B8CB4919410D7F6, geglu<ISOBIT_FP16, ISOBIT_GELU_TANH>},
    {"geglu", "fp32 tanh", true, 0xD66275C1FAFCD0FD, geglu<ISOBIT_FP32, ISOBIT_GELU_TANH>},
    {"geglu", "fp32 erf", true, 0xBD6F3BCA6365B8EA, geglu<ISOBIT_FP32, ISOBIT_GELU_ERF>},
    {"nvfp4_quantize", "bf16", true, 0xDE5A99007ADD6DB1, nvfp4<ISOBIT_BF16, kNormal>},
    {"nvfp4_quantize", "fp16", true, 0xCACD392A20C74E24, nvfp4<ISOBIT_FP16, kNormal>},
    {"nvfp4_quantize", "fp32", true, 0xD6A46DE54B9F3D1C, nvfp4<ISOBIT_FP32, kNormal>},
    {"nvfp4_linear", "bf16", false, 0xBB9E7720F32E2B3C, nvfp4<ISOBIT_BF16, kNormal>},
    {"nvfp4_linear", "fp32, exact sums", true, 0x9768F00FC6F4EF5D, nvfp4<ISOBIT_FP32, kExact>},
    {"nvfp4_geglu", "tanh", false, 0x2CDDEE7F11EBAFC5, nvfp4<ISOBIT_BF16, kNormal>},
    {"nvfp4_geglu", "tanh, exact sums", true, 0x0C4AAB9ED6835542, nvfp4<ISOBIT_BF16, kExact>},
};

}  // namespace

std::span<const OperatorCase> operator_cases() { return kCases; }

uint64_t hash_of(const OutputRows& rows) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const std::string& row : rows) {
    for (const char c : row) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  }
  return hash;
}

}  // namespace isobit::cli
