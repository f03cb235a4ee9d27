#include "ops/linear_logp/test/backward_frozen.h"

#include <string_view>

#include "ops/linear_logp/test/frozen.h"

namespace isobit::linear_logp::test {
namespace {

constexpr FrozenBackwardCase kCases[] = {
    {"Plain", {20, 136, 700, 1}, 0.25f, false, 0xD382B6FD0FD6E0D3, 0xD382B6FD0FD6E0D3},
    {"Everything", {68, 64, 900, 3}, 0.5f, true, 0xEB8D5162D72271F5, 0xEB8D5162D72271F5},
    {"ConfidentRows", {9, 64, 1400, 1}, 0.25f, false, 0xFDE2AB434198B747, 0xC0E03FB8582EC6D6},
    {"PiecesOfIds", {2, 16, 133000, 1}, 1.0f, false, 0xD12B6961966210E5, 0xD12B6961966210E5},
    {"PiecesOfRows", {8300, 8, 17, 1}, 0.5f, false, 0x868EB3431514E1FF, 0x868EB3431514E1FF},
};

// Every third row's first target far above all else: 1 - p is below the last place of p.
void make_confident(Problem* p) {
  for (int64_t n = 0; n < p->shape.rows; n += 3) {
    const int64_t id = p->target[static_cast<size_t>(n * p->shape.targets)];
    for (int64_t k = 0; k < p->shape.width; ++k) p->set_weight(id, k, 0.375f * p->hidden_at(n, k));
  }
}

}  // namespace

std::span<const FrozenBackwardCase> frozen_backward_cases() { return kCases; }

BackwardCase frozen_backward_case(const FrozenBackwardCase& c) {
  BackwardCase result;
  result.problem = frozen_problem({c.name, ISOBIT_BF16, c.shape, c.weight_scale, c.everything, 0, 0});
  if (std::string_view(c.name) == "ConfidentRows") make_confident(&result.problem);
  FrozenWords words(20261201);
  for (int64_t i = 0; i < c.shape.rows * c.shape.targets; ++i) result.d_logp.push_back(words.bell());
  if (!c.everything) return result;
  for (int64_t n = 0; n < c.shape.rows; ++n) {
    result.d_lse.push_back(0.25f * words.bell());
    result.d_entropy.push_back(0.25f * words.bell());
  }
  result.hidden_dtype = ISOBIT_FP32;
  result.bias_dtype = ISOBIT_FP32;
  result.accumulate = true;
  result.forward_outputs = true;
  return result;
}

uint64_t hash_gradients(const BackwardBytes& bytes) {
  return hash_words(bytes.d_hidden + bytes.d_weight + bytes.d_bias + bytes.logp + bytes.lse + bytes.entropy);
}

}  // namespace isobit::linear_logp::test
