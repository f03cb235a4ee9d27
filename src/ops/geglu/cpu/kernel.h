// The CPU backend of geglu: the same bits as the CUDA kernels.
#pragma once

#include "ops/geglu/contract.h"

namespace isobit::geglu::cpu {

Status run(const Params& params, void* stream);

}  // namespace isobit::geglu::cpu
