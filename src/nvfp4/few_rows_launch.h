// Host side of the kernels on nvfp4/few_rows.cuh and nvfp4/chain.cuh.
#pragma once

#include <cstdint>
#include <span>

#include "nvfp4/chain.h"
#include "nvfp4/few_rows.h"
#include "nvfp4/wgmma_launch.h"

namespace isobit {

// One instantiation of a room's kernel.
struct Nvfp4FewVariant {
  const void* kernel;
  int tokens, rows, depth, threads;
  uint32_t shared_bytes;
  bool keeps_x;  // in shared memory, beside those bytes
};
template <class Config>
Nvfp4FewVariant nvfp4_few_variant(const void* kernel) {
  using Stage = typename Config::Stage;
  return {kernel, Config::kTokens, Stage::kRows, Stage::kDepth, Config::kThreads, Config::kSharedBytes, true};
}
template <class Config>
Nvfp4FewVariant nvfp4_chain_variant(const void* kernel) {
  using Stage = typename Config::Stage;
  return {kernel, Config::kTokens, Stage::kRows, Stage::kDepth, Config::kThreads, Config::kSharedBytes, false};
}

// Whether a product is one for these kernels, which need no workspace. For few_rows.cuh: rows of x that a block can
// keep. For chain.cuh: few rows of x, and so few weight rows that blocks of 16 are not more than a large GPU's
// multiprocessors; any K.
bool nvfp4_rows_are_few(int64_t rows, int64_t k);
bool nvfp4_is_chain(int64_t rows, int64_t columns);

// Variants are in ascending order of their rows of x. Of those with the least that suffice, the first whose largest
// share of the weight for a multiprocessor is the smallest; no result depends on it.
const Nvfp4FewVariant& choose_few_rows(std::span<const Nvfp4FewVariant> variants, int64_t rows, int64_t columns,
                                       int multiprocessors);

// Launches one of the variants, whose kernels take a tensor map and a Job; `job` is the room's, whose plan is filled
// in.
Status run_few_rows(const Nvfp4WgmmaCall& call, std::span<const Nvfp4FewVariant> variants, void* job,
                    device::Nvfp4FewPlan* plan, void* stream);

}  // namespace isobit
