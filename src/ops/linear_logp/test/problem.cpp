#include "ops/linear_logp/test/problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "numerics/bf16.h"
#include "numerics/fp16.h"

namespace isobit::linear_logp::test {
namespace {

float decode(isobit_dtype dtype, uint16_t bits) {
  return dtype == ISOBIT_BF16 ? numerics::bf16_to_float(bits) : numerics::fp16_to_float(bits);
}

uint16_t encode(isobit_dtype dtype, float value) {
  return dtype == ISOBIT_BF16 ? numerics::bf16_from_float(value) : numerics::fp16_from_float(value);
}

isobit_tensor targets_view(const Problem& p, const void* data, isobit_dtype dtype) {
  return p.shape.targets == 1 ? vector(data, dtype, p.shape.rows) : matrix(data, dtype, p.shape.rows, p.shape.targets);
}

}  // namespace

Guarded::Guarded(size_t bytes) : bytes_(bytes), memory_(bytes + 2 * kGuard + kAlignment, kPoison) {
  const auto begin = reinterpret_cast<uintptr_t>(memory_.data());
  offset_ = (begin + kGuard + kAlignment - 1) / kAlignment * kAlignment - begin;
  std::memset(&memory_[offset_ - kGuard], kGuardByte, kGuard);
  std::memset(&memory_[offset_ + bytes], kGuardByte, kGuard);
}

bool Guarded::guards_intact() const {
  const auto intact = [&](size_t begin) {
    return std::all_of(memory_.begin() + static_cast<long>(begin), memory_.begin() + static_cast<long>(begin + kGuard),
                       [](unsigned char byte) { return byte == kGuardByte; });
  };
  return memory_.empty() || (intact(offset_ - kGuard) && intact(offset_ + bytes_));
}

isobit_tensor matrix(const void* data, isobit_dtype dtype, int64_t rows, int64_t columns, int64_t row_stride) {
  return {const_cast<void*>(data),
          dtype,
          ISOBIT_CPU,
          0,
          2,
          {rows, columns, 0, 0},
          {row_stride < 0 ? columns : row_stride, 1, 0, 0}};
}

isobit_tensor vector(const void* data, isobit_dtype dtype, int64_t size, int64_t stride) {
  return {const_cast<void*>(data), dtype, ISOBIT_CPU, 0, 1, {size, 0, 0, 0}, {stride, 0, 0, 0}};
}

void Problem::set_hidden(int64_t row, int64_t k, float value) {
  hidden[row * hidden_stride + k] = encode(dtype, value);
}
void Problem::set_weight(int64_t id, int64_t k, float value) { weight[id * weight_stride + k] = encode(dtype, value); }
float Problem::hidden_at(int64_t row, int64_t k) const { return decode(dtype, hidden[row * hidden_stride + k]); }
float Problem::weight_at(int64_t id, int64_t k) const { return decode(dtype, weight[id * weight_stride + k]); }

isobit_linear_logp_args Problem::args() const {
  isobit_linear_logp_args a = ISOBIT_LINEAR_LOGP_ARGS_INIT;
  a.hidden = matrix(hidden.data(), dtype, shape.rows, shape.width, hidden_stride);
  a.weight = matrix(weight.data(), dtype, shape.vocab, shape.width, weight_stride);
  a.target = targets_view(*this, target.data(), ISOBIT_INT64);
  if (!bias.empty()) a.bias = vector(bias.data(), ISOBIT_FP32, shape.vocab);
  if (!temperature.empty()) a.temperature = vector(temperature.data(), ISOBIT_FP32, shape.rows);
  a.temperature_value = temperature_value;
  a.softcap = softcap;
  a.use_ignore_index = use_ignore_index ? 1 : 0;
  a.ignore_index = ignore_index;
  return a;
}

ReferenceProblem Problem::reference() const {
  ReferenceProblem r;
  r.rows = shape.rows;
  r.width = shape.width;
  r.vocab = shape.vocab;
  r.targets = shape.targets;
  r.top = top;
  for (int64_t n = 0; n < shape.rows; ++n) {
    for (int64_t k = 0; k < shape.width; ++k) r.hidden.push_back(hidden_at(n, k));
    r.temperature.push_back(temperature.empty() ? temperature_value : temperature[n]);
  }
  for (int64_t v = 0; v < shape.vocab; ++v) {
    for (int64_t k = 0; k < shape.width; ++k) r.weight.push_back(weight_at(v, k));
  }
  r.bias.assign(bias.begin(), bias.end());
  r.target = target;
  r.softcap = softcap;
  r.use_ignore_index = use_ignore_index;
  r.ignore_index = ignore_index;
  return r;
}

Problem random_problem(const Shape& shape, uint64_t seed, float scale, isobit_dtype dtype) {
  Problem p;
  p.shape = shape;
  p.dtype = dtype;
  p.hidden_stride = shape.width;
  p.weight_stride = shape.width;
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  const float weight_scale = scale / std::sqrt(static_cast<float>(shape.width));
  for (int64_t i = 0; i < shape.rows * shape.width; ++i) p.hidden.push_back(encode(dtype, normal(random)));
  for (int64_t i = 0; i < shape.vocab * shape.width; ++i) {
    p.weight.push_back(encode(dtype, weight_scale * normal(random)));
  }
  std::uniform_int_distribution<int64_t> id(0, shape.vocab - 1);
  for (int64_t i = 0; i < shape.rows * shape.targets; ++i) p.target.push_back(id(random));
  return p;
}

Problem problem_of_logits(const std::vector<float>& logits, int64_t target) {
  Problem p;
  p.shape = {1, 1, static_cast<int64_t>(logits.size())};
  p.hidden_stride = 1;
  p.weight_stride = 1;
  p.hidden = {0};
  p.weight.assign(logits.size(), 0);
  p.bias = logits;
  p.target = {target};
  return p;
}

Outputs::Outputs(const Problem& problem, unsigned wanted_outputs)
    : rows(problem.shape.rows), targets(problem.shape.targets), top(problem.top), wanted(wanted_outputs) {
  const auto make = [&](unsigned flag, int64_t columns, Guarded* memory) {
    if ((wanted & flag) != 0) *memory = Guarded(static_cast<size_t>(rows * columns) * 4);
  };
  if (top == 0) wanted &= ~static_cast<unsigned>(kTop);
  make(kLogp, targets, &logp);
  make(kLse, 1, &lse);
  make(kEntropy, 1, &entropy);
  make(kRank, targets, &rank);
  make(kLogit, targets, &target_logit);
  make(kTop, top, &top_id);
  make(kTop, top, &top_logp);
}

void Outputs::attach(isobit_linear_logp_args* args) {
  const auto shaped = [&](Guarded* memory, isobit_dtype dtype) {
    isobit_tensor view = matrix(memory->data(), dtype, rows, targets);
    view.rank = args->target.rank;
    if (view.rank == 1) view.stride[0] = 1;
    return view;
  };
  if ((wanted & kLogp) != 0) args->logp = shaped(&logp, ISOBIT_FP32);
  if ((wanted & kLse) != 0) args->lse = vector(lse.data(), ISOBIT_FP32, rows);
  if ((wanted & kEntropy) != 0) args->entropy = vector(entropy.data(), ISOBIT_FP32, rows);
  if ((wanted & kRank) != 0) args->rank = shaped(&rank, ISOBIT_INT32);
  if ((wanted & kLogit) != 0) args->target_logit = shaped(&target_logit, ISOBIT_FP32);
  if ((wanted & kTop) != 0) {
    args->top_id = matrix(top_id.data(), ISOBIT_INT32, rows, top);
    args->top_logp = matrix(top_logp.data(), ISOBIT_FP32, rows, top);
  }
}

bool Outputs::guards_intact() const {
  return logp.guards_intact() && lse.guards_intact() && entropy.guards_intact() && rank.guards_intact() &&
         target_logit.guards_intact() && top_id.guards_intact() && top_logp.guards_intact();
}

bool Outputs::poisoned() const {
  return logp.poisoned() && lse.poisoned() && entropy.poisoned() && rank.poisoned() && target_logit.poisoned() &&
         top_id.poisoned() && top_logp.poisoned();
}

std::string Outputs::row_bytes(int64_t row) const {
  std::string all;
  const auto append = [&](const Guarded& memory, int64_t columns) {
    if (memory.bytes() > 0) all.append(memory.as<char>() + row * columns * 4, static_cast<size_t>(columns) * 4);
  };
  append(logp, targets);
  append(lse, 1);
  append(entropy, 1);
  append(rank, targets);
  append(target_logit, targets);
  append(top_id, top);
  append(top_logp, top);
  return all;
}

std::string Outputs::bytes() const {
  std::string all;
  for (int64_t row = 0; row < rows; ++row) all += row_bytes(row);
  return all;
}

void run_whole(isobit_linear_logp_args args, Workspace workspace) {
  size_t minimum = 0;
  size_t recommended = 0;
  ASSERT_EQ(isobit_linear_logp_workspace(&args, &minimum, &recommended), ISOBIT_OK) << isobit_last_error();
  Guarded memory(workspace == Workspace::kMinimum ? minimum : recommended);
  args.workspace = memory.data();
  args.workspace_bytes = memory.bytes();
  ASSERT_EQ(isobit_linear_logp(&args, nullptr), ISOBIT_OK) << isobit_last_error();
  EXPECT_TRUE(memory.guards_intact());
}

Outputs run(const Problem& problem, unsigned wanted, Workspace workspace, int threads) {
  Outputs outputs(problem, wanted);
  isobit_linear_logp_args args = problem.args();
  outputs.attach(&args);
  args.threads = threads;
  run_whole(args, workspace);
  EXPECT_TRUE(outputs.guards_intact());
  return outputs;
}

uint32_t bits_of(float x) { return numerics::float_bits(x); }

}  // namespace isobit::linear_logp::test
