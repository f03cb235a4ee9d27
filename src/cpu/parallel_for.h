// Threads of the CPU backend: a thin layer over OpenMP that also builds without it.
#pragma once

#include <cstdint>

#include "cpu/float_environment.h"
#include "cpu/workers.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace isobit::cpu {

// The number of threads for a request: the request itself, or the OpenMP default when it is 0 or less.
inline int thread_count(int requested) {
#ifdef _OPENMP
  return requested > 0 ? requested : omp_get_max_threads();
#else
  static_cast<void>(requested);
  return 1;
#endif
}

// Calls body(index, thread) once for every index in [0, count), in any order, with thread in [0, threads). Every worker
// runs in the round-to-nearest environment and gives its own back. body must not throw.
template <class Body>
void parallel_for(int64_t count, int threads, const Body& body) {
#ifdef _OPENMP
  const bool parallel = threads > 1 && count > 1 && !lacks_workers();
  if (parallel) watch_forks();
#pragma omp parallel num_threads(threads) if (parallel)
  {
    const FloatEnvironment environment(Rounding::kNearest);
    const int thread = omp_get_thread_num();
#pragma omp for schedule(dynamic)
    for (int64_t index = 0; index < count; ++index) body(index, thread);
  }
#else
  static_cast<void>(threads);
  const FloatEnvironment environment(Rounding::kNearest);
  for (int64_t index = 0; index < count; ++index) body(index, 0);
#endif
}

}  // namespace isobit::cpu
