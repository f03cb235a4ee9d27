#include "score/run.h"

#include <fmt/format.h>
#include <isobit/linear_logp.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "device.h"

namespace isobit::cli::score {
namespace {

// A CPU chunk takes some seconds, so the progress moves; the head is read again for each chunk, which costs little
// beside its arithmetic even where the head does not fit in memory. A GPU wants more rows at once.
constexpr int64_t kCpuRows = 256;
constexpr int64_t kCudaRows = 8192;
constexpr size_t kMostWorkspace = size_t{1} << 30;

void require(isobit_status status) {
  if (status == ISOBIT_OK) return;
  if (status == ISOBIT_INVALID_ARGUMENT) throw std::invalid_argument(isobit_last_error());
  if (status == ISOBIT_UNSUPPORTED) throw Unavailable(isobit_last_error());
  throw std::runtime_error(isobit_last_error());
}

isobit_tensor tensor(void* data, isobit_dtype dtype, Place place, int64_t rows, int64_t columns, int32_t rank) {
  isobit_tensor view{};
  view.data = data;
  view.dtype = dtype;
  view.device_type = place.type;
  view.device_id = place.id;
  view.rank = rank;
  view.shape[0] = rows;
  view.shape[1] = rank == 2 ? columns : 0;
  view.stride[0] = rank == 2 ? columns : 1;
  view.stride[1] = rank == 2 ? 1 : 0;
  return view;
}

// Host memory as the library sees it: itself on the CPU, a copy on a GPU.
class Staged {
 public:
  Staged(Place place, const void* host, size_t bytes) : host_(const_cast<void*>(host)), bytes_(bytes) {
    if (place.type != ISOBIT_CPU) device_.emplace_back(place, bytes);
  }
  void* data() const { return device_.empty() ? host_ : device_[0].data(); }
  void upload() const {
    if (!device_.empty()) device_[0].upload(host_, bytes_);
  }
  void download() const {
    if (!device_.empty()) device_[0].download(host_, bytes_);
  }

 private:
  void* host_;
  size_t bytes_;
  std::vector<Buffer> device_;  // one, or none on the CPU
};

// Makes the argument structs for ranges of rows.
class Scorer {
 public:
  Scorer(const Inputs& inputs, const Options& options, Place place)
      : inputs_(inputs),
        options_(options),
        place_(place),
        head_(place, inputs.head.data, static_cast<size_t>(inputs.head.rows * inputs.head.columns) * 2) {
    head_.upload();
  }

  void score(int64_t first, int64_t rows, Scores& scores) {
    const int64_t width = inputs_.hidden.columns;
    const int64_t targets = inputs_.targets_per_row;
    isobit_linear_logp_args args = ISOBIT_LINEAR_LOGP_ARGS_INIT;
    args.threads = options_.threads;
    args.kernel = options_.kernel.empty() ? nullptr : options_.kernel.c_str();
    args.vocab_size = inputs_.vocab_size;
    args.ignore_index = options_.ignore_index;
    args.temperature_value = options_.temperature;
    args.softcap = options_.softcap;
    args.weight = tensor(head_.data(), ISOBIT_BF16, place_, inputs_.head.rows, width, 2);

    const Staged hidden(place_, inputs_.hidden.data + first * width, static_cast<size_t>(rows * width) * 2);
    const Staged target(place_, inputs_.targets.data() + first * targets, static_cast<size_t>(rows * targets) * 8);
    hidden.upload();
    target.upload();
    args.hidden = tensor(hidden.data(), ISOBIT_BF16, place_, rows, width, 2);
    args.target = tensor(target.data(), ISOBIT_INT64, place_, rows, targets, 2);

    std::vector<Staged> outputs;
    const auto output = [&](auto& all, isobit_dtype dtype, int64_t columns, int32_t rank) {
      if (all.empty()) return isobit_tensor{};
      outputs.emplace_back(place_, all.data() + first * columns, static_cast<size_t>(rows * columns) * 4);
      return tensor(outputs.back().data(), dtype, place_, rows, columns, rank);
    };
    args.logp = output(scores.logp, ISOBIT_FP32, targets, 2);
    args.lse = output(scores.lse, ISOBIT_FP32, 1, 1);
    args.entropy = output(scores.entropy, ISOBIT_FP32, 1, 1);
    args.rank = output(scores.rank, ISOBIT_INT32, targets, 2);
    args.top_id = output(scores.top_id, ISOBIT_INT32, options_.top_k, 2);
    args.top_logp = output(scores.top_logp, ISOBIT_FP32, options_.top_k, 2);

    size_t minimum = 0, recommended = 0;
    require(isobit_linear_logp_workspace(&args, &minimum, &recommended));
    const Buffer workspace(place_, std::max(minimum, std::min(recommended, kMostWorkspace)));
    args.workspace = workspace.data();
    args.workspace_bytes = workspace.bytes();
    require(isobit_linear_logp(&args, nullptr));
    for (const Staged& written : outputs) written.download();
  }

 private:
  const Inputs& inputs_;
  const Options& options_;
  Place place_;
  Staged head_;
};

Place place_of(const Options& options) {
  if (options.device == "cpu") return Place{ISOBIT_CPU, 0};
  if (options.device_id >= isobit_device_count()) {
    throw Unavailable(fmt::format("--device cuda: expected a CUDA device {}, got {} devices", options.device_id,
                                  isobit_device_count()));
  }
  return Place{ISOBIT_CUDA, options.device_id};
}

}  // namespace

Scores run(const Inputs& inputs, const Options& options, const std::function<void(int64_t)>& progress) {
  const Place place = place_of(options);
  const int64_t rows = inputs.hidden.rows;
  const auto n = static_cast<size_t>(rows);
  const auto per_target = n * static_cast<size_t>(inputs.targets_per_row);
  const auto per_list = n * static_cast<size_t>(options.top_k);
  Scores scores;
  scores.logp.resize(per_target);
  scores.lse.resize(options.lse ? n : 0);
  scores.entropy.resize(options.entropy ? n : 0);
  scores.rank.resize(options.rank ? per_target : 0);
  scores.top_id.resize(per_list);
  scores.top_logp.resize(per_list);
  const int64_t chosen = place.type == ISOBIT_CPU ? kCpuRows : kCudaRows;
  const int64_t chunk = options.chunk_rows > 0 ? options.chunk_rows : chosen;
  if (rows == 0) return scores;
  Scorer scorer(inputs, options, place);
  for (int64_t first = 0; first < rows; first += chunk) {
    progress(first);
    scorer.score(first, std::min(chunk, rows - first), scores);
  }
  return scores;
}

}  // namespace isobit::cli::score
