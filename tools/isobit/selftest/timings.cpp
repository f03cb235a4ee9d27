#include "selftest/timings.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "arrays.h"
#include "bench/bench.h"

namespace isobit::cli {
namespace {

struct Sizes {
  const char* name;  // of the timing
  Shape shape;
};

// A few milliseconds on one core; a few on the slowest GPU that a kernel is built for; what the figures are about.
const std::vector<Sizes>& sizes_for(Place place, bool quick) {
  static const std::vector<Sizes> cpu = {
      {"linear_logp_forward", {{"N", 16}, {"H", 512}, {"V", 4096}}},
      {"linear_logp_forward_backward", {{"N", 16}, {"H", 256}, {"V", 2048}}},
      {"geglu_forward", {{"rows", 64}, {"cols", 11008}}},
      {"geglu_backward", {{"rows", 64}, {"cols", 11008}}},
      {"nvfp4_quantize", {{"M", 64}, {"K", 2048}}},
      {"nvfp4_geglu", {{"M", 16}, {"K", 512}, {"I", 512}}},
      {"nvfp4_linear", {{"M", 16}, {"N", 1024}, {"K", 512}}},
  };
  static const std::vector<Sizes> small = {
      {"linear_logp_forward", {{"N", 256}, {"H", 1024}, {"V", 8192}}},
      {"linear_logp_forward_backward", {{"N", 256}, {"H", 1024}, {"V", 8192}}},
      {"geglu_forward", {{"rows", 1024}, {"cols", 11008}}},
      {"geglu_backward", {{"rows", 1024}, {"cols", 11008}}},
      {"nvfp4_quantize", {{"M", 784}, {"K", 2048}}},
      {"nvfp4_geglu", {{"M", 128}, {"K", 1024}, {"I", 4096}}},
      {"nvfp4_linear", {{"M", 128}, {"N", 1024}, {"K", 4096}}},
  };
  static const std::vector<Sizes> large = {
      {"linear_logp_forward", {{"N", 1}, {"H", 2048}, {"V", 65536}}},
      {"linear_logp_forward", {{"N", 2048}, {"H", 2048}, {"V", 65536}}},
      {"linear_logp_forward_backward", {{"N", 1024}, {"H", 2048}, {"V", 32768}}},
      {"geglu_forward", {{"rows", 4096}, {"cols", 14336}}},
      {"geglu_backward", {{"rows", 4096}, {"cols", 14336}}},
      {"nvfp4_quantize", {{"M", 784}, {"K", 2048}}},
      {"nvfp4_quantize", {{"M", 8192}, {"K", 4096}}},
      {"nvfp4_geglu", {{"M", 16}, {"K", 2048}, {"I", 16384}}},
      {"nvfp4_geglu", {{"M", 784}, {"K", 2048}, {"I", 16384}}},
      {"nvfp4_geglu", {{"M", 968}, {"K", 2048}, {"I", 16384}}},
      {"nvfp4_linear", {{"M", 784}, {"N", 2048}, {"K", 16384}}},
  };
  return place.type == ISOBIT_CPU ? cpu : quick ? small : large;
}

CopySpeed time_copy(Place place) {
  CopySpeed copy;
  const size_t half = size_t{place.type == ISOBIT_CPU ? 32u : 256u} << 20;
  const Buffer from(place, half), to(place, half);
  from.fill(1);
  to.fill(2);
  copy.bytes = 2.0 * static_cast<double>(half);
  copy.samples_us = time_runs(place, {.warmup = 2, .samples = 10}, [&](void* stream) {
    if (place.type == ISOBIT_CPU) {
      std::memcpy(to.data(), from.data(), half);
    } else {
      copy_on_device(place.id, to.data(), from.data(), half, stream);
    }
  });
  return copy;
}

// As many samples as a third of a second holds, 3 to 20.
TimingOptions options_for(double first_us) {
  const double fitting = 333e3 / std::max(first_us, 1.0);
  return {.warmup = fitting < 20 ? 0 : 3, .samples = static_cast<int>(std::clamp(fitting, 3.0, 20.0))};
}

Timing time_kernel(const BenchOperator& row, const Kernel& kernel, Place place, const Shape& shape) {
  Timing timing;
  BenchRecord& record = timing.record;
  record.op = row.name;
  record.letters = row.letters;
  record.bench_case = {kernel, place, shape, ISOBIT_BF16, 0, 1};
  record.warm = place.type == ISOBIT_CPU;
  if (!kernel.usable) {
    timing.reason = kernel.reason;
    return timing;
  }
  try {
    const auto workload = row.make(record.bench_case);
    const auto body = [&](void* stream) { workload->run(stream); };
    const double first = time_runs(place, {.warmup = 1, .samples = 1}, body).at(0);
    record.samples_us = time_runs(place, options_for(first), body);
    record.bytes = workload->bytes();
    record.flops = workload->flops();
    record.peak_bytes = workload->peak_bytes();
  } catch (const std::runtime_error& error) {
    timing.reason = error.what();
  }
  return timing;
}

}  // namespace

double CopySpeed::bytes_per_us() const { return bytes / quantile(samples_us, 0.5); }

Timings time_kernels(const TimingRequest& request, const std::function<void(const Timing&)>& done) {
  Timings timings;
  timings.copy = time_copy(request.place);
  for (const Sizes& sizes : sizes_for(request.place, request.quick)) {
    const auto row = std::find_if(bench_operators().begin(), bench_operators().end(),
                                  [&](const BenchOperator& o) { return std::strcmp(o.name, sizes.name) == 0; });
    for (const Kernel& kernel : distinct_kernels(row->op)) {
      if (kernel.place() != request.place.type) continue;
      timings.kernels.push_back(time_kernel(*row, kernel, request.place, sizes.shape));
      done(timings.kernels.back());
    }
  }
  return timings;
}

double share_of_copy(const CopySpeed& copy, const BenchRecord& record) {
  return record.bytes / copy.bytes_per_us() / quantile(record.samples_us, 0.5);
}

nlohmann::ordered_json describe_timings(const Timings& timings) {
  nlohmann::ordered_json out = {{"copy",
                                 {{"bytes", timings.copy.bytes},
                                  {"samples_us", timings.copy.samples_us},
                                  {"median_us", quantile(timings.copy.samples_us, 0.5)},
                                  {"gb_per_s", timings.copy.bytes_per_us() * 1e-3}}},
                                {"kernels", nlohmann::ordered_json::array()}};
  for (const Timing& timing : timings.kernels) {
    if (timing.reason.empty()) {
      nlohmann::ordered_json line = to_json(timing.record);
      line["share_of_copy"] = share_of_copy(timings.copy, timing.record);
      out["kernels"].push_back(std::move(line));
    } else {
      nlohmann::ordered_json shape;
      for (const std::string& letter : timing.record.letters) shape[letter] = timing.record.bench_case.shape.at(letter);
      out["kernels"].push_back({{"op", timing.record.op},
                                {"kernel", timing.record.bench_case.kernel.name},
                                {"shape", shape},
                                {"state", "unsupported"},
                                {"reason", timing.reason}});
    }
  }
  return out;
}

}  // namespace isobit::cli
