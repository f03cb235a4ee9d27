#include "ops/geglu/bench/timing.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace isobit::geglu::bench {
namespace {

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(error));
  std::exit(1);
}

}  // namespace

Timer::Timer() {
  check(cudaStreamCreate(&stream_));
  check(cudaEventCreate(&begin_));
  check(cudaEventCreate(&end_));
  check(cudaMalloc(&flush_, kFlushBytes));
}

Timer::~Timer() {
  cudaFree(flush_);
  cudaEventDestroy(begin_);
  cudaEventDestroy(end_);
  cudaStreamDestroy(stream_);
}

double Timer::once(const Work& work) {
  check(cudaMemsetAsync(flush_, 1, kFlushBytes, stream_));
  check(cudaEventRecord(begin_, stream_));
  work(stream_);
  check(cudaEventRecord(end_, stream_));
  check(cudaEventSynchronize(end_));
  float milliseconds = 0.0f;
  check(cudaEventElapsedTime(&milliseconds, begin_, end_));
  return 1000.0 * milliseconds;
}

Pairs Timer::alternate(const Work& own, const Work& peer, int pairs) {
  for (int i = 0; i < 3; ++i) once(own), once(peer);
  check(cudaGetLastError());
  Pairs result;
  for (int i = 0; i < pairs; ++i) {
    // The order within a pair alternates too.
    if (i % 2 == 0) result.own.push_back(once(own));
    result.peer.push_back(once(peer));
    if (i % 2 == 1) result.own.push_back(once(own));
  }
  return result;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double median_ratio(const Pairs& pairs) {
  std::vector<double> ratios;
  for (size_t i = 0; i < pairs.own.size(); ++i) ratios.push_back(pairs.own[i] / pairs.peer[i]);
  return median(ratios);
}

std::string to_json(const Record& r) {
  cudaDeviceProp device;
  int runtime_version = 0;
  check(cudaGetDeviceProperties(&device, 0));
  check(cudaRuntimeGetVersion(&runtime_version));
  std::string samples;
  for (const double us : r.pairs.own) {
    char text[24];
    std::snprintf(text, sizeof text, "%s%.2f", samples.empty() ? "" : ", ", us);
    samples += text;
  }
  const std::time_t now = std::time(nullptr);
  char date[16];
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  char line[4096];
  std::snprintf(line, sizeof line,
                "{\"op\": \"%s\", \"kernel\": \"%s\", \"shape\": {\"rows\": %lld, \"cols\": %lld}, \"dtype\": \"%s\", "
                "\"gpu\": \"%s\", \"samples_us\": [%s], \"median_us\": %.3f, \"bytes\": %.0f, \"flops\": null, "
                "\"peer\": \"%s\", \"peer_version\": \"CUDA runtime %d\", \"peer_median_us\": %.3f, \"ratio\": %.4f, "
                "\"peak_bytes\": %.0f, \"warm\": false, \"command\": \"%s\", \"date\": \"%s\"}",
                r.op.c_str(), r.kernel.c_str(), r.rows, r.columns, r.dtype.c_str(), device.name, samples.c_str(),
                median(r.pairs.own), r.bytes, r.peer.c_str(), runtime_version, median(r.pairs.peer),
                median_ratio(r.pairs), r.peak_bytes, r.command.c_str(), date);
  return line;
}

}  // namespace isobit::geglu::bench
