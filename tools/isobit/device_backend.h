// The CUDA half of device.h: device_cuda.cpp, or device_none.cpp in a build without CUDA, where every call throws.
#pragma once

#include "device.h"

namespace isobit::cli::cuda {

std::shared_ptr<void> allocate(int32_t device, size_t bytes);
void fill(int32_t device, void* data, int byte, size_t bytes);
void upload(int32_t device, void* data, const void* host, size_t bytes);
void download(int32_t device, const void* data, void* host, size_t bytes);
void synchronise(int32_t device);
std::vector<double> time_runs(int32_t device, const TimingOptions& options, const std::function<void(void*)>& body);
std::string driver();
DeviceFacts facts(int32_t device);
void copy(int32_t device, void* to, const void* from, size_t bytes, void* stream);
bool launch(int32_t device, const void* kernel, const LaunchGrid& grid, void** arguments);

}  // namespace isobit::cli::cuda
