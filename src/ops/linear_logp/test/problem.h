// Operands, calls and outputs of linear_logp on the CPU for the room's tests.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "isobit/linear_logp.h"
#include "ops/linear_logp/reference.h"

namespace isobit::linear_logp::test {

// Memory of an output: poison inside, guard bytes around.
class Guarded {
 public:
  Guarded() = default;
  explicit Guarded(size_t bytes);
  Guarded(Guarded&&) = default;  // a vector's memory stays where it is; a copy would lose its alignment
  Guarded& operator=(Guarded&&) = default;
  void* data() { return memory_.empty() ? nullptr : memory_.data() + offset_; }
  const void* data() const { return const_cast<Guarded*>(this)->data(); }
  size_t bytes() const { return bytes_; }
  template <class T>
  const T* as() const {
    return static_cast<const T*>(data());
  }
  std::string contents() const { return {static_cast<const char*>(data()), bytes_}; }
  bool poisoned() const { return contents() == std::string(bytes_, static_cast<char>(kPoison)); }
  bool guards_intact() const;

 private:
  static constexpr size_t kGuard = 64;
  static constexpr size_t kAlignment = 256;
  static constexpr unsigned char kPoison = 0xA5;
  static constexpr unsigned char kGuardByte = 0x3C;
  size_t bytes_ = 0;
  size_t offset_ = 0;
  std::vector<unsigned char> memory_;
};

struct Shape {
  int64_t rows, width, vocab;
  int64_t targets = 1;
};

// Operands in the formats of a call, and the same values in fp64 for the oracle.
struct Problem {
  Shape shape;
  isobit_dtype dtype = ISOBIT_BF16;
  int64_t hidden_stride = 0;
  int64_t weight_stride = 0;
  std::vector<uint16_t> hidden;
  std::vector<uint16_t> weight;
  std::vector<float> bias;         // empty: none
  std::vector<float> temperature;  // empty: temperature_value
  std::vector<int64_t> target;     // [N, K]
  float temperature_value = 1.0f;
  float softcap = 0.0f;
  int64_t top = 0;
  bool use_ignore_index = true;
  int64_t ignore_index = -100;

  void set_hidden(int64_t row, int64_t k, float value);
  void set_weight(int64_t id, int64_t k, float value);
  float hidden_at(int64_t row, int64_t k) const;
  float weight_at(int64_t id, int64_t k) const;

  // Inputs only. The problem must outlive the arguments.
  isobit_linear_logp_args args() const;
  ReferenceProblem reference() const;
};

// Normal operands; logits have a standard deviation of about `scale`. Random targets.
Problem random_problem(const Shape& shape, uint64_t seed, float scale = 4.0f, isobit_dtype dtype = ISOBIT_BF16);

// A problem of one row whose logits are the given values: weights of zero, the logits as bias.
Problem problem_of_logits(const std::vector<float>& logits, int64_t target);

// All outputs of a call; those that are wanted.
struct Outputs {
  enum Wanted : unsigned { kLogp = 1, kLse = 2, kEntropy = 4, kRank = 8, kLogit = 16, kTop = 32, kAll = 63 };
  Outputs(const Problem& problem, unsigned wanted);
  void attach(isobit_linear_logp_args* args);
  bool guards_intact() const;
  bool poisoned() const;
  // Every byte of a row's outputs.
  std::string row_bytes(int64_t row) const;
  std::string bytes() const;
  float logp_at(int64_t row, int64_t k = 0) const { return logp.as<float>()[row * targets + k]; }
  float lse_at(int64_t row) const { return lse.as<float>()[row]; }
  float entropy_at(int64_t row) const { return entropy.as<float>()[row]; }
  int32_t rank_at(int64_t row, int64_t k = 0) const { return rank.as<int32_t>()[row * targets + k]; }
  float logit_at(int64_t row, int64_t k = 0) const { return target_logit.as<float>()[row * targets + k]; }
  int32_t top_id_at(int64_t row, int64_t t) const { return top_id.as<int32_t>()[row * top + t]; }
  float top_logp_at(int64_t row, int64_t t) const { return top_logp.as<float>()[row * top + t]; }

  int64_t rows, targets, top;
  unsigned wanted;
  Guarded logp, lse, entropy, rank, target_logit, top_id, top_logp;
};

isobit_tensor matrix(const void* data, isobit_dtype dtype, int64_t rows, int64_t columns, int64_t row_stride = -1);
isobit_tensor vector(const void* data, isobit_dtype dtype, int64_t size, int64_t stride = 1);

enum class Workspace { kMinimum, kRecommended };

// Runs a whole call with a workspace of the queried size; fails the test unless the call is OK and the guards hold.
void run_whole(isobit_linear_logp_args args, Workspace workspace = Workspace::kRecommended);
Outputs run(const Problem& problem, unsigned wanted = Outputs::kAll, Workspace workspace = Workspace::kRecommended,
            int threads = 1);

// Inputs of a call on the shard [first, last) of a problem's vocabulary.
isobit_linear_logp_args shard_args(const Problem& problem, int64_t first, int64_t last);

// Cuts [0, V) at the given ids, runs every shard, merges, and returns what the merge wrote. With rank the target logits
// are gathered first.
Outputs run_sharded(const Problem& problem, const std::vector<int64_t>& cuts, unsigned wanted, int threads = 1);

uint32_t bits_of(float x);
inline constexpr uint32_t kNan = 0x7FFFFFFF;

}  // namespace isobit::linear_logp::test
