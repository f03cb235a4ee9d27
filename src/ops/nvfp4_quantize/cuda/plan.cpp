#include "ops/nvfp4_quantize/cuda/plan.h"

#include <algorithm>
#include <bit>

namespace isobit::nvfp4_quantize::cuda {
namespace {

bool aligned(const void* data, int64_t row_bytes, uint64_t to) {
  return reinterpret_cast<uintptr_t>(data) % to == 0 && static_cast<uint64_t>(row_bytes) % to == 0;
}

}  // namespace

Job job_of(const Params& params) {
  Job job = {};
  job.x = static_cast<const char*>(params.x);
  job.x_row_bytes = params.x_stride * dtype_bytes(params.dtype);
  job.codes = params.out.codes;
  job.codes_row_bytes = params.out.row_stride;
  job.scales = params.out.scales;
  job.global_device = params.global.device;
  job.global = params.global.value;
  job.layout = params.out.layout;
  job.rows = static_cast<uint32_t>(params.rows);
  job.padded_rows = static_cast<uint32_t>(params.padded_rows());
  job.blocks = static_cast<uint32_t>(params.blocks());
  job.padded_blocks = static_cast<uint32_t>(params.padded_blocks());
  const uint32_t row_threads = std::min(kThreads, std::bit_ceil(job.padded_blocks));
  job.row_threads_log2 = static_cast<uint32_t>(std::countr_zero(row_threads));
  job.pieces = (job.padded_blocks + row_threads - 1) / row_threads;
  job.vector_loads = aligned(job.x, job.x_row_bytes, 16);
  job.vector_stores = aligned(job.codes, job.codes_row_bytes, 8);
  return job;
}

uint64_t grid_of(const Job& job) {
  const uint64_t rows = kThreads >> job.row_threads_log2;
  return (job.padded_rows + rows - 1) / rows * job.pieces;
}

}  // namespace isobit::nvfp4_quantize::cuda
