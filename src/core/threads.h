// The limit on the number of threads that a CPU call asks for.
#pragma once

#include <cstdint>

#include "core/status.h"

namespace isobit {

// 0 stands for the default. An OpenMP runtime ends the process when it cannot start a thread.
inline Status check_threads(int32_t threads) {
  if (threads >= 0 && threads <= 1024) return Status();
  return refuse("threads", "0 <= threads <= 1024", "threads = %d", threads);
}

}  // namespace isobit
