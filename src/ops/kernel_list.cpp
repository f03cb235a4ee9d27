#include "ops/kernel_list.h"

#include "ops/geglu/dispatch.h"
#include "ops/linear_logp/dispatch.h"
#include "ops/nvfp4_geglu/dispatch.h"
#include "ops/nvfp4_linear/dispatch.h"
#include "ops/nvfp4_quantize/dispatch.h"

namespace isobit {
namespace {

using KernelAt = const KernelInfo* (*)(int index);

constexpr KernelAt kOperators[] = {
    linear_logp::kernel_at, linear_logp::backward_kernel_at, geglu::kernel_at,
    nvfp4_geglu::kernel_at, nvfp4_linear::kernel_at,         nvfp4_quantize::kernel_at,
};

}  // namespace

const KernelInfo* kernel_info(int index) {
  for (const KernelAt at : kOperators) {
    int i = 0;
    for (; at(i) != nullptr; ++i) {
      if (i == index) return at(i);
    }
    index -= i;
  }
  return nullptr;
}

}  // namespace isobit
