#include "ops/linear_logp/test/backward_model.h"

#include <gtest/gtest.h>

#include "numerics/hopper_mma.h"
#include "ops/linear_logp/saved.h"

namespace isobit::linear_logp::test {
namespace {

class Model {
 public:
  Model(const Problem& problem, const UpstreamValues& upstream, const Faults& faults)
      : p_(problem), upstream_(upstream), faults_(faults), saved_(save(problem)) {
    const auto [rows, width, vocab, targets] = p_.shape;
    const ReferenceProblem reference = p_.reference();
    for (int64_t n = 0; n < rows; ++n) {
      valid_.push_back(reference_row_kind(reference, n) == ReferenceRowKind::kValid);
      for (int64_t v = 0; v < vocab; ++v) dt_.push_back(valid_[n] ? gradient(n, v) : 0);
    }
  }

  ModelGradients run() const {
    const auto [rows, width, vocab, targets] = p_.shape;
    ModelGradients out;
    for (int64_t n = 0; n < rows; ++n) {
      for (int64_t k = 0; k < width; ++k) out.hidden.push_back(valid_[n] ? hidden_sum(n, k) : 0.0f);
    }
    for (int64_t v = 0; v < vocab; ++v) {
      for (int64_t k = 0; k < width; ++k) out.weight.push_back(row_sum_of(v, k));
      out.bias.push_back(row_sum_of(v, -1));
    }
    return out;
  }

 private:
  float upstream_logp(int64_t n, int64_t k) const {
    return upstream_.logp.empty() ? 0.0f : upstream_.logp[n * p_.shape.targets + k];
  }

  uint16_t gradient(int64_t n, int64_t v) const {
    const int64_t k_count = p_.shape.targets;
    const float temperature = p_.temperature.empty() ? p_.temperature_value : p_.temperature[n];
    const float* const bias = p_.bias.empty() ? nullptr : &p_.bias[v];
    const float dot = numerics::hopper_dot<numerics::Bf16>(&p_.hidden[n * p_.hidden_stride],
                                                           &p_.weight[v * p_.weight_stride], p_.shape.width);
    const LogitAndSlope logit = finish_logit_and_slope(dot, bias, p_.softcap, temperature);
    const RowRecord record = load_record(saved_arrays(const_cast<void*>(saved_.data()), p_.shape.rows), n);
    const auto divided = [&](float x) { return temperature == 1.0f ? x : x / temperature; };
    float all = 0.0f, same = 0.0f, other = 0.0f;
    int all_count = 0, same_count = 0, other_count = 0;
    const auto take = [](float* sum, int* count, float x) { *sum = (*count)++ == 0 ? x : *sum + x; };
    for (int64_t k = 0; k < k_count; ++k) {
      const int64_t id = p_.target[n * k_count + k];
      if (p_.use_ignore_index && id == p_.ignore_index) continue;
      const float g = divided(upstream_logp(n, k));
      take(&all, &all_count, g);
      id == v ? take(&same, &same_count, g) : take(&other, &other_count, g);
    }
    const float lse = upstream_.lse.empty() ? 0.0f : upstream_.lse[n];
    const bool has_entropy = !upstream_.entropy.empty();
    const float entropy = has_entropy ? upstream_.entropy[n] : 0.0f;
    const GradientRow row = gradient_row(record.row, temperature, all, lse, entropy, has_entropy);
    float dz = 0.0f;
    if (same_count > 0) {
      const GradientTarget target = gradient_target(row, same, other);
      dz = has_entropy ? gradient_of_target<true>(row, target, logit.z, v == record.lead, record.others)
                       : gradient_of_target<false>(row, target, logit.z, v == record.lead, record.others);
    } else {
      dz = has_entropy ? gradient_of_logit<true>(row, logit.z) : gradient_of_logit<false>(row, logit.z);
    }
    if (faults_.rounds_dt_twice) dz = numerics::bits_float((numerics::float_bits(dz) + 0x1000u) & ~0x1FFFu);
    return gradient_of_dot(dz, logit.slope, p_.softcap);
  }

  // Sum over pieces of chains of the given terms.
  template <class A, class B>
  float pieces(int64_t count, const A& a, const B& b) const {
    float sum = 0.0f;
    for (int64_t piece = 0; piece < count; piece += faults_.piece) {
      float chain = 0.0f;
      const int64_t end = std::min(count, piece + faults_.piece);
      for (int64_t group = piece; group < end; group += 16) {
        uint16_t left[16] = {};
        uint16_t right[16] = {};
        for (int64_t i = group; i < std::min(end, group + 16); ++i) {
          left[i - group] = a(i);
          right[i - group] = b(i);
        }
        chain = numerics::hopper_mma_step<numerics::Bf16>(chain, left, right);
      }
      sum = piece == 0 ? chain : sum + chain;
    }
    return sum;
  }

  float segment_sum(int64_t n, int64_t k, int64_t begin, int64_t end) const {
    return pieces(
        end - begin, [&](int64_t i) { return dt_[n * p_.shape.vocab + begin + i]; },
        [&](int64_t i) { return p_.weight[(begin + i) * p_.weight_stride + k]; });
  }

  // The node of `count` segments from the first on; false if none of its ids exists.
  bool tree(int64_t n, int64_t k, int64_t first, int64_t count, float* value) const {
    const int64_t vocab = p_.shape.vocab;
    const int64_t size = (vocab + 15) / 16;
    if (first * size >= vocab) return false;
    if (count == 1) {
      *value = segment_sum(n, k, first * size, std::min(vocab, (first + 1) * size));
      return true;
    }
    float right = 0.0f;
    tree(n, k, first, count / 2, value);
    if (tree(n, k, first + count / 2, count / 2, &right)) *value = *value + right;
    return true;
  }

  float hidden_sum(int64_t n, int64_t k) const {
    float value = 0.0f;
    if (!faults_.ascending_segments) {
      tree(n, k, 0, 16, &value);
      return value;
    }
    for (int64_t segment = 0; segment < 16; ++segment) {
      float next = 0.0f;
      if (tree(n, k, segment, 1, &next)) value = segment == 0 ? next : value + next;
    }
    return value;
  }

  // k = -1: ones in place of hidden.
  float row_sum_of(int64_t v, int64_t k) const {
    std::vector<int64_t> rows;
    for (int64_t n = 0; n < p_.shape.rows; ++n) {
      if (valid_[n] || faults_.counts_ignored_rows) rows.push_back(n);
    }
    return pieces(
        static_cast<int64_t>(rows.size()), [&](int64_t i) { return dt_[rows[i] * p_.shape.vocab + v]; },
        [&](int64_t i) { return k < 0 ? uint16_t{0x3F80} : p_.hidden[rows[i] * p_.hidden_stride + k]; });
  }

  const Problem& p_;
  const UpstreamValues& upstream_;
  Faults faults_;
  Guarded saved_;
  std::vector<bool> valid_;
  std::vector<uint16_t> dt_;
};

}  // namespace

ModelGradients model_gradients(const Problem& problem, const UpstreamValues& upstream, const Faults& faults) {
  return Model(problem, upstream, faults).run();
}

}  // namespace isobit::linear_logp::test
