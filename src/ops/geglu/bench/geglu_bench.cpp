// Times the CUDA kernels of geglu against a device-to-device copy of the same bytes and against a bare load/store
// kernel, in alternating pairs with a cold L2. Prints one JSON line a measurement.
//
//   geglu_bench table DTYPE      separate contiguous tensors, all shapes of the operator page, both directions
//   geglu_bench layouts          bf16: stacked, interleaved, padded rows, odd widths that are not contiguous
//   geglu_bench sweep [ROWS]     bf16: column tiles x warps, widths 4096 to 29568; 8192 rows
//   geglu_bench schedules        bf16: row and tile forced
//   geglu_bench profile KERNEL   one backward pass of 8192 x 14336 in bf16, for a profiler; layouts: six passes
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "numerics/bf16.h"
#include "numerics/fp16.h"
#include "ops/geglu/bench/load_store.h"
#include "ops/geglu/bench/timing.h"
#include "ops/geglu/cuda/launch.h"

namespace isobit::geglu::bench {
namespace {

constexpr int kPairs = 21;
constexpr int64_t kMaxElements = int64_t{8192} * 131072 + 8192;
constexpr int64_t kWidths[] = {4096, 4097, 8192, 8193, 11008, 14336, 14337, 18944, 29568, 65536, 131072};

// Distances in elements: from row to row, and from gate to up within a row.
struct Layout {
  const char* name;
  int64_t input_stride, up_offset, step, out_stride;
};

class Bench {
 public:
  Bench(isobit_dtype dtype, std::string command)
      : dtype_(dtype), size_(dtype_bytes(dtype)), command_(std::move(command)) {
    for (void*& buffer : buffers_) {
      cudaMalloc(&buffer, static_cast<size_t>(kMaxElements * size_ + 256));
      fill(buffer);
    }
    cudaMalloc(&copy_[0], static_cast<size_t>(kMaxElements * size_ * 5 / 2));
    cudaMalloc(&copy_[1], static_cast<size_t>(kMaxElements * size_ * 5 / 2));
    cudaMemset(copy_[0], 1, static_cast<size_t>(kMaxElements * size_ * 5 / 2));
    if (cudaDeviceSynchronize() != cudaSuccess) std::fprintf(stderr, "allocation failed\n");
  }

  Params params(int64_t rows, int64_t columns, const Layout& layout, bool backward, numerics::Gelu gelu) const {
    Params p = {};
    p.rows = rows;
    p.columns = columns;
    p.dtype = dtype_;
    p.gelu = gelu;
    p.backward = backward;
    p.device = {ISOBIT_CUDA, 0};
    const auto pair = [&](void* first, void* second, Matrix* a, Matrix* b) {
      *a = {first, layout.input_stride};
      *b = {second, layout.input_stride};
      if (layout.up_offset != 0) b->data = static_cast<char*>(first) + layout.up_offset * size_;
    };
    pair(buffers_[0], buffers_[1], &p.gate, &p.up);
    pair(buffers_[3], buffers_[4], &p.d_gate, &p.d_up);
    p.out = {buffers_[2], layout.out_stride};
    p.input_step = p.gradient_step = static_cast<int32_t>(layout.step);
    return p;
  }

  static Layout separate(int64_t columns) { return {"", columns, 0, 1, columns}; }

  // Own work against the copy, and against the load/store kernel if wanted.
  void measure(const Params& p, const std::string& kernel, const Work& own, bool load_store) {
    const double tensor = static_cast<double>(p.rows) * static_cast<double>(p.columns) * static_cast<double>(size_);
    const double bytes = tensor * (p.backward ? 5 : 3);
    const Work copy = [&](cudaStream_t stream) {
      cudaMemcpyAsync(copy_[1], copy_[0], static_cast<size_t>(bytes / 2), cudaMemcpyDeviceToDevice, stream);
    };
    const Streams streams = {{p.gate.data, p.up.data, p.out.data},
                             {p.backward ? p.d_gate.data : p.out.data, p.d_up.data}};
    const Work bare = [&](cudaStream_t stream) {
      launch_load_store(streams, p.backward, static_cast<uint64_t>(tensor), stream);
    };
    Record record = {p.backward ? "geglu_backward" : "geglu_forward",
                     kernel,
                     dtype_ == ISOBIT_BF16   ? "bfloat16"
                     : dtype_ == ISOBIT_FP16 ? "float16"
                                             : "float32",
                     "copy",
                     command_,
                     p.rows,
                     p.columns,
                     bytes,
                     bytes,
                     {}};
    for (const bool against_bare : {false, true}) {
      if (against_bare && !load_store) continue;
      record.peer = against_bare ? "load-store" : "copy";
      record.pairs = timer_.alternate(own, against_bare ? bare : copy, kPairs);
      std::printf("%s\n", to_json(record).c_str());
    }
    std::fflush(stdout);
  }

  void table() {
    for (const int64_t rows : {1024, 8192}) {
      for (const int64_t columns : kWidths) {
        for (const bool backward : {false, true}) {
          for (const numerics::Gelu gelu : {numerics::Gelu::kTanh, numerics::Gelu::kErf}) {
            const Params p = params(rows, columns, separate(columns), backward, gelu);
            const bool tanh = gelu == numerics::Gelu::kTanh;
            measure(p, tanh ? "tile" : "tile erf", tile_work(p, {1024, dtype_ == ISOBIT_FP32 ? 8 : 4}), tanh);
          }
        }
      }
    }
  }

