// Small model files for the tests of `isobit score`, and the program itself.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "checkpoint/safetensors_writer.h"
#include "checkpoint/test/temporary_folder.h"

namespace isobit::cli::score {

using checkpoint::Dtype;
using checkpoint::OutputTensor;
using checkpoint::TemporaryFolder;

template <class T>
OutputTensor tensor(const std::string& name, Dtype dtype, std::vector<uint64_t> shape, const std::vector<T>& values) {
  return {name, dtype, std::move(shape), std::as_bytes(std::span(values))};
}

inline std::string slurp(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

// Runs `isobit score ARGUMENTS` in a shell; `before` may set limits for it.
inline Outcome run_score(const TemporaryFolder& folder, const std::string& arguments, const std::string& before = "") {
  const std::string out = folder / "stdout.txt", err = folder / "stderr.txt";
  const std::string command = before + "'" ISOBIT_CLI "' score " + arguments + " >" + out + " 2>" + err;
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(out), slurp(err)};
}

}  // namespace isobit::cli::score
