// The CPU backend: accuracy against the oracle, special values, and bytes that do not depend on layout or threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "numerics/bf16.h"
#include "numerics/fp16.h"
#include "ops/geglu/reference.h"
#include "ops/geglu/test/problem.h"

namespace isobit::geglu::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr isobit_dtype kDtypes[] = {ISOBIT_BF16, ISOBIT_FP16, ISOBIT_FP32};
constexpr isobit_gelu kGelus[] = {ISOBIT_GELU_TANH, ISOBIT_GELU_ERF};

// |got - wanted| in units in the last place that `wanted` has in the dtype.
double ulp_error(isobit_dtype dtype, double got, double wanted) {
  const int digits = dtype == ISOBIT_BF16 ? 8 : dtype == ISOBIT_FP16 ? 11 : 24;
  const int lowest = dtype == ISOBIT_BF16 ? -133 : dtype == ISOBIT_FP16 ? -24 : -149;
  int exponent;
  std::frexp(wanted, &exponent);
  return std::fabs(got - wanted) / std::ldexp(1.0, std::max(exponent - digits, lowest));
}

struct Outputs {
  std::vector<uint32_t> out, d_gate, d_up;
};

Outputs run(Problem* problem, isobit_gelu gelu, int threads = 1) {
  Outputs outputs;
  problem->reset();
  isobit_geglu_forward_args forward = problem->forward(gelu);
  forward.threads = threads;
  EXPECT_EQ(isobit_geglu_forward(&forward, nullptr), ISOBIT_OK) << isobit_last_error();
  EXPECT_EQ(problem->stray_write(false), "");
  outputs.out = problem->out();
  problem->reset();
  isobit_geglu_backward_args backward = problem->backward(gelu);
  backward.threads = threads;
  EXPECT_EQ(isobit_geglu_backward(&backward, nullptr), ISOBIT_OK) << isobit_last_error();
  EXPECT_EQ(problem->stray_write(true), "");
  outputs.d_gate = problem->d_gate();
  outputs.d_up = problem->d_up();
  return outputs;
}

uint32_t forward_one(isobit_dtype dtype, isobit_gelu gelu, float a, float b) {
  uint32_t bits[3] = {bits_of(dtype, a), bits_of(dtype, b), 0};
  isobit_tensor tensors[3] = {};
  for (int i = 0; i < 3; ++i) {
    tensors[i].data = &bits[i];
    tensors[i].dtype = dtype;
    tensors[i].device_type = ISOBIT_CPU;
    tensors[i].rank = 1;
    tensors[i].shape[0] = 1;
    tensors[i].stride[0] = 1;
  }
  isobit_geglu_forward_args args = {};
  args.struct_size = sizeof args;
  args.gate = tensors[0];
  args.up = tensors[1];
  args.out = tensors[2];
  args.gelu = gelu;
  EXPECT_EQ(isobit_geglu_forward(&args, nullptr), ISOBIT_OK) << isobit_last_error();
  return bits[2];
}

// out and d_up in units in the last place: the half unit of the one rounding, and what the sequence's relative error
// (tanh 1.2e-5, erf 2.0e-5 in the short forward sequences) can add to it. fp32: the measured maxima with a little room.
// gelu' crosses zero, so the error of d_gate beyond the half unit of its rounding is counted in units of |d_out up|.
struct Bound {
  isobit_dtype dtype;
  isobit_gelu gelu;
  double out, d_up, d_gate;
};
constexpr Bound kBounds[] = {
    {ISOBIT_BF16, ISOBIT_GELU_TANH, 0.504, 0.5003, 2e-7}, {ISOBIT_BF16, ISOBIT_GELU_ERF, 0.506, 0.5003, 4e-7},
    {ISOBIT_FP16, ISOBIT_GELU_TANH, 0.525, 0.502, 2e-7},  {ISOBIT_FP16, ISOBIT_GELU_ERF, 0.542, 0.502, 4e-7},
    {ISOBIT_FP32, ISOBIT_GELU_TANH, 3.5, 3.5, 2e-7},      {ISOBIT_FP32, ISOBIT_GELU_ERF, 6.5, 6.5, 2e-7}};

