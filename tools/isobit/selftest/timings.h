// Times of every kernel of a place beside what a plain copy reaches there.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/record.h"
#include "device.h"

namespace isobit::cli {

struct CopySpeed {
  double bytes = 0;
  std::vector<double> samples_us;
  double bytes_per_us() const;  // read and written
};

struct Timing {
  BenchRecord record;
  std::string reason;  // why there is none, "" if there is
};

struct Timings {
  CopySpeed copy;
  std::vector<Timing> kernels;
};

struct TimingRequest {
  Place place;
  bool quick = false;
};

// The kernels that take the place's tensors; `done` gets every one as it comes.
Timings time_kernels(const TimingRequest& request, const std::function<void(const Timing&)>& done);

// How long a copy that reads and writes the kernel's bytes would take, over the kernel's time.
double share_of_copy(const CopySpeed& copy, const BenchRecord& record);

nlohmann::ordered_json describe_timings(const Timings& timings);

}  // namespace isobit::cli
