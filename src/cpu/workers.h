// Whether this process has the workers of its OpenMP runtime. GNU's waits for ever in a child of fork() for those of
// the parent; a child therefore goes on with one thread, which changes no bit.
#pragma once

namespace isobit::cpu {

// Before workers are asked for: from then on a child of fork() is known to lack them.
void watch_forks();

// Whether this process is such a child.
bool lacks_workers();

}  // namespace isobit::cpu
