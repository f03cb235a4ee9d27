#include "ops/linear_logp/test/frozen.h"

#include <cmath>
#include <cstring>

namespace isobit::linear_logp::test {
namespace {

constexpr FrozenCase kCases[] = {
    {"Plain", ISOBIT_BF16, {5, 136, 700, 1}, 0.25f, false, 0x0A4065DAC1D3AE5C, 0x640D4F15EE5D6D22},
    {"Fp16", ISOBIT_FP16, {70, 72, 450, 1}, 0.25f, false, 0xFDE7778BFF6E74BB, 0xFC7B41969F1BD034},
    {"Options", ISOBIT_BF16, {67, 64, 900, 3}, 0.5f, true, 0xB0EDF7C4246EFEFD, 0xD1251E8DD535234E},
    {"LargeLogits", ISOBIT_BF16, {9, 64, 1400, 2}, 64.0f, false, 0x4332609449DC2887, 0x2401F6B94428397A},
    {"HugeLogits", ISOBIT_BF16, {4, 48, 1100, 1}, 0x1p22f, false, 0x9A62E4A515CACF4C, 0xABB4A05418A692FC},
    {"EveryLevel", ISOBIT_BF16, {3, 16, 70001, 1}, 1.0f, false, 0xE225E7842288969B, 0xD7801ADA7444A105},
};

void add_options(Problem* p, FrozenWords* words) {
  for (int64_t v = 0; v < p->shape.vocab; ++v) p->bias.push_back(0.5f * words->bell());
  for (int64_t n = 0; n < p->shape.rows; ++n) p->temperature.push_back(0.5f + 0.125f * static_cast<float>(n % 9));
  p->softcap = 8.0f;
  const auto target = [&](int64_t row, int64_t k) -> int64_t& { return p->target[row * p->shape.targets + k]; };
  for (int64_t k = 0; k < p->shape.targets; ++k) target(0, k) = p->ignore_index;
  target(1, 0) = p->ignore_index;
  target(2, 0) = p->shape.vocab;
  target(3, 1) = -1;
  p->set_hidden(4, 5, NAN);
  p->set_hidden(5, 1, INFINITY);
  p->temperature[6] = 0.0f;
  p->temperature[7] = NAN;
  p->temperature[8] = -1.0f;
  p->temperature[9] = 0x1p-100f;
  p->bias[7] = -INFINITY;
  p->bias[200] = -0x1p100f;
}

}  // namespace

std::span<const FrozenCase> frozen_cases() { return kCases; }

Problem frozen_problem(const FrozenCase& c) {
  Problem p;
  p.shape = c.shape;
  p.dtype = c.dtype;
  p.hidden_stride = c.shape.width;
  p.weight_stride = c.shape.width;
  p.hidden.resize(static_cast<size_t>(c.shape.rows * c.shape.width));
  p.weight.resize(static_cast<size_t>(c.shape.vocab * c.shape.width));
  FrozenWords words(20261130);
  for (int64_t n = 0; n < c.shape.rows; ++n) {
    for (int64_t k = 0; k < c.shape.width; ++k) p.set_hidden(n, k, words.bell());
  }
  for (int64_t v = 0; v < c.shape.vocab; ++v) {
    for (int64_t k = 0; k < c.shape.width; ++k) p.set_weight(v, k, c.weight_scale * words.bell());
  }
  for (int64_t i = 0; i < c.shape.rows * c.shape.targets; ++i) {
    p.target.push_back(static_cast<int64_t>(words.next() % static_cast<uint64_t>(c.shape.vocab)));
  }
  if (c.options) add_options(&p, &words);
  return p;
}

uint64_t hash_words(const std::string& bytes) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (size_t at = 0; at + 4 <= bytes.size(); at += 4) {
    uint32_t word = 0;
    std::memcpy(&word, bytes.data() + at, 4);
    hash = (hash ^ word) * 0x100000001B3u;
  }
  return hash;
}

}  // namespace isobit::linear_logp::test
