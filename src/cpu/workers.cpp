#include "cpu/workers.h"

#include <pthread.h>

#include <atomic>

namespace isobit::cpu {
namespace {

std::atomic<bool> is_child{false};

}  // namespace

void watch_forks() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { is_child.store(true, std::memory_order_relaxed); });
  static_cast<void>(registered);  // without memory for it a child is on its own, as with every OpenMP program
}

bool lacks_workers() { return is_child.load(std::memory_order_relaxed); }

}  // namespace isobit::cpu
