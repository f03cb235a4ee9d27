// Alternating measurements on the device and their JSON lines.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <vector>

namespace isobit::geglu::bench {

using Work = std::function<void(cudaStream_t)>;

// Samples in microseconds of two pieces of work that take turns, the cache flushed before each.
struct Pairs {
  std::vector<double> own, peer;
};

class Timer {
 public:
  Timer();
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  Pairs alternate(const Work& own, const Work& peer, int pairs);

 private:
  double once(const Work& work);
  static constexpr size_t kFlushBytes = size_t{256} << 20;
  cudaStream_t stream_;
  cudaEvent_t begin_, end_;
  void* flush_;
};

double median(std::vector<double> values);

// Median of the ratios own / peer of each pair.
double median_ratio(const Pairs& pairs);

struct Record {
  std::string op, kernel, dtype, peer, command;
  long long rows, columns;
  double bytes, peak_bytes;
  Pairs pairs;
};

// One line with the fields of docs/results.
std::string to_json(const Record& record);

}  // namespace isobit::geglu::bench
