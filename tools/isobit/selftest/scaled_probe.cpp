#include "selftest/scaled_probe.h"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>

#include "check/nvfp4_case.h"
#include "numerics/bits.h"
#include "selftest/hex.h"
#include "selftest/mma_rule.h"

namespace isobit::cli {
namespace {

using numerics::MmaTerm;

constexpr const char* kKernel = "sm100";
constexpr int64_t kRows = 32, kColumns = 32, kStep = 64;
constexpr uint64_t kProbeSeed = 20261130;

MmaTerm e2m1_term(uint8_t code) { return numerics::mma_term((code & 8) != 0, code >> 1 & 3, code & 1u, 1, 1); }
MmaTerm e4m3_term(uint8_t byte) { return numerics::mma_term(byte >> 7 != 0, byte >> 3 & 15, byte & 7u, 3, 7); }

MmaTerm product(const MmaTerm& x, const MmaTerm& y) {
  return {x.significand * y.significand, x.exponent + y.exponent, x.fraction_bits + y.fraction_bits};
}

uint8_t code_of(const Nvfp4Host& m, int64_t row, int64_t k) {
  return static_cast<uint8_t>(m.codes[static_cast<size_t>((row * m.k + k) / 2)] >> (k % 2 * 4) & 15);
}
uint8_t scale_of(const Nvfp4Host& m, int64_t row, int64_t k) {
  return m.scales[static_cast<size_t>((row * m.k + k) / 16)];
}

// Element by element, times both scales.
std::vector<MmaTerm> terms_of(const Nvfp4Case& c, int64_t row, int64_t column) {
  std::vector<MmaTerm> terms;
  for (int64_t k = 0; k < kStep; ++k) {
    const MmaTerm elements = product(e2m1_term(code_of(c.x(), row, k)), e2m1_term(code_of(c.weight(), column, k)));
    const MmaTerm scales = product(e4m3_term(scale_of(c.x(), row, k)), e4m3_term(scale_of(c.weight(), column, k)));
    terms.push_back(product(elements, scales));
  }
  return terms;
}

// The same summed exactly over each block of 16, which has one pair of scales.
std::vector<MmaTerm> block_terms_of(const Nvfp4Case& c, int64_t row, int64_t column) {
  std::vector<MmaTerm> terms;
  for (int64_t block = 0; block < kStep; block += 16) {
    int64_t quarters = 0;  // products of elements are multiples of 1/4
    for (int64_t k = block; k < block + 16; ++k) {
      const MmaTerm p = product(e2m1_term(code_of(c.x(), row, k)), e2m1_term(code_of(c.weight(), column, k)));
      quarters += p.significand * (int64_t{1} << p.exponent);
    }
    const MmaTerm scales =
        product(e4m3_term(scale_of(c.x(), row, block)), e4m3_term(scale_of(c.weight(), column, block)));
    terms.push_back(product({quarters, 0, 2}, scales));
  }
  return terms;
}

std::vector<uint32_t> outputs_of(const Nvfp4Case& c) {
  const std::vector<std::string> rows = c.run({.rows = kRows, .threads = 1});
  if (rows.empty()) throw std::runtime_error(isobit_last_error());
  std::vector<uint32_t> words;
  for (const std::string& row : rows) {
    words.resize(words.size() + row.size() / 4);
    std::memcpy(&words[words.size() - row.size() / 4], row.data(), row.size());
  }
  return words;
}

nlohmann::ordered_json fits_json(const Nvfp4Case& c, const std::vector<uint32_t>& outputs, bool blocks) {
  std::vector<RuleSample> samples;
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    const int64_t row = i / kColumns, column = i % kColumns;
    // The global scale of the call, 2^-8, undone: no output is near the ends of the range.
    const float sum = numerics::bits_float(outputs[static_cast<size_t>(i)]) * 0x1p8f;
    samples.push_back(
        {blocks ? block_terms_of(c, row, column) : terms_of(c, row, column), 0.0f, numerics::float_bits(sum)});
  }
  constexpr int kElementGroups[] = {16, 32, 64};
  constexpr int kBlockGroups[] = {1, 2, 4};
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const RuleFit& fit : fit_rules(samples, blocks ? std::span(kBlockGroups) : std::span(kElementGroups), 36, 3)) {
    list.push_back({{"terms", blocks ? "exact sums of blocks of 16" : "products"},
                    {"rule", fit.rule.text()},
                    {"differing", fit.differing}});
  }
  return list;
}

nlohmann::ordered_json matrix_json(const Nvfp4Host& m) {
  return {{"codes", hex_of<uint8_t>(m.codes)}, {"scales", hex_of<uint8_t>(m.scales)}};
}

nlohmann::ordered_json run(Place place, const Kernel& kernel) {
  nlohmann::ordered_json out = {{"state", "ran"}, {"rows", kRows}, {"columns", kColumns}, {"global_scale", 0x1p-8}};
  out["cases"] = nlohmann::ordered_json::array();
  for (const int64_t k : {kStep, 2 * kStep}) {
    const Nvfp4Case c(kernel, {kRows, kColumns, k}, ISOBIT_FP32, kProbeSeed, Nvfp4Values::kWide, place.id);
    const std::vector<uint32_t> outputs = outputs_of(c);
    nlohmann::ordered_json one = {{"k", k}, {"x", matrix_json(c.x())}, {"weight", matrix_json(c.weight())}};
    one["d"] = hex_of<uint32_t>(outputs);
    if (k == kStep) {  // one instruction
      one["best_rules"] = fits_json(c, outputs, false);
      for (const auto& fit : fits_json(c, outputs, true)) one["best_rules"].push_back(fit);
    }
    out["cases"].push_back(std::move(one));
  }
  return out;
}

}  // namespace

nlohmann::ordered_json probe_block_scaled(Place place) {
  std::string reason = "no row of nvfp4_linear for it";
  for (const Kernel& kernel : select_kernels("nvfp4_linear", kKernel)) {
    reason = kernel.reason;
    if (!kernel.usable || place.type == ISOBIT_CPU) continue;
    try {
      return run(place, kernel);
    } catch (const std::runtime_error& error) {
      reason = error.what();
    }
  }
  return {{"state", "unsupported"}, {"reason", reason}};
}

}  // namespace isobit::cli
