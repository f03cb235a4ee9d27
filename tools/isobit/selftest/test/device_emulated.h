// The interpreter in the place of a CUDA device: device_cuda.cpp's functions on an emulated runtime.
#pragma once

#include "ptx/runtime/emulated_runtime.h"

namespace isobit::cli {

// While it lives, the library and the command line of this thread see one device of this capability, which runs the PTX
// texts of this build. Races are looked for by the tests of the operators.
class EmulatedDevice {
 public:
  explicit EmulatedDevice(int capability);
  ~EmulatedDevice();
  EmulatedDevice(const EmulatedDevice&) = delete;
  EmulatedDevice& operator=(const EmulatedDevice&) = delete;

  const ptx::Report& report() const { return runtime_.report(); }

 private:
  ptx::EmulatedRuntime runtime_;
  ScopedRuntime scope_;
};

}  // namespace isobit::cli
