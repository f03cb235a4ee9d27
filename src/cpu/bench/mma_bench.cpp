// Multiply-accumulates per second and core of the exact engine, and of a plain fp32 GEMM with the same blocking.
// usage: cpu_mma_bench [repetitions]
//
// One thread, by the thread's processor time. The versions alternate within each repetition and the best and the median
// time of each is kept: the machine may be shared, and a disturbance hits them alike. Decoding of both operands is
// included.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cpu/bench/plain_gemm.h"
#include "cpu/mma/multiply_tile.h"
#include "cpu/simd_target.h"
#include "numerics/bf16.h"

namespace isobit::cpu::bench {
namespace {

struct Free {
  void operator()(void* p) const { std::free(p); }
};

template <class T>
std::unique_ptr<T, Free> aligned_memory(size_t bytes) {
  return std::unique_ptr<T, Free>(static_cast<T*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
}

std::vector<uint16_t> normal_elements(int64_t count, float sigma, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0f, sigma);
  std::vector<uint16_t> elements(static_cast<size_t>(count));
  for (uint16_t& element : elements) element = numerics::bf16_from_float(normal(random));
  return elements;
}

double thread_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The processor's name, as Linux gives it on x86.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

std::string today() {
  char text[16];
  const std::time_t now = std::time(nullptr);
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

struct Version {
  const char* name;
  SimdTarget target;
  bool exact;
  std::vector<double> seconds;
};

class Problem {
 public:
  Problem(int64_t n, int64_t v, int64_t k)
      : n_(n),
        v_(v),
        k_(k),
        rows_(normal_elements(n * k, 1.0f, 1)),
        columns_(normal_elements(v * k, 0.02f, 2)),
        result_(static_cast<size_t>(n * v)),
        decoded_(aligned_memory<char>(decoded_rows_bytes(n, k))),
        scratch_(aligned_memory<char>(tile_scratch_bytes(n))),
        floats_(aligned_memory<float>(static_cast<size_t>(n * k) * sizeof(float))),
        sums_(aligned_memory<float>(static_cast<size_t>(n) * kTileColumns * sizeof(float))) {}

  void run(const Version& version) {
    if (version.exact) {
      force_simd_target(version.target);
      run_exact();
    } else {
      const PlainProblem plain = {
          rows_.data(), columns_.data(), result_.data(), floats_.get(), sums_.get(), n_, v_, k_};
      version.target == SimdTarget::kAvx512 ? plain_gemm_avx512(plain) : plain_gemm_avx2(plain);
    }
  }

  double multiply_accumulates() const { return static_cast<double>(n_) * static_cast<double>(v_ * k_); }

 private:
  void run_exact() {
    const Matrix16 columns = {columns_.data(), v_, k_, k_, Format::kBf16};
    decode_rows({rows_.data(), n_, k_, k_, Format::kBf16}, 0, n_, decoded_.get());
    for (int64_t j = 0; j < v_; j += kTileColumns) {
      multiply_tile(decoded_.get(), n_, columns, j, kTileColumns, result_.data() + j, v_, scratch_.get());
    }
  }

  int64_t n_;
  int64_t v_;
  int64_t k_;
  std::vector<uint16_t> rows_;
  std::vector<uint16_t> columns_;
  std::vector<float> result_;
  std::unique_ptr<char, Free> decoded_;
  std::unique_ptr<char, Free> scratch_;
  std::unique_ptr<float, Free> floats_;
  std::unique_ptr<float, Free> sums_;
};

std::vector<Version> versions() {
  std::vector<Version> all;
  for (const SimdTarget target : {SimdTarget::kAvx512, SimdTarget::kAvx2}) {
    if (!simd_target_supported(target)) continue;
    all.push_back({"exact", target, true, {}});
    all.push_back({"plain", target, false, {}});
  }
  return all;
}

void measure(int64_t n, int64_t k, int repetitions) {
  constexpr int64_t kColumns = 2048;
  Problem problem(n, kColumns, k);
  std::vector<Version> all = versions();
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    for (Version& version : all) {
      const double begin = thread_seconds();
      problem.run(version);
      version.seconds.push_back(thread_seconds() - begin);
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<double>& seconds = all[i].seconds;
    std::sort(seconds.begin(), seconds.end());
    const double scale = problem.multiply_accumulates() * 1e-9;
    const double best = scale / seconds.front();
    const double median = scale / seconds[seconds.size() / 2];
    const char* const target = simd_target_name(all[i].target);
    std::fprintf(stderr, "%-6s %-7s N=%-3lld K=%-5lld  best %7.2f  median %7.2f G MAC/s", all[i].name, target,
                 static_cast<long long>(n), static_cast<long long>(k), best, median);
    if (!all[i].exact) {
      const double exact = scale / all[i - 1].seconds.front();
      std::fprintf(stderr, "  plain/exact %.2f", best / exact);
    }
    std::fprintf(stderr, "\n");
    std::printf(
        "{\"op\": \"cpu_mma\", \"kernel\": \"%s\", \"simd\": \"%s\", \"shape\": {\"N\": %lld, \"V\": %lld, \"K\": "
        "%lld}, "
        "\"dtype\": \"bfloat16\", \"threads\": 1, \"best_gmac_per_s\": %.3f, \"median_gmac_per_s\": %.3f, "
        "\"cpu\": \"%s\", \"command\": \"cpu_mma_bench %d\", \"date\": \"%s\"}\n",
        all[i].exact ? "exact" : "plain-fp32", target, static_cast<long long>(n), static_cast<long long>(kColumns),
        static_cast<long long>(k), best, median, processor_name().c_str(), repetitions, today().c_str());
  }
}

}  // namespace
}  // namespace isobit::cpu::bench

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 15;
  for (const int64_t k : {640, 4096}) {
    for (const int64_t n : {1, 8, 64}) isobit::cpu::bench::measure(n, k, repetitions);
  }
  return 0;
}
