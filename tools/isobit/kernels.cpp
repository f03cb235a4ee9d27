#include "kernels.h"

#include <algorithm>

namespace isobit::cli {

std::vector<Kernel> all_kernels() {
  std::vector<Kernel> kernels;
  for (int32_t i = 0; i < isobit_kernel_count(); ++i) {
    isobit_kernel_info info = {};
    info.struct_size = sizeof info;
    if (isobit_get_kernel_info(i, &info) != ISOBIT_OK) continue;
    kernels.push_back(
        {info.op, info.kernel, info.architectures, info.contract, info.built != 0, info.usable != 0, info.reason});
  }
  return kernels;
}

std::vector<Kernel> select_kernels(const std::string& op, const std::string& wanted) {
  std::vector<Kernel> selected;
  for (const Kernel& kernel : all_kernels()) {
    if (kernel.op != op) continue;
    const bool take = wanted.empty() ? kernel.usable : wanted == "all" || wanted == kernel.name;
    if (take) selected.push_back(kernel);
  }
  return selected;
}

std::vector<Kernel> distinct_kernels(const std::string& op) {
  std::vector<Kernel> distinct;
  for (Kernel& kernel : select_kernels(op, "all")) {
    const bool hidden = std::any_of(distinct.begin(), distinct.end(), [&](const Kernel& k) {
      return k.name == kernel.name && k.usable && kernel.usable;
    });
    if (!hidden) distinct.push_back(std::move(kernel));
  }
  return distinct;
}

}  // namespace isobit::cli
