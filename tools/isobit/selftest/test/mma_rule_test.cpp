// The family of rules: its default member is the measured rule, and the fit finds the rule that made a set of outputs.
#include "selftest/mma_rule.h"

#include <gtest/gtest.h>

#include "numerics/hopper_mma.h"
#include "selftest/chain_inputs.h"

namespace isobit::cli {
namespace {

using numerics::Bf16;
using numerics::Fp16;

template <class Format, class Body>
void for_each_finite(ChainSet set, isobit_dtype dtype, const Body& body) {
  const ChainInputs x = chain_inputs(set, dtype);
  for (int row = 0; row < ChainInputs::kRows; ++row) {
    for (int column = 0; column < ChainInputs::kColumns; ++column) {
      const uint16_t* const a = x.a.data() + static_cast<ptrdiff_t>(row) * ChainInputs::kDepth;
      const uint16_t* const b = x.b.data() + static_cast<ptrdiff_t>(column) * ChainInputs::kDepth;
      const float c = x.c[static_cast<size_t>(row * ChainInputs::kColumns + column)];
      float special;
      if (numerics::mma_special<Format>(c, a, b, &special)) continue;
      std::vector<numerics::MmaTerm> terms;
      for (int i = 0; i < ChainInputs::kDepth; ++i) {
        const auto p = numerics::mma_term<Format>(a[i]), q = numerics::mma_term<Format>(b[i]);
        terms.push_back({p.significand * q.significand, p.exponent + q.exponent, p.fraction_bits + q.fraction_bits});
      }
      body(terms, c, numerics::hopper_mma_step<Format>(c, a, b));
    }
  }
}

template <class Format>
void expect_default_is_the_model(isobit_dtype dtype) {
  int compared = 0;
  for (const ChainSet set : {ChainSet::kRandom, ChainSet::kBits}) {
    for_each_finite<Format>(set, dtype, [&](const auto& terms, float c, float expected) {
      ++compared;
      ASSERT_EQ(numerics::float_bits(apply_rule({}, terms, c)), numerics::float_bits(expected));
    });
  }
  EXPECT_GT(compared, 3500);
}

TEST(MmaRule, TheDefaultIsTheMeasuredRule) {
  expect_default_is_the_model<Bf16>(ISOBIT_BF16);
  expect_default_is_the_model<Fp16>(ISOBIT_FP16);
}

// Each of these differs from its neighbours on the fixed inputs: outputs made by it are explained by it alone.
TEST(MmaRule, TheFitFindsTheRule) {
  for (const isobit_dtype dtype : {ISOBIT_BF16, ISOBIT_FP16}) {
    for (const MmaRule& rule : {MmaRule{}, MmaRule{.group = 8, .kept_bits = 24}, MmaRule{.group = 4, .kept_bits = 23},
                                MmaRule{.kept_bits = 26, .floors = true}, MmaRule{.normalised = true},
                                MmaRule{.group = 8, .kept_bits = 28, .nearest = true}}) {
      std::vector<RuleSample> samples;
      for (const ChainSet set : {ChainSet::kRandom, ChainSet::kBits}) {
        const auto add = [&](const auto& terms, float c, float) {
          samples.push_back({terms, c, numerics::float_bits(apply_rule(rule, terms, c))});
        };
        dtype == ISOBIT_BF16 ? for_each_finite<Bf16>(set, dtype, add) : for_each_finite<Fp16>(set, dtype, add);
      }
      constexpr int kGroups[] = {4, 8, 16};
      const std::vector<RuleFit> fits = fit_rules(samples, kGroups, 30, 4);
      ASSERT_EQ(fits.size(), 1u) << rule.text() << "; also " << fits.back().rule.text();
      EXPECT_EQ(fits[0].rule.text(), rule.text());
      EXPECT_EQ(fits[0].differing, 0);
    }
  }
}

}  // namespace
}  // namespace isobit::cli
