#include "selftest/mma_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace isobit::cli {
namespace {

using numerics::MmaTerm;

constexpr int kNone = -100000;

int leading_exponent(const MmaTerm& term) {
  return 63 - __builtin_clzll(static_cast<uint64_t>(std::abs(term.significand))) - term.fraction_bits + term.exponent;
}

// The exponent that the alignment sees.
int exponent_of(const MmaRule& rule, const MmaTerm& term) {
  return rule.normalised ? std::max(term.exponent, leading_exponent(term)) : term.exponent;
}

int64_t cut(const MmaRule& rule, const MmaTerm& term, int unit) {
  const int64_t toward_zero = numerics::truncate_term(term, unit);
  if (!rule.floors || term.significand >= 0) return toward_zero;
  const int shift = term.exponent - term.fraction_bits - unit;
  if (shift >= 0) return toward_zero;
  const bool exact = shift > -63 && toward_zero * (int64_t{1} << -shift) == term.significand;
  return exact ? toward_zero : toward_zero - 1;
}

float round_sum(const MmaRule& rule, int64_t sum, int unit) {
  if (!rule.nearest) return numerics::truncate_to_float(sum, unit);
  // |sum| < 2^53, so the product is exact and the conversion rounds once, to nearest even.
  return static_cast<float>(std::ldexp(static_cast<double>(sum), unit));
}

}  // namespace

std::string MmaRule::text() const {
  return fmt::format("groups of {}, {} kept bits, terms cut toward {}, {} products, sums rounded {}", group, kept_bits,
                     floors ? "minus infinity" : "zero", normalised ? "normalised" : "unnormalised",
                     nearest ? "to nearest even" : "toward zero");
}

float apply_rule(const MmaRule& rule, std::span<const MmaTerm> terms, float c) {
  for (size_t first = 0; first < terms.size(); first += static_cast<size_t>(rule.group)) {
    const auto group = terms.subspan(first, std::min(static_cast<size_t>(rule.group), terms.size() - first));
    const MmaTerm addend = numerics::mma_term(c);
    int largest = addend.significand != 0 ? addend.exponent : kNone;
    for (const MmaTerm& term : group) {
      if (term.significand != 0) largest = std::max(largest, exponent_of(rule, term));
    }
    if (largest == kNone) {
      c = 0.0f;
      continue;
    }
    const int unit = largest - rule.kept_bits;
    int64_t sum = addend.significand != 0 ? cut(rule, addend, unit) : 0;
    for (const MmaTerm& term : group) {
      if (term.significand != 0) sum += cut(rule, term, unit);
    }
    c = round_sum(rule, sum, unit);
    if (std::isinf(c)) return c;  // what follows an overflow inside a step is not part of the family
  }
  return c;
}

std::vector<RuleFit> fit_rules(std::span<const RuleSample> samples, std::span<const int> groups, int bits,
                               size_t most) {
  std::vector<RuleFit> fits;
  const auto same = [](float x, uint32_t output) {
    return numerics::float_bits(x) == output || (x == 0.0f && (output & 0x7FFFFFFFu) == 0);
  };
  const auto add = [&](const MmaRule& rule) {
    RuleFit fit{rule, 0};
    for (const RuleSample& sample : samples)
      fit.differing += !same(apply_rule(rule, sample.terms, sample.c), sample.output);
    fits.push_back(fit);
  };
  constexpr std::array kBoth = {false, true};
  for (const int group : groups) {
    for (int kept = 20; kept <= bits; ++kept) {
      for (const bool floors : kBoth) {
        for (const bool normalised : kBoth) {
          for (const bool nearest : kBoth) add({group, kept, floors, normalised, nearest});
        }
      }
    }
  }
  std::stable_sort(fits.begin(), fits.end(),
                   [](const RuleFit& a, const RuleFit& b) { return a.differing < b.differing; });
  const auto end =
      std::find_if(fits.begin(), fits.end(), [&](const RuleFit& f) { return f.differing != fits[0].differing; });
  fits.erase(end, fits.end());
  if (fits.size() > most) fits.resize(most);
  return fits;
}

}  // namespace isobit::cli
