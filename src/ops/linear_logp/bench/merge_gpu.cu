// The merge alone, by the shape of its block: what MergeShape in cuda/launch.cu was chosen from. Slots are ones; they
// come from DRAM ("cold": the L2 was flushed) or stay where the last run left them ("warm").
//
//   linear_logp_bench_merge [samples]
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "ops/linear_logp/cuda/merge.cuh"

namespace isobit::linear_logp::cuda {
namespace {

constexpr size_t kFlushBytes = size_t{256} << 20;

void require(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  std::exit(1);
}

void* allocate(size_t bytes) {
  void* data = nullptr;
  require(cudaMalloc(&data, bytes));
  require(cudaMemset(data, 0, bytes));
  return data;
}

__global__ void fill_ones(uint32_t* words, int64_t count) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    words[i] = 0x3F800000u;
  }
}

// Arguments of a merge of `rows` rows as the tile kernel leaves it, or as the stream kernel does with at most 64 rows.
Job make_job(int64_t rows, int64_t vocab) {
  Job job{};
  job.p.rows = rows;
  job.p.vocab = vocab;
  job.p.count = vocab;
  job.p.targets = 1;
  job.p.target_row_stride = 1;
  job.p.target_column_stride = 1;
  job.p.target = allocate(static_cast<size_t>(rows) * 4);
  job.p.logp = {static_cast<float*>(allocate(static_cast<size_t>(rows) * 4)), 1, 1};
  job.p.lse = {static_cast<float*>(allocate(static_cast<size_t>(rows) * 4)), 1, 1};
  const bool alone = rows <= 64;
  const int64_t padded = (rows + 7) / 8 * 8;
  job.partials.kind = alone ? SlotKind::kLeaf : SlotKind::kTriple;
  const int64_t slots = count_slots(job.partials.kind, static_cast<int32_t>(divide_up(vocab, kLeaf)));
  job.partials.slot_stride = alone ? 1 : padded;
  job.partials.row_stride = alone ? slots : 1;
  job.partials.sums = static_cast<uint32_t*>(allocate(static_cast<size_t>(slots * padded) * 4));
  job.partials.exponents = static_cast<int32_t*>(allocate(4));
  job.target_logit = {static_cast<float*>(allocate(static_cast<size_t>(rows) * 4)), 1, 1};
  fill_ones<<<1024, 256>>>(job.partials.sums, slots * padded);
  require(cudaDeviceSynchronize());
  return job;
}

void release(const Job& job) {
  for (const void* data :
       {job.p.target, static_cast<const void*>(job.p.logp.data), static_cast<const void*>(job.p.lse.data),
        static_cast<const void*>(job.partials.sums), static_cast<const void*>(job.partials.exponents),
        static_cast<const void*>(job.target_logit.data)}) {
    require(cudaFree(const_cast<void*>(data)));
  }
}

template <class Shape>
void time_shape(const Job& job, int samples, void* flush) {
  cudaEvent_t start = nullptr;
  cudaEvent_t stop = nullptr;
  require(cudaEventCreate(&start));
  require(cudaEventCreate(&stop));
  for (const bool cold : {true, false}) {
    std::vector<float> times;
    for (int i = 0; i <= samples; ++i) {
      if (cold) require(cudaMemsetAsync(flush, 0, kFlushBytes));
      require(cudaEventRecord(start));
      merge_rows<false, Shape><<<static_cast<unsigned>(divide_up(job.p.rows, Shape::kRows)), Shape::kThreads>>>(job);
      require(cudaEventRecord(stop));
      require(cudaEventSynchronize(stop));
      float milliseconds = 0.0f;
      require(cudaEventElapsedTime(&milliseconds, start, stop));
      if (i > 0) times.push_back(1e3f * milliseconds);
    }
    std::sort(times.begin(), times.end());
    std::printf(
        "{\"op\":\"linear_logp_merge\",\"N\":%lld,\"V\":%lld,\"rows\":%d,\"threads\":%d,\"blocks\":%d,"
        "\"warm\":%s,\"median_us\":%.2f,\"least_us\":%.2f}\n",
        static_cast<long long>(job.p.rows), static_cast<long long>(job.p.vocab), Shape::kRows, Shape::kThreads,
        Shape::kBlocks, cold ? "false" : "true", times[times.size() / 2], times[0]);
  }
  require(cudaEventDestroy(start));
  require(cudaEventDestroy(stop));
}

void run(int64_t rows, int64_t vocab, int samples, void* flush) {
  const Job job = make_job(rows, vocab);
  if (rows <= 64) {
    time_shape<MergeShape<1, 128, 4, 256>>(job, samples, flush);
    time_shape<MergeShape<1, 256, 3, 256>>(job, samples, flush);
    time_shape<MergeShape<1, 512, 2, 256>>(job, samples, flush);
  } else {
    time_shape<MergeShape<8, 256, 3, 256>>(job, samples, flush);
    time_shape<MergeShape<8, 256, 4, 256>>(job, samples, flush);
    time_shape<MergeShape<8, 512, 2, 256>>(job, samples, flush);
    time_shape<MergeShape<4, 512, 2, 256>>(job, samples, flush);
    time_shape<MergeShape<4, 640, 1, 256>>(job, samples, flush);
    time_shape<MergeShape<16, 512, 2, 192>>(job, samples, flush);
  }
  release(job);
}

}  // namespace
}  // namespace isobit::linear_logp::cuda

int main(int argc, char** argv) {
  using isobit::linear_logp::cuda::run;
  const int samples = argc > 1 ? std::atoi(argv[1]) : 31;
  void* const flush = isobit::linear_logp::cuda::allocate(isobit::linear_logp::cuda::kFlushBytes);
  run(1, 151936, samples, flush);
  run(64, 151936, samples, flush);
  run(512, 151936, samples, flush);
  run(1024, 151936, samples, flush);
  run(4096, 32768, samples, flush);
  run(4096, 151936, samples, flush);
  run(8192, 128256, samples, flush);
  return 0;
}