TEST(GegluCpu, ErrorAgainstDoublePrecision) {
  constexpr int64_t kRows = 64;
  constexpr int64_t kColumns = 8192;
  for (const Bound& bound : kBounds) {
    const isobit_gelu gelu = bound.gelu;
    Problem problem(bound.dtype, {.rows = kRows, .columns = kColumns}, Values::kNormal, 7);
    const Outputs outputs = run(&problem, gelu);
    const isobit_geglu_backward_args args = problem.backward(gelu);
    Params params;
    ASSERT_TRUE(check(&args, &params).ok());
    const auto value = [&](uint32_t bits) { return value_of(bound.dtype, bits); };
    double out = 0.0, d_up = 0.0, d_gate = 0.0;
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      const ReferenceElement wanted = reference_element(params, i / kColumns, i % kColumns);
      const auto at = static_cast<size_t>(i);
      out = std::max(out, ulp_error(bound.dtype, value(outputs.out[at]), wanted.out));
      d_up = std::max(d_up, ulp_error(bound.dtype, value(outputs.d_up[at]), wanted.d_up));
      const double ulps = ulp_error(bound.dtype, value(outputs.d_gate[at]), wanted.d_gate);
      const double unit = std::fabs(value(outputs.d_gate[at]) - wanted.d_gate) / std::max(ulps, 1e-30);
      if (ulps > 0.5) d_gate = std::max(d_gate, (ulps - 0.5) * unit / std::fabs(wanted.d_out_up));
    }
    const std::string what = std::string(dtype_name(bound.dtype)) + (gelu == ISOBIT_GELU_TANH ? "_tanh" : "_erf");
    EXPECT_LE(out, bound.out) << what;
    EXPECT_LE(d_up, bound.d_up) << what;
    EXPECT_LE(d_gate, bound.d_gate) << what;
    std::printf("%s: out %.4f ulp, d_up %.4f ulp, d_gate %.3g |d_out up|\n", what.c_str(), out, d_up, d_gate);
  }
}

// gelu of every finite bf16 is the bf16 nearest to the exact value; fp16 misses the nearest in few places, never by a
// whole unit.
TEST(GegluCpu, EveryHalfPrecisionInput) {
  for (const isobit_dtype dtype : {ISOBIT_BF16, ISOBIT_FP16}) {
    for (const isobit_gelu gelu : kGelus) {
      Problem problem(dtype, {.rows = 1, .columns = 65536}, Values::kEveryHalf);
      const Outputs outputs = run(&problem, gelu);
      int missed = 0;
      for (uint32_t i = 0; i < 65536; ++i) {
        const double a = value_of(dtype, i);
        const double exact = reference_gelu(static_cast<numerics::Gelu>(gelu), a);
        const double got = value_of(dtype, outputs.out[i]);
        if (std::isnan(a)) {
          EXPECT_EQ(outputs.out[i], 0x7FFFu);
          EXPECT_EQ(outputs.d_gate[i], 0x7FFFu);
          EXPECT_EQ(outputs.d_up[i], 0x7FFFu);
          continue;
        }
        if (std::isinf(a)) {
          EXPECT_EQ(got, a > 0 ? a : 0.0);
          continue;
        }
        const double error = ulp_error(dtype, got, exact);
        EXPECT_LE(error, dtype == ISOBIT_BF16 ? 0.50001 : 0.53) << a;
        missed += error > 0.50001;
        // With b = d = 1 the value of the backward pass is the forward's, rounded from a longer sequence.
        EXPECT_LE(ulp_error(dtype, value_of(dtype, outputs.d_up[i]), exact), dtype == ISOBIT_BF16 ? 0.50001 : 0.501);
      }
      EXPECT_LE(missed, dtype == ISOBIT_BF16 ? 0 : 100) << "gelu " << gelu;
    }
  }
}

TEST(GegluCpu, SpecialValues) {
  for (const isobit_dtype dtype : kDtypes) {
    const auto bits = [dtype](float x) { return bits_of(dtype, x); };
    const uint32_t nan = dtype == ISOBIT_FP32 ? 0x7FFFFFFFu : 0x7FFFu;
    for (const isobit_gelu gelu : kGelus) {
      EXPECT_EQ(forward_one(dtype, gelu, kInf, 1.0f), bits(kInf));
      EXPECT_EQ(forward_one(dtype, gelu, -kInf, 1.0f), bits(-0.0f));
      EXPECT_EQ(forward_one(dtype, gelu, 0.0f, 1.0f), bits(0.0f));
      EXPECT_EQ(forward_one(dtype, gelu, -0.0f, 1.0f), bits(-0.0f));
      EXPECT_EQ(forward_one(dtype, gelu, NAN, 1.0f), nan);
      EXPECT_EQ(forward_one(dtype, gelu, 1.0f, NAN), nan);
      EXPECT_EQ(forward_one(dtype, gelu, -kInf, kInf), nan);  // 0 times infinity
      for (const float a : {10.5f, 11.0f, 12.0f, 13.25f, 100.0f, 60000.0f}) {
        EXPECT_EQ(forward_one(dtype, gelu, a, 1.0f), bits(a)) << a;
        EXPECT_EQ(value_of(dtype, forward_one(dtype, gelu, -a, 1.0f)) <= 0.0, true) << a;
        EXPECT_NEAR(value_of(dtype, forward_one(dtype, gelu, -a, 1.0f)), 0.0, 1e-20) << a;
      }
      // Subnormals: gelu(a) = a / 2.
      const float least = dtype == ISOBIT_FP16 ? 0x1p-24f : dtype == ISOBIT_BF16 ? 0x1p-133f : 0x1p-149f;
      EXPECT_EQ(forward_one(dtype, gelu, 4.0f * least, 1.0f), bits(2.0f * least));
      EXPECT_EQ(forward_one(dtype, gelu, -4.0f * least, 1.0f), bits(-2.0f * least));
    }
  }
  // The erf form still has subnormal results where the tanh form has long been 0.
  const double got = value_of(ISOBIT_FP32, forward_one(ISOBIT_FP32, ISOBIT_GELU_ERF, -13.24f, 1.0f));
  EXPECT_NEAR(got, reference_gelu(numerics::Gelu::kErf, -13.24f), 1e-43);
  EXPECT_EQ(forward_one(ISOBIT_BF16, ISOBIT_GELU_ERF, -13.25f, 1.0f),
            bits_of(ISOBIT_BF16, static_cast<float>(reference_gelu(numerics::Gelu::kErf, -13.25))));
}

