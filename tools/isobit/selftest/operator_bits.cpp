#include "selftest/operator_bits.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace isobit::cli {
namespace {

// One row. Returns what is said of its first byte that differs.
std::string compare_bytes(const std::string& expected, const std::string& got, Difference* out) {
  const size_t common = std::min(expected.size(), got.size());
  const size_t all = std::max(expected.size(), got.size());
  std::string first;
  for (size_t i = 0; i < common; ++i) {
    if (expected[i] == got[i]) continue;
    ++out->differing;
    if (first.empty()) {
      first = fmt::format("byte {}: expected {:02x}, got {:02x}", i, static_cast<unsigned char>(expected[i]),
                          static_cast<unsigned char>(got[i]));
    }
  }
  out->bytes += static_cast<int64_t>(all);
  out->differing += static_cast<int64_t>(all - common);
  if (first.empty() && all > common) first = fmt::format("expected {} bytes, got {}", expected.size(), got.size());
  return first;
}

class Tester {
 public:
  Tester(const OperatorCase& test, const BitsOptions& options)
      : test_(test), options_(options), cpu_(select_kernels(test.op, "cpu")) {}

  BitsResult run(const Kernel& kernel) {
    BitsResult out;
    out.test = &test_;
    out.kernel = kernel;
    if (!kernel.usable) {
      out.reason = kernel.reason;
      return out;
    }
    try {
      compare_all(kernel, &out);
    } catch (const std::runtime_error& error) {
      // Whether a kernel takes the call is asked of the library before anything runs; its words for a refusal begin
      // with the operator, so what else is thrown here is a failure.
      out.reason = error.what();
      out.state = is_refusal(out.reason) ? BitsState::kUnsupported : BitsState::kFailed;
    }
    return out;
  }

 private:
  static bool is_refusal(const std::string& reason) {
    return reason.find("no kernel takes this call") != std::string::npos;
  }

  void compare_all(const Kernel& kernel, BitsResult* out) {
    if (expected_.empty()) expected_ = test_.make(cpu_.at(0), {})->whole();
    const auto calls = test_.make(kernel, {kernel.place(), kernel.place() == ISOBIT_CPU ? 0 : options_.device});
    const OutputRows whole = calls->whole();
    const Difference from_cpu = compare_rows(expected_, whole);
    const Difference apart = compare_rows(whole, calls->apart());
    out->hash = hash_of(whole);
    out->bytes = from_cpu.bytes;
    out->differing = from_cpu.differing;
    out->apart_bytes = apart.bytes;
    out->apart_differing = apart.differing;
    out->first = apart.differing > 0 ? "in pieces: " + apart.first : from_cpu.first;
    const uint64_t golden = options_.plant_fault ? test_.golden ^ 1 : test_.golden;
    const bool promised = test_.exact || kernel.contract == cpu_.at(0).contract;
    const bool equal = out->differing == 0 && out->bytes > 0 && out->hash == golden;
    if (apart.differing > 0 || apart.bytes == 0 || (promised && !equal)) {
      out->state = BitsState::kFailed;
      if (out->first.empty()) out->reason = fmt::format("hash {:016x}, expected {:016x}", out->hash, golden);
    } else {
      out->state = promised ? BitsState::kEqual : BitsState::kNoPromise;
    }
  }

  const OperatorCase& test_;
  const BitsOptions& options_;
  std::vector<Kernel> cpu_;
  OutputRows expected_;
};

}  // namespace

Difference compare_rows(const OutputRows& expected, const OutputRows& got) {
  const size_t common = std::min(expected.size(), got.size());
  Difference out;
  for (size_t row = 0; row < std::max(expected.size(), got.size()); ++row) {
    if (row < common && (expected[row].empty() || got[row].empty())) continue;
    const std::string first = compare_bytes(row < expected.size() ? expected[row] : std::string(),
                                            row < got.size() ? got[row] : std::string(), &out);
    if (out.first.empty() && !first.empty()) out.first = fmt::format("row {}, {}", row, first);
  }
  return out;
}

std::vector<BitsResult> operator_bits(const BitsOptions& options, const std::function<void(const BitsResult&)>& done) {
  std::vector<BitsResult> results;
  for (const OperatorCase& test : operator_cases()) {
    if (test.large && options.quick) continue;
    Tester tester(test, options);
    for (const Kernel& kernel : distinct_kernels(test.op)) {
      results.push_back(tester.run(kernel));
      done(results.back());
    }
  }
  return results;
}

const char* state_text(BitsState state) {
  switch (state) {
    case BitsState::kEqual:
      return "equal";
    case BitsState::kFailed:
      return "FAILED";
    case BitsState::kNoPromise:
      return "no promise";
    default:
      return "unsupported";
  }
}

nlohmann::ordered_json describe_bits(const std::vector<BitsResult>& results) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const BitsResult& r : results) {
    nlohmann::ordered_json one = {{"op", r.test->op},
                                  {"kernel", r.kernel.name},
                                  {"architectures", r.kernel.architectures},
                                  {"contract", r.kernel.contract},
                                  {"case", r.test->name},
                                  {"exact", r.test->exact},
                                  {"state", r.state == BitsState::kFailed ? "failed" : state_text(r.state)}};
    if (!r.reason.empty()) one["reason"] = r.reason;
    if (r.bytes > 0) {
      one["hash"] = fmt::format("{:016x}", r.hash);
      one["golden"] = fmt::format("{:016x}", r.test->golden);
      one["bytes"] = r.bytes;
      one["differing"] = r.differing;
      one["in_pieces_bytes"] = r.apart_bytes;
      one["in_pieces_differing"] = r.apart_differing;
      if (!r.first.empty()) one["first"] = r.first;
    }
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace isobit::cli
