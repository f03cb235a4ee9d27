// Stands in for device_cuda.cpp in a build without CUDA.
#include <stdexcept>

#include "device_backend.h"

namespace isobit::cli::cuda {
namespace {

[[noreturn]] void refuse() { throw std::runtime_error("this build has no CUDA"); }

}  // namespace

std::shared_ptr<void> allocate(int32_t, size_t) { refuse(); }
void fill(int32_t, void*, int, size_t) { refuse(); }
void upload(int32_t, void*, const void*, size_t) { refuse(); }
void download(int32_t, const void*, void*, size_t) { refuse(); }
void synchronise(int32_t) { refuse(); }
std::vector<double> time_runs(int32_t, const TimingOptions&, const std::function<void(void*)>&) { refuse(); }
DeviceFacts facts(int32_t) { refuse(); }
void copy(int32_t, void*, const void*, size_t, void*) { refuse(); }
bool launch(int32_t, const void*, const LaunchGrid&, void**) { refuse(); }
std::string driver() { return "none (built without CUDA)"; }

}  // namespace isobit::cli::cuda