TEST(GegluCpu, LayoutsStridesAndThreadsGiveTheSameBytes) {
  constexpr Arrangement kAll[] = {Arrangement::kSeparate, Arrangement::kStacked, Arrangement::kInterleaved};
  for (const isobit_dtype dtype : kDtypes) {
    for (const int64_t columns : {1, 7, 512, 515, 40001}) {
      const int64_t rows = columns > 1000 ? 2 : 37;
      Problem plain(dtype, {.rows = rows, .columns = columns}, Values::kPatterns);
      const Outputs wanted = run(&plain, ISOBIT_GELU_TANH);
      for (const Arrangement arrangement : kAll) {
        for (int variant = 0; variant < 4; ++variant) {
          const Shape shape = {.rows = rows,
                               .columns = columns,
                               .inputs = arrangement,
                               .gradients = kAll[(static_cast<int>(arrangement) + variant) % 3],
                               .swapped = variant % 2 == 1,
                               .padding = variant,
                               .misalignment = 3 * variant};
          Problem problem(dtype, shape, Values::kPatterns);
          const Outputs got = run(&problem, ISOBIT_GELU_TANH, 1 + variant);
          EXPECT_EQ(first_difference(dtype, got.out, wanted.out), "") << columns;
          EXPECT_EQ(first_difference(dtype, got.d_gate, wanted.d_gate), "") << columns;
          EXPECT_EQ(first_difference(dtype, got.d_up, wanted.d_up), "") << columns;
        }
      }
    }
  }
}

TEST(GegluCpu, BackwardInPlaceGivesTheSameBytes) {
  for (const isobit_dtype dtype : kDtypes) {
    for (const Arrangement arrangement : {Arrangement::kSeparate, Arrangement::kStacked, Arrangement::kInterleaved}) {
      Shape shape = {.rows = 9, .columns = 1031, .inputs = arrangement};
      Problem apart(dtype, shape, Values::kNormal);
      const Outputs wanted = run(&apart, ISOBIT_GELU_ERF);
      shape.in_place = true;
      Problem together(dtype, shape, Values::kNormal);
      const Outputs got = run(&together, ISOBIT_GELU_ERF);
      EXPECT_EQ(first_difference(dtype, got.d_gate, wanted.d_gate), "");
      EXPECT_EQ(first_difference(dtype, got.d_up, wanted.d_up), "");
    }
  }
}

// round_gelu is the two calls that a framework makes: gelu alone, then the product.
TEST(GegluCpu, RoundGelu) {
  for (const isobit_dtype dtype : kDtypes) {
    Problem problem(dtype, {.rows = 3, .columns = 4099}, Values::kNormal);
    isobit_geglu_forward_args args = problem.forward(ISOBIT_GELU_TANH);
    args.round_gelu = 1;
    ASSERT_EQ(isobit_geglu_forward(&args, nullptr), ISOBIT_OK);
    const std::vector<uint32_t> got = problem.out();
    const std::vector<uint32_t> a = problem.gate();
    const auto* up = static_cast<const std::byte*>(args.up.data);
    for (size_t i = 0; i < got.size(); ++i) {
      uint32_t b = 0;
      std::memcpy(&b, up + i * static_cast<size_t>(dtype_bytes(dtype)), static_cast<size_t>(dtype_bytes(dtype)));
      const auto value = static_cast<float>(
          value_of(dtype, forward_one(dtype, ISOBIT_GELU_TANH, static_cast<float>(value_of(dtype, a[i])), 1.0f)));
      ASSERT_EQ(got[i], bits_of(dtype, value * static_cast<float>(value_of(dtype, b)))) << i;
    }
  }
}

TEST(GegluCpu, RowsDoNotDependOnTheirNeighbours) {
  Problem batch(ISOBIT_BF16, {.rows = 100, .columns = 257}, Values::kNormal);
  const Outputs all = run(&batch, ISOBIT_GELU_TANH);
  batch.reset();
  for (const int64_t row : {0, 1, 50, 99}) {
    isobit_geglu_forward_args args = batch.forward(ISOBIT_GELU_TANH);
    for (isobit_tensor* t : {&args.gate, &args.up, &args.out}) {
      t->data = static_cast<uint16_t*>(t->data) + row * t->stride[0];
      t->shape[0] = 1;
    }
    ASSERT_EQ(isobit_geglu_forward(&args, nullptr), ISOBIT_OK);
    const std::vector<uint32_t> got = batch.out();
    for (size_t i = 0; i < 257; ++i) {
      const size_t at = static_cast<size_t>(row) * 257 + i;
      EXPECT_EQ(got[at], all.out[at]);
    }
  }
}

}  // namespace
}  // namespace isobit::geglu::test
