// mma_probe [--out DIR]: computes every case of golden.h on the GPU with every instruction form, counts the outputs
// that differ from the scalar model and from mma.sync, and writes the golden files. Exit status 0: no difference
// anywhere.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "device/mma_chains.cuh"
#include "numerics/bits.h"
#include "numerics/hopper_mma.h"
#include "numerics/test/golden.h"
#include "numerics/test/golden_inputs.h"

namespace isobit::numerics::probe {
namespace {

using device::mma_sync_chain;
using device::wgmma_chain;
using Problem = device::MmaChains;

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "mma_probe: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(2);
}

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values) : size_(values.size()) {
    check(cudaMalloc(&data_, size_ * sizeof(T)), "cudaMalloc");
    check(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice), "copy to the device");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  T* data() const { return data_; }
  std::vector<T> read() const {
    std::vector<T> values(size_);
    check(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost), "copy to the host");
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t size_;
};

template <class Format, int kN>
void launch_wgmma(const Problem& p) {
  const dim3 grid(static_cast<unsigned>((p.n + kN - 1) / kN), static_cast<unsigned>(p.m / 64));
  wgmma_chain<Format, kN><<<grid, 128>>>(p);
}

// Runs form i of golden::kForms. The forms 1 to 6 take the 64 columns of the case as the instruction's 64 rows, so that
// n up to 256 fits; the last takes them as its n.
template <class Format>
void launch(int form, const Problem& rows_first, const Problem& columns_first) {
  switch (form) {
    case 0: {
      const dim3 grid(static_cast<unsigned>(rows_first.n / 8), static_cast<unsigned>(rows_first.m / 16));
      mma_sync_chain<Format><<<grid, 32>>>(rows_first);
      break;
    }
    case 1:
      launch_wgmma<Format, 8>(columns_first);
      break;
    case 2:
      launch_wgmma<Format, 16>(columns_first);
      break;
    case 3:
      launch_wgmma<Format, 32>(columns_first);
      break;
    case 4:
      launch_wgmma<Format, 64>(columns_first);
      break;
    case 5:
      launch_wgmma<Format, 192>(columns_first);
      break;
    case 6:
      launch_wgmma<Format, 256>(columns_first);
      break;
    default:
      launch_wgmma<Format, 64>(rows_first);
      break;
  }
  check(cudaGetLastError(), "launch");
  check(cudaDeviceSynchronize(), golden::kForms[form]);
}

template <class Format>
std::vector<float> model_outputs(const golden::ChainCase& chain, const golden::Inputs& inputs) {
  std::vector<float> z = inputs.c;
  for (int r = 0; r < golden::kRows; ++r) {
    for (int n = 0; n < golden::kColumns; ++n) {
      z[static_cast<size_t>(r * golden::kColumns + n)] =
          hopper_chain<Format>(inputs.c[static_cast<size_t>(r * golden::kColumns + n)],
                               inputs.a.data() + static_cast<ptrdiff_t>(r) * chain.k,
                               inputs.b.data() + static_cast<ptrdiff_t>(n) * chain.k, chain.k);
    }
  }
  return z;
}

size_t count_differences(const std::vector<float>& x, const std::vector<float>& y) {
  size_t count = 0;
  for (size_t i = 0; i < x.size(); ++i) count += float_bits(x[i]) != float_bits(y[i]);
  return count;
}

// Says where the first differences are, so that one run tells which rule fails.
void print_first_differences(const std::vector<float>& device, const std::vector<float>& model) {
  int left = 8;
  for (size_t i = 0; i < device.size() && left > 0; ++i) {
    if (float_bits(device[i]) == float_bits(model[i])) continue;
    std::printf("    row %zu column %zu: device %08x, model %08x\n", i / golden::kColumns, i % golden::kColumns,
                float_bits(device[i]), float_bits(model[i]));
    --left;
  }
}

bool write_file(const std::string& path, const golden::FileHeader& header, const std::vector<float>& z) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  const bool written = std::fwrite(&header, sizeof(header), 1, file) == 1 &&
                       std::fwrite(z.data(), sizeof(float), z.size(), file) == z.size();
  return std::fclose(file) == 0 && written;
}

// Returns whether every form gave the model's bytes.
template <class Format>
bool run_case(const golden::ChainCase& chain, const char* directory) {
  const golden::Inputs inputs = golden::make_inputs<Format>(chain);
  const std::vector<float> model = model_outputs<Format>(chain, inputs);
  const DeviceArray<uint16_t> a(inputs.a);
  const DeviceArray<uint16_t> b(inputs.b);
  const DeviceArray<float> c(inputs.c);
  std::vector<float> first;
  uint32_t equal_forms = 0;
  bool all_equal = true;
  for (int form = 0; form < golden::kFormCount; ++form) {
    const DeviceArray<float> d(std::vector<float>(inputs.c.size(), bits_float(0xDEADBEEFu)));
    const Problem rows_first{a.data(),         b.data(), c.data(),         d.data(), golden::kRows,
                             golden::kColumns, chain.k,  golden::kColumns, 1};
    const Problem columns_first{b.data(),      a.data(), c.data(), d.data(),        golden::kColumns,
                                golden::kRows, chain.k,  1,        golden::kColumns};
    launch<Format>(form, rows_first, columns_first);
    const std::vector<float> z = d.read();
    if (form == 0) first = z;
    const size_t from_model = count_differences(z, model);
    const size_t from_first = count_differences(z, first);
    std::printf("%-20s %-38s %zu outputs: %zu differ from the model, %zu from mma.sync\n", chain.name,
                golden::kForms[form], z.size(), from_model, from_first);
    if (from_model != 0) print_first_differences(z, model);
    all_equal = all_equal && from_model == 0;
    if (from_first == 0) equal_forms |= 1u << form;
  }
  if (directory == nullptr) return all_equal;
  const std::string path = std::string(directory) + "/" + chain.name + ".bin";
  if (!write_file(path, golden::header_of(chain, equal_forms), first)) {
    std::fprintf(stderr, "mma_probe: cannot write %s\n", path.c_str());
    std::exit(2);
  }
  return all_equal;
}

}  // namespace
}  // namespace isobit::numerics::probe

int main(int argc, char** argv) {
  using namespace isobit::numerics;
  const bool writes = argc == 3 && std::strcmp(argv[1], "--out") == 0;
  if (argc != 1 && !writes) {
    std::fprintf(stderr, "usage: mma_probe [--out DIR]\n");
    return 2;
  }
  cudaDeviceProp properties;
  probe::check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  std::printf("%s, compute capability %d.%d\n", properties.name, properties.major, properties.minor);
  bool all_equal = true;
  for (const golden::ChainCase& chain : golden::kCases) {
    const char* directory = writes ? argv[2] : nullptr;
    all_equal =
        (chain.fp16 ? probe::run_case<Fp16>(chain, directory) : probe::run_case<Bf16>(chain, directory)) && all_equal;
  }
  std::printf(all_equal ? "every form gives the model's bytes\n" : "DIFFERENCES FOUND\n");
  return all_equal ? 0 : 1;
}
