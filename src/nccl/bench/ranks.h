// What the benchmarks over ranks share: the ranks in step, and one timed call on all of them.
#pragma once

#include <algorithm>
#include <barrier>
#include <string>
#include <vector>

#include "nccl/test/gpu_ranks.h"

namespace isobit::nccl::bench {

struct Shape {
  int64_t rows, width, vocab;
};

struct Settings {
  int samples = 11;
  std::string date = "unknown";
  std::string command;
};

// A thread a rank, its GPU current.
struct Ranks {
  explicit Ranks(test::GpuWorld* all) : world(all), in_step(all->ranks()) {}
  test::GpuWorld* world;
  std::barrier<> in_step;
};

// Samples of all ranks: a call over ranks takes as long as on the rank where it takes longest.
class Samples {
 public:
  Samples(int ranks, int count) : us_(static_cast<size_t>(ranks), std::vector<double>(static_cast<size_t>(count))) {}
  double& at(int rank, int sample) { return us_[static_cast<size_t>(rank)][static_cast<size_t>(sample)]; }
  const std::vector<double>& of(int rank) const { return us_[static_cast<size_t>(rank)]; }
  std::vector<double> longest() const {
    std::vector<double> all = us_[0];
    for (const auto& rank : us_) {
      for (size_t i = 0; i < all.size(); ++i) all[i] = std::max(all[i], rank[i]);
    }
    return all;
  }

 private:
  std::vector<std::vector<double>> us_;
};

// A training step over ranks beside one GPU's.
void measure_training(Ranks* ranks, const Shape& shape, const Settings& settings);

// Collectives alone, for the model of docs/scaling.md.
void measure_link(Ranks* ranks, const Settings& settings);

}  // namespace isobit::nccl::bench