  void layouts() {
    constexpr int64_t kRows = 4096;
    for (const int64_t columns : {4096, 4097, 11008, 14336, 14337}) {
      const Layout all[] = {separate(columns),
                            {" stacked", 2 * columns, columns, 1, columns},
                            {" interleaved", 2 * columns, 1, 2, columns},
                            {" padded 64", columns + 64, 0, 1, columns + 64},
                            {" padded 1", columns + 1, 0, 1, columns + 1}};
      for (const Layout& layout : all) {
        for (const bool backward : {false, true}) {
          const Params p = params(kRows, columns, layout, backward, numerics::Gelu::kTanh);
          measure(p, std::string("tile") + layout.name, tile_work(p, {1024, 4}), false);
        }
      }
    }
  }

  void sweep(int64_t rows) {
    for (const int64_t columns : {4096, 11008, 14336, 18944, 29568}) {
      for (const int32_t tile : {256, 512, 1024, 2048, 4096}) {
        for (const int32_t warps : {4, 8}) {
          for (const bool backward : {false, true}) {
            const Params p = params(rows, columns, separate(columns), backward, numerics::Gelu::kTanh);
            measure(p, "tile " + std::to_string(tile) + "x" + std::to_string(warps), tile_work(p, {tile, warps}),
                    rows == 1024);
          }
        }
      }
    }
  }

  void schedules() {
    for (const int64_t columns : {64, 4096, 8192, 8193, 14336, 29568, 131072}) {
      for (const bool padded : {false, true}) {
        const int64_t stride = columns + (padded ? 64 : 0);
        const int64_t rows = columns == 64 ? 262144 : 8192;
        if (rows * stride > kMaxElements) continue;
        for (const bool backward : {false, true}) {
          const Params p = params(rows, columns, {"", stride, 0, 1, stride}, backward, numerics::Gelu::kTanh);
          const std::string suffix = padded ? " padded 64" : "";
          measure(p, "tile" + suffix, tile_work(p, {1024, 4}), false);
          measure(
              p, "row" + suffix, [p](cudaStream_t stream) { launch(cuda::launch_row(p, stream)); }, false);
        }
      }
    }
  }

  void profile(const std::string& kernel) {
    if (kernel == "layouts") return profile_layouts();
    const Params p = params(8192, 14336, separate(14336), true, numerics::Gelu::kTanh);
    launch(kernel == "row" ? cuda::launch_row(p, nullptr) : cuda::launch_tile(p, {1024, 4}, nullptr));
    cudaDeviceSynchronize();
  }

  // Forward and backward each: few rows, interleaved, and halves that are aligned in different ways.
  void profile_layouts() {
    constexpr int64_t kColumns = 14336, kOdd = 14337;
    const auto both = [&](int64_t rows, int64_t columns, const Layout& layout) {
      for (const bool backward : {false, true}) {
        launch(cuda::launch_tile(params(rows, columns, layout, backward, numerics::Gelu::kTanh), {1024, 4}, nullptr));
      }
    };
    both(1024, kColumns, separate(kColumns));
    both(4096, kColumns, {"", 2 * kColumns, 1, 2, kColumns});
    both(4096, kOdd, {"", 2 * kOdd, kOdd, 1, kOdd});
    cudaDeviceSynchronize();
  }

 private:
  static void launch(Status status) {
    if (!status.ok()) std::fprintf(stderr, "%s\n", last_error());
  }
  static Work tile_work(const Params& p, cuda::Tile tile) {
    return [p, tile](cudaStream_t stream) { launch(cuda::launch_tile(p, tile, stream)); };
  }

  // Normal values: a block made here, repeated over the buffer.
  void fill(void* buffer) const {
    constexpr size_t kBlock = size_t{8} << 20;
    static std::vector<char> block;
    if (block.empty()) {
      std::mt19937 engine(1);
      std::normal_distribution<float> normal;
      block.resize(kBlock * 4);
      for (size_t i = 0; i < kBlock; ++i) {
        const float x = normal(engine);
        const uint16_t half = dtype_ == ISOBIT_BF16 ? numerics::bf16_from_float(x) : numerics::fp16_from_float(x);
        std::memcpy(block.data() + i * static_cast<size_t>(size_),
                    dtype_ == ISOBIT_FP32 ? static_cast<const void*>(&x) : &half, static_cast<size_t>(size_));
      }
      block.resize(kBlock * static_cast<size_t>(size_));
    }
    const auto total = static_cast<size_t>(kMaxElements * size_);
    cudaMemcpy(buffer, block.data(), block.size(), cudaMemcpyHostToDevice);
    for (size_t done = block.size(); done < total; done += done) {
      cudaMemcpy(static_cast<char*>(buffer) + done, buffer, std::min(done, total - done), cudaMemcpyDeviceToDevice);
    }
  }

  isobit_dtype dtype_;
  int64_t size_;
  std::string command_;
  void* buffers_[5] = {};
  void* copy_[2] = {};
  Timer timer_;
};

int run(const std::string& mode, const std::string& argument) {
  isobit_dtype dtype = ISOBIT_BF16;
  if (argument == "fp16") dtype = ISOBIT_FP16;
  if (argument == "fp32") dtype = ISOBIT_FP32;
  Bench bench(dtype, "geglu_bench " + mode + (argument.empty() ? "" : " " + argument));
  if (mode == "table") bench.table();
  if (mode == "layouts") bench.layouts();
  if (mode == "sweep") bench.sweep(argument.empty() ? 8192 : std::stoll(argument));
  if (mode == "schedules") bench.schedules();
  if (mode == "profile") bench.profile(argument);
  return 0;
}

}  // namespace
}  // namespace isobit::geglu::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr,
                 "usage: geglu_bench table bf16|fp16|fp32 | layouts | sweep [ROWS] | schedules |\n"
                 "       geglu_bench profile row|tile|layouts\n");
    return 2;
  }
  return isobit::geglu::bench::run(argv[1], argc > 2 ? argv[2] : "");
}
