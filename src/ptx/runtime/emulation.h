// For tests: runs launch code in the interpreter under every schedule with the race checker on.
#pragma once
#include <string>

#include "ptx/runtime/emulated_runtime.h"

namespace isobit::ptx {

struct ScheduleCase {
  const char* name;
  Schedule schedule;
  uint64_t seed;
};

constexpr ScheduleCase kScheduleCases[] = {
    {"eager", Schedule::kEager, 1},
    {"lazy", Schedule::kLazy, 1},
    {"random-1", Schedule::kRandom, 1},
    {"random-2", Schedule::kRandom, 2},
};

// Calls body(EmulatedRuntime&, const ScheduleCase&) once a schedule, with the interpreter as this thread's runtime. The
// body allocates its buffers from the runtime, calls launch code, compares bytes, and checks report().ok().
template <class Body>
void for_each_schedule(const std::string& ptx_folder, const EmulationOptions& options, Body&& body) {
  for (const ScheduleCase& c : kScheduleCases) {
    EmulationOptions with_schedule = options;
    with_schedule.machine.schedule = c.schedule;
    with_schedule.machine.seed = c.seed;
    EmulatedRuntime emulated(ptx_folder, with_schedule);
    const ScopedRuntime scope(&emulated);
    body(emulated, c);
  }
}

}  // namespace isobit::ptx
