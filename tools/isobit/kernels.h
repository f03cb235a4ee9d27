// The table of kernels as the public header gives it.
#pragma once

#include <isobit/isobit.h>

#include <string>
#include <vector>

namespace isobit::cli {

struct Kernel {
  std::string op;
  std::string name;
  std::string architectures;
  std::string contract;
  bool built = false;
  bool usable = false;
  std::string reason;
  // Where its tensors live: rows whose name starts with "cpu" take CPU tensors, all others CUDA tensors.
  isobit_device_type place() const { return name.starts_with("cpu") ? ISOBIT_CPU : ISOBIT_CUDA; }
};

std::vector<Kernel> all_kernels();

// Rows of one operator that `wanted` selects: a name, "all", or "" for every usable row.
std::vector<Kernel> select_kernels(const std::string& op, const std::string& wanted);

// All rows of one operator, but of several usable ones of a name the first: that is the one that the name selects.
std::vector<Kernel> distinct_kernels(const std::string& op);

}  // namespace isobit::cli
