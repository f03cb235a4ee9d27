#include "pack/prescale.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace isobit::cli {
namespace {

using checkpoint::refuse;
using checkpoint::Result;

Result<std::vector<float>> factors(checkpoint::Checkpoint* statistics, const std::string& name, int64_t size,
                                   float alpha) {
  auto tensor = statistics->find(name);
  if (!tensor.ok()) return tensor.status();
  const std::string quoted = "tensor " + checkpoint::in_quotes(name);
  if (tensor->dtype != checkpoint::Dtype::kF32 || tensor->shape != std::vector<uint64_t>{static_cast<uint64_t>(size)}) {
    return refuse(tensor->file, quoted, "statistics", "F32 [" + std::to_string(size) + "]",
                  std::string(checkpoint::dtype_name(tensor->dtype)) + " of " + std::to_string(tensor->shape.size()) +
                      " dimensions");
  }
  std::vector<float> means(static_cast<size_t>(size));
  std::memcpy(means.data(), tensor->bytes.data(), means.size() * sizeof(float));
  float least = 0;
  for (const float mean : means) {
    if (!(mean >= 0) || !std::isfinite(mean)) {
      return refuse(tensor->file, quoted, "statistics", "finite means of magnitudes", std::to_string(mean));
    }
    if (mean > 0 && (least == 0 || mean < least)) least = mean;
  }
  if (least == 0) return std::vector<float>(means.size(), 1.0f);
  double low = INFINITY, high = 0;
  std::vector<double> powers;
  for (const float mean : means) {
    powers.push_back(std::pow(static_cast<double>(std::max(mean, least)), static_cast<double>(alpha)));
    low = std::min(low, powers.back());
    high = std::max(high, powers.back());
  }
  std::vector<float> out;
  for (const double power : powers) out.push_back(static_cast<float>(power / std::sqrt(low * high)));
  return out;
}

}  // namespace

Result<Prescale> read_prescale(checkpoint::Checkpoint* statistics, const std::string& layer, int64_t hidden,
                               int64_t width, float alpha) {
  auto input = factors(statistics, layer + ".input", hidden, alpha);
  if (!input.ok()) return input.status();
  auto inner = factors(statistics, layer + ".hidden", width, alpha);
  if (!inner.ok()) return inner.status();
  return Prescale{std::move(*input), std::move(*inner)};
}

}  // namespace isobit::cli
