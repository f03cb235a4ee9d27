// Small checkpoints to pack, and the packed file read back.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/test/temporary_folder.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/scale_layout.h"
#include "pack/pack.h"

namespace isobit::cli {

using checkpoint::Checkpoint;
using checkpoint::Dtype;

inline std::vector<float> normal(size_t count, float scale, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(random() >> 32) * 0x1p-32;
    value = static_cast<float>(sum - 6) * scale;
  }
  return values;
}

// Tensors of a checkpoint to write.
struct Tensors {
  struct One {
    std::string name;
    Dtype dtype;
    std::vector<uint64_t> shape;
    std::vector<std::byte> bytes;
  };
  std::vector<One> all;

  template <class T>
  void add(const std::string& name, Dtype dtype, std::vector<uint64_t> shape, const std::vector<T>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    all.push_back({name, dtype, std::move(shape), std::move(bytes)});
  }
  void add(const std::string& name, uint64_t rows, uint64_t columns, const std::vector<float>& values) {
    add(name, Dtype::kF32, {rows, columns}, values);
  }
  void write(const std::string& path) const {
    std::vector<checkpoint::OutputTensor> out;
    for (const One& one : all) out.push_back({one.name, one.dtype, one.shape, one.bytes});
    const checkpoint::Status status = checkpoint::write_safetensors(path, out);
    ASSERT_TRUE(status.ok()) << status.message;
  }
};

class Pack : public testing::Test {
 protected:
  std::string input() const { return folder_.path() + "/in.safetensors"; }
  std::string output() const { return folder_.path() + "/out.safetensors"; }

  checkpoint::Status run(const std::string& from, const std::string& gelu = "tanh",
                         isobit_nvfp4_layout layout = ISOBIT_NVFP4_128X4) {
    const PackListener listener = {
        [&](const std::string&, const char*, const PackedMatrix& packed) { reports_.push_back(packed.report); },
        [](const std::string&, int64_t, int64_t) {}};
    return pack({from, output(), layout, gelu, activations_, 0.5f}, listener);
  }
  // A packed matrix of the output decoded, its rows times a scale of their own (two alternate).
  std::vector<double> decoded(const std::string& name, const std::vector<std::string>& scales,
                              isobit_nvfp4_layout layout = ISOBIT_NVFP4_128X4) {
    auto file = Checkpoint::open(output());
    EXPECT_TRUE(file.ok());
    auto codes = file->find(name + ".codes"), packed = file->find(name + ".scales");
    EXPECT_TRUE(codes.ok() && packed.ok());
    std::vector<float> global;
    for (const std::string& scale : scales) {
      auto tensor = file->find(scale);
      EXPECT_TRUE(tensor.ok());
      global.push_back(0);
      std::memcpy(&global.back(), tensor->bytes.data(), sizeof(float));
    }
    const auto rows = static_cast<int64_t>(codes->shape[0]), k = static_cast<int64_t>(2 * codes->shape[1]);
    std::vector<double> values;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < k; ++c) {
        const auto pair = static_cast<uint8_t>(codes->bytes[static_cast<size_t>((r * k + c) / 2)]);
        const int64_t at = numerics::scale_offset(static_cast<numerics::ScaleLayout>(layout), r, c / 16, k / 16);
        const auto scale = static_cast<uint8_t>(packed->bytes[static_cast<size_t>(at)]);
        values.push_back(static_cast<double>(numerics::e2m1_to_float(static_cast<uint8_t>(pair >> (c % 2 * 4) & 15))) *
                         static_cast<double>(numerics::e4m3_to_float(scale)) *
                         static_cast<double>(global[static_cast<size_t>(r) % global.size()]));
      }
    }
    return values;
  }

  checkpoint::TemporaryFolder folder_;
  std::vector<PackReport> reports_;
  std::string activations_;  // path of the statistics
};

inline double relative_error(const std::vector<double>& got, const std::vector<float>& wanted) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto value = static_cast<double>(wanted[i]);
    error += (got[i] - value) * (got[i] - value);
    norm += value * value;
  }
  return std::sqrt(error / norm);
}

// Every second row, from `first` on.
inline std::vector<double> half(const std::vector<double>& rows, size_t columns, size_t first) {
  std::vector<double> out;
  for (size_t r = first; r < rows.size() / columns; r += 2) {
    out.insert(out.end(), rows.begin() + static_cast<int64_t>(r * columns),
               rows.begin() + static_cast<int64_t>((r + 1) * columns));
  }
  return out;
}

}  // namespace isobit::cli
