// Records what a GPU makes of the conformance kernels: record_gpu FOLDER_OF_PTX FOLDER_OF_GOLDEN [CASE...], by default
// all cases. A fault ends the context: a case that faults hides those after it unless each has its own process. Needs
// a driver, and no CUDA library:
//   g++ -std=c++20 -O1 -I src -I CUDA/include src/ptx/test/conformance/record_gpu.cpp
//   src/ptx/test/conformance/cases.cpp -ldl
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "ptx/test/conformance/cases.h"

namespace isobit::ptx::conformance {
namespace {

void* driver_function(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  void* function = library ? dlsym(library, name) : nullptr;
  if (!function) {
    std::fprintf(stderr, "no driver function %s\n", name);
    std::exit(1);
  }
  return function;
}

// Calls a driver function by its exported name; a failure ends the program.
template <class Function, class... Args>
void call(const char* name, Args... args) {
  const CUresult result = reinterpret_cast<Function*>(driver_function(name))(args...);
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: CUresult %d\n", name, static_cast<int>(result));
  std::exit(1);
}

void encode(const Map& map, CUdeviceptr in, CUdeviceptr out, CUtensorMap* result) {
  if (!map.used) return;
  const cuuint64_t shape[2] = {map.columns, map.rows}, strides[1] = {map.row_bytes};
  const cuuint32_t box[2] = {map.box_columns, map.box_rows}, steps[2] = {1, 1};
  void* address = reinterpret_cast<void*>((map.over_output ? out : in) + map.byte_offset);
  call<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled", result, CU_TENSOR_MAP_DATA_TYPE_UINT16,
                                         cuuint32_t{2}, address, shape, strides, box, steps,
                                         CU_TENSOR_MAP_INTERLEAVE_NONE, static_cast<CUtensorMapSwizzle>(map.swizzle),
                                         CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

std::vector<uint32_t> run(const Case& c, const std::string& folder) {
  CUmodule module;
  CUfunction function;
  const std::string text = read_file(folder + "/" + c.file);
  call<decltype(cuModuleLoadData)>("cuModuleLoadData", &module, text.c_str());
  call<decltype(cuModuleGetFunction)>("cuModuleGetFunction", &function, module, c.kernel);
  const std::vector<uint32_t> input = input_of(c);
  std::vector<uint32_t> output = output_of(c);
  CUdeviceptr in, out;
  call<decltype(cuMemAlloc)>("cuMemAlloc_v2", &in, input.size() * 4);
  call<decltype(cuMemAlloc)>("cuMemAlloc_v2", &out, output.size() * 4);
  call<decltype(cuMemcpyHtoD)>("cuMemcpyHtoD_v2", in, static_cast<const void*>(input.data()), input.size() * 4);
  call<decltype(cuMemcpyHtoD)>("cuMemcpyHtoD_v2", out, static_cast<const void*>(output.data()), output.size() * 4);
  alignas(64) CUtensorMap map_a = {}, map_b = {};
  encode(c.map_a, in, out, &map_a);
  encode(c.map_b, in, out, &map_b);
  CUlaunchAttribute attribute = {};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim = {c.cluster, 1, 1};
  CUlaunchConfig config = {c.grid, 1, 1, c.block, 1, 1, 0, nullptr, &attribute, c.cluster > 1 ? 1u : 0u};
  void* parameters[] = {&map_a, &map_b, &in, &out};
  call<decltype(cuLaunchKernelEx)>("cuLaunchKernelEx", static_cast<const CUlaunchConfig*>(&config), function,
                                   static_cast<void**>(parameters), static_cast<void**>(nullptr));
  call<decltype(cuCtxSynchronize)>("cuCtxSynchronize");
  call<decltype(cuMemcpyDtoH)>("cuMemcpyDtoH_v2", static_cast<void*>(output.data()), out, output.size() * 4);
  call<decltype(cuMemFree)>("cuMemFree_v2", in);
  call<decltype(cuMemFree)>("cuMemFree_v2", out);
  return output;
}

bool is_wanted(const char* name, int argc, char** argv) {
  for (int i = 3; i < argc; ++i) {
    if (std::strcmp(argv[i], name) == 0) return true;
  }
  return argc <= 3;
}

}  // namespace
}  // namespace isobit::ptx::conformance

int main(int argc, char** argv) {
  using namespace isobit::ptx::conformance;
  if (argc < 3) {
    std::fprintf(stderr, "usage: record_gpu FOLDER_OF_PTX FOLDER_OF_GOLDEN [CASE...]\n");
    return 2;
  }
  CUdevice device;
  CUcontext context;
  call<decltype(cuInit)>("cuInit", 0u);
  call<decltype(cuDeviceGet)>("cuDeviceGet", &device, 0);
  call<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain", &context, device);
  call<decltype(cuCtxSetCurrent)>("cuCtxSetCurrent", context);
  for (const Case& c : cases()) {
    if (!is_wanted(c.name, argc, argv)) continue;
    const std::vector<uint32_t> out = run(c, argv[1]);
    std::ofstream file(std::string(argv[2]) + "/" + c.name + ".bin", std::ios::binary);
    file.write(reinterpret_cast<const char*>(out.data()), static_cast<std::streamsize>(out.size() * 4));
    std::printf("%s: %zu words\n", c.name, out.size());
  }
  return 0;
}
