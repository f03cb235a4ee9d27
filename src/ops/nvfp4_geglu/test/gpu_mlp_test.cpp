// A whole MLP on a GPU, quantise, gate and up with GeGLU, down, as one graph: the CPU's bytes.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "isobit/nvfp4_geglu.h"
#include "isobit/nvfp4_linear.h"
#include "isobit/nvfp4_quantize.h"
#include "numerics/bf16.h"
#include "nvfp4/test/operands.h"

namespace isobit::nvfp4_geglu::test {
namespace {

// Memory of the host or of device 0, given back with the object; 256 bytes aligned.
class Place {
 public:
  explicit Place(Device device) : device_(device) {}
  ~Place() {
    for (void* memory : memory_) device_.type == ISOBIT_CUDA ? static_cast<void>(cudaFree(memory)) : std::free(memory);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  Device device() const { return device_; }
  void* make(size_t bytes) {
    void* memory = nullptr;
    const size_t size = (bytes + 511) / 256 * 256;
    if (device_.type == ISOBIT_CUDA) {
      EXPECT_EQ(cudaMalloc(&memory, size), cudaSuccess);
      EXPECT_EQ(cudaMemset(memory, 0xA7, size), cudaSuccess);
    } else {
      memory = std::aligned_alloc(256, size);
      std::memset(memory, 0xA7, size);
    }
    memory_.push_back(memory);
    return memory;
  }
  template <class T>
  void* copy_of(const std::vector<T>& values) {
    void* const to = make(values.size() * sizeof(T));
    EXPECT_EQ(cudaMemcpy(to, values.data(), values.size() * sizeof(T), cudaMemcpyDefault), cudaSuccess);
    return to;
  }
  std::string bytes(const void* from, size_t count) const {
    std::string out(count, 0);
    EXPECT_EQ(cudaMemcpy(out.data(), from, count, cudaMemcpyDefault), cudaSuccess);
    return out;
  }
  isobit_tensor tensor(void* data, isobit_dtype dtype, int64_t rows, int64_t columns) const {
    return {data, dtype, device_.type, device_.id, 2, {rows, columns}, {columns, 1}};
  }

 private:
  Device device_;
  std::vector<void*> memory_;
};

struct Sizes {
  int64_t rows, k, width;
};

// The three calls with everything that they need, ready to be made again.
class Mlp {
 public:
  Mlp(Place* place, const Sizes& s) : place_(place), sizes_(s) {
    isobit::test::Random random(7);
    std::vector<uint16_t> x(static_cast<size_t>(s.rows * s.k));
    for (uint16_t& value : x) {
      value = numerics::bf16_from_float(static_cast<float>(static_cast<int32_t>(random.bits())) * 0x1p-30f);
    }
    quantize_.x = place->tensor(place->copy_of(x), ISOBIT_BF16, s.rows, s.k);
    quantize_.global_scale.value = 1000;
    quantize_.out = matrix(s.rows, s.k, nullptr);
    geglu_.x = quantize_.out;
    geglu_.weight = matrix(2 * s.width, s.k, &random);
    geglu_.x_scale.value = 1e-3f;
    geglu_.gate_scale.value = 0.01f;
    geglu_.up_scale.value = 0.02f;
    geglu_.out_scale.value = 50;
    geglu_.out = matrix(s.rows, s.width, nullptr);
    geglu_.gelu = ISOBIT_GELU_TANH;
    linear_.x = geglu_.out;
    linear_.weight = matrix(s.k, s.width, &random);
    linear_.x_scale.value = 0.02f;
    linear_.out = place->tensor(place->make(static_cast<size_t>(2 * s.rows * s.k)), ISOBIT_BF16, s.rows, s.k);
    EXPECT_EQ(isobit_nvfp4_geglu_workspace(&geglu_, nullptr, &geglu_.workspace_bytes), ISOBIT_OK)
        << isobit_last_error();
    EXPECT_EQ(isobit_nvfp4_linear_workspace(&linear_, nullptr, &linear_.workspace_bytes), ISOBIT_OK);
    geglu_.workspace = place->make(geglu_.workspace_bytes);
    linear_.workspace = place->make(linear_.workspace_bytes);
  }
  void run(void* stream) const {
    ASSERT_EQ(isobit_nvfp4_quantize(&quantize_, stream), ISOBIT_OK) << isobit_last_error();
    ASSERT_EQ(isobit_nvfp4_geglu(&geglu_, stream), ISOBIT_OK) << isobit_last_error();
    ASSERT_EQ(isobit_nvfp4_linear(&linear_, stream), ISOBIT_OK) << isobit_last_error();
  }
  std::string out() const { return place_->bytes(linear_.out.data, static_cast<size_t>(2 * sizes_.rows * sizes_.k)); }

 private:
  // Random codes and scales around 1 if there is a generator.
  isobit_nvfp4_matrix matrix(int64_t rows, int64_t k, isobit::test::Random* random) {
    int64_t padded_rows = 0, blocks = 0;
    EXPECT_EQ(isobit_nvfp4_scales_shape(ISOBIT_NVFP4_128X4, rows, k, &padded_rows, &blocks), ISOBIT_OK);
    std::vector<uint8_t> codes(static_cast<size_t>(rows * k / 2)), scales(static_cast<size_t>(padded_rows * blocks));
    if (random != nullptr) {
      for (uint8_t& code : codes) code = static_cast<uint8_t>(random->bits());
      for (uint8_t& scale : scales) scale = static_cast<uint8_t>(0x30 + random->bits() % 16);
    }
    return {place_->tensor(place_->copy_of(codes), ISOBIT_UINT8, rows, k / 2),
            place_->tensor(place_->copy_of(scales), ISOBIT_UINT8, padded_rows, blocks), ISOBIT_NVFP4_128X4, 0};
  }

  Place* place_;
  Sizes sizes_;
  isobit_nvfp4_quantize_args quantize_ = ISOBIT_NVFP4_QUANTIZE_ARGS_INIT;
  isobit_nvfp4_geglu_args geglu_ = ISOBIT_NVFP4_GEGLU_ARGS_INIT;
  isobit_nvfp4_linear_args linear_ = ISOBIT_NVFP4_LINEAR_ARGS_INIT;
};

TEST(Nvfp4MlpGpu, OneGraphGivesTheCpusBytes) {
  for (const Sizes& sizes : {Sizes{1, 512, 1024}, Sizes{50, 1024, 1024}, Sizes{300, 512, 2048}}) {
    Place host({ISOBIT_CPU, 0}), device({ISOBIT_CUDA, 0});
    const Mlp cpu(&host, sizes), gpu(&device, sizes);
    cpu.run(nullptr);
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    gpu.run(stream);
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    for (int replay = 0; replay < 3; ++replay) {
      ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      EXPECT_TRUE(gpu.out() == cpu.out()) << sizes.rows << " rows, replay " << replay;
    }
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
  }
}

}  // namespace
}  // namespace isobit::nvfp4_geglu::test
