#include "check/linear_logp_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "arrays.h"

namespace isobit::cli {
namespace {

constexpr uint16_t kNanElement = 0x7FFF;  // of bf16 and of fp16

std::vector<uint16_t> random_elements(int64_t count, uint64_t seed, float scale, const LogpOptions& options) {
  std::vector<uint16_t> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    float value = random_value(seed, i, scale);
    if (options.exact) value = 0.25f * std::nearbyint(random_value(seed, i, 2.0f));
    values[i] = options.dtype == ISOBIT_BF16 ? bf16_from_float(value) : fp16_from_float(value);
  }
  return values;
}

std::vector<float> random_floats(int64_t count, uint64_t seed, float mean, float scale) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = mean + random_value(seed, i, scale);
  return values;
}

std::vector<int64_t> random_targets(const LogpShape& shape, uint64_t seed, bool ignored_rows) {
  std::vector<int64_t> ids(static_cast<size_t>(shape.n * shape.k));
  for (size_t i = 0; i < ids.size(); ++i) {
    const double unit = 0.5 + static_cast<double>(random_value(seed, i, 0.1f));
    ids[i] = std::clamp<int64_t>(static_cast<int64_t>(unit * static_cast<double>(shape.v)), 0, shape.v - 1);
    if (ignored_rows && static_cast<int64_t>(i) / shape.k % 7 == 3) ids[i] = -100;
  }
  return ids;
}

std::vector<double> to_doubles(const std::vector<uint16_t>& values, isobit_dtype dtype) {
  std::vector<double> out;
  out.reserve(values.size());
  for (const uint16_t x : values) out.push_back(dtype == ISOBIT_BF16 ? bf16_to_float(x) : fp16_to_float(x));
  return out;
}

void require_ok(isobit_status status) {
  if (status != ISOBIT_OK) throw std::runtime_error(isobit_last_error());
}

isobit_tensor tensor(const void* data, isobit_dtype dtype, Place place, int64_t rows, int64_t columns, int64_t stride) {
  isobit_tensor t = {};
  t.data = const_cast<void*>(data);
  t.dtype = dtype;
  t.device_type = place.type;
  t.device_id = place.id;
  t.rank = columns > 0 ? 2 : 1;
  t.shape[0] = rows;
  t.shape[1] = columns;
  t.stride[0] = stride;
  t.stride[1] = columns > 0 ? 1 : 0;
  return t;
}

// Exchanges the data of two states of the same size that are not empty, if there are two.
void swap_two(const std::vector<Buffer>& memory, std::vector<isobit_linear_logp_state>* states) {
  for (size_t i = 0; i < states->size(); ++i) {
    for (size_t j = i + 1; j < states->size(); ++j) {
      if ((*states)[i].count == 0 || (*states)[i].count != (*states)[j].count) continue;
      if (memory[i].bytes() != memory[j].bytes()) continue;
      std::swap((*states)[i].data, (*states)[j].data);
      return;
    }
  }
}

}  // namespace

// Poisoned memory for every output of a call.
class LogpCase::Outputs {
 public:
  Outputs(const LogpCase& c, int64_t rows, bool top) : place_(c.place_), rows_(rows) {
    const int64_t k = c.shape_.k;
    for (const int64_t columns : {k, k, k, int64_t{1}, int64_t{1}}) add(columns);
    if (top && c.shape_.t > 0) {
      add(c.shape_.t);
      add(c.shape_.t);
    }
  }

  void attach(isobit_linear_logp_args* args) const {
    isobit_tensor* const views[] = {&args->logp,    &args->rank,   &args->target_logit, &args->lse,
                                    &args->entropy, &args->top_id, &args->top_logp};
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const bool per_row = i == 3 || i == 4;
      const bool integer = i == 1 || i == 5;
      *views[i] = tensor(buffers_[i].data(), integer ? ISOBIT_INT32 : ISOBIT_FP32, place_, rows_,
                         per_row ? 0 : columns_[i], columns_[i]);
    }
  }

  const void* target_logit() const { return buffers_[2].data(); }

  RowBytes download() const {
    RowBytes rows(static_cast<size_t>(rows_));
    for (size_t i = 0; i < buffers_.size(); ++i) {
      std::string bytes(buffers_[i].bytes(), '\0');
      buffers_[i].download(bytes.data(), bytes.size());
      const size_t width = static_cast<size_t>(columns_[i]) * 4;
      for (size_t n = 0; n < rows.size(); ++n) rows[n].append(bytes, n * width, width);
    }
    return rows;
  }

 private:
  void add(int64_t columns) {
    buffers_.emplace_back(place_, static_cast<size_t>(rows_ * columns) * 4);
    buffers_.back().fill(0xA5);
    columns_.push_back(columns);
  }

  Place place_;
  int64_t rows_;
  std::vector<Buffer> buffers_;
  std::vector<int64_t> columns_;
};

// Copies of operands in the layout that a call asks for.
struct LogpCase::Operands {
  Placed<uint16_t> hidden;
  Placed<uint16_t> weight;
};

LogpCase::LogpCase(const Kernel& kernel, Place place, const LogpShape& shape, const LogpOptions& options, uint64_t seed)
    : kernel_(kernel.name),
      place_(place),
      shape_(shape),
      options_(options),
      hidden_(place, random_elements(shape.n * shape.h, seed, 1.0f, options)),
      weight_(place,
              random_elements(shape.v * shape.h, seed + 1, 4.0f / std::sqrt(static_cast<float>(shape.h)), options)),
      bias_(place, random_floats(options.bias ? shape.v : 0, seed + 2, 0.0f, 1.0f)),
      temperature_(place, random_floats(options.row_temperature ? shape.n : 0, seed + 3, 1.0f, 0.15f)),
      target_(place, random_targets(shape, seed + 4, options.ignored_rows)) {}

Placed<uint16_t> LogpCase::gapped(const std::vector<uint16_t>& rows, int64_t first, int64_t count, int64_t gap) const {
  const auto width = static_cast<size_t>(shape_.h);
  const size_t stride = width + static_cast<size_t>(gap);
  std::vector<uint16_t> copy(static_cast<size_t>(count) * stride, kNanElement);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    std::copy_n(&rows[(static_cast<size_t>(first) + i) * width], width, &copy[i * stride]);
  }
  return {place_, std::move(copy)};
}

isobit_linear_logp_args LogpCase::arguments(const LogpCall& call, const Operands& operands) const {
  isobit_linear_logp_args args = ISOBIT_LINEAR_LOGP_ARGS_INIT;
  args.threads = call.threads;
  args.kernel = kernel_.c_str();
  const int64_t h = shape_.h;
  const int64_t first = call.first_row;
  const int64_t hidden_stride = call.repeat_middle_row ? 0 : h + call.hidden_gap;
  const int64_t target_stride = call.repeat_middle_row ? 0 : shape_.k;
  const int64_t middle = call.repeat_middle_row ? call.rows / 2 : 0;
  args.hidden = tensor(operands.hidden.data() + middle * (h + call.hidden_gap), options_.dtype, place_, call.rows, h,
                       hidden_stride);
  args.weight = tensor(operands.weight.data(), options_.dtype, place_, shape_.v, h, h + call.weight_gap);
  args.target =
      tensor(target_.data() + (first + middle) * shape_.k, ISOBIT_INT64, place_, call.rows, shape_.k, target_stride);
  if (options_.bias) args.bias = tensor(bias_.data(), ISOBIT_FP32, place_, shape_.v, 0, 1);
  if (options_.row_temperature) {
    args.temperature =
        tensor(temperature_.data() + first + middle, ISOBIT_FP32, place_, call.rows, 0, call.repeat_middle_row ? 0 : 1);
  }
  args.temperature_value = options_.temperature;
  args.softcap = options_.softcap;
  return args;
}

isobit_linear_logp_args LogpCase::inputs(int64_t first, int64_t rows) const {
  isobit_linear_logp_args args = arguments({.first_row = first, .rows = rows}, {hidden_, weight_});
  args.hidden.data = hidden_.data() + first * shape_.h;
  return args;
}

RowBytes LogpCase::whole(const LogpCall& call) const {
  std::vector<uint16_t> rows = hidden_.host();
  if (call.nan_neighbours) {
    const auto begin = rows.begin() + (call.first_row + call.rows / 2) * shape_.h;
    std::fill(rows.begin(), begin, kNanElement);
    std::fill(begin + shape_.h, rows.end(), kNanElement);
  }
  const Operands operands = {gapped(rows, call.first_row, call.rows, call.hidden_gap),
                             gapped(weight_.host(), 0, shape_.v, call.weight_gap)};
  isobit_linear_logp_args args = arguments(call, operands);
  const Outputs outputs(*this, call.rows, true);
  outputs.attach(&args);
  size_t minimum = 0;
  size_t recommended = 0;
  require_ok(isobit_linear_logp_workspace(&args, &minimum, &recommended));
  const double more = static_cast<double>(recommended - minimum) * call.workspace_share;
  const Buffer workspace(place_, minimum + static_cast<size_t>(more));
  workspace.fill(0xA5);
  args.workspace = workspace.data();
  args.workspace_bytes = workspace.bytes();
  require_ok(isobit_linear_logp(&args, nullptr));
  return outputs.download();
}

RowBytes LogpCase::sharded(const LogpCall& call, const std::vector<int64_t>& cuts, bool swap_states) const {
  const Operands operands = {gapped(hidden_.host(), call.first_row, call.rows, call.hidden_gap),
                             gapped(weight_.host(), 0, shape_.v, call.weight_gap)};
  const Outputs outputs(*this, call.rows, false);
  std::vector<int64_t> borders = {0};
  borders.insert(borders.end(), cuts.begin(), cuts.end());
  borders.push_back(shape_.v);
  // The first pass gives the targets' logits, which the second needs for the ranks.
  for (const bool rank : {false, true}) {
    std::vector<Buffer> memory;
    std::vector<isobit_linear_logp_state> states;
    isobit_linear_logp_args args = arguments(call, operands);
    outputs.attach(&args);
    if (!rank) args.rank = {};
    args.vocab_size = shape_.v;
    for (size_t i = 0; i + 1 < borders.size(); ++i) {
      isobit_linear_logp_args shard = args;
      const int64_t first = borders[i];
      shard.first_id = first;
      shard.weight.data = static_cast<uint16_t*>(args.weight.data) + first * args.weight.stride[0];
      shard.weight.shape[0] = borders[i + 1] - first;
      if (options_.bias) {
        shard.bias.data = static_cast<float*>(args.bias.data) + first;
        shard.bias.shape[0] = shard.weight.shape[0];
      }
      size_t minimum = 0;
      size_t bytes = 0;
      require_ok(isobit_linear_logp_workspace(&shard, &minimum, nullptr));
      require_ok(isobit_linear_logp_state_bytes(&shard, &bytes));
      const Buffer workspace(place_, minimum);
      memory.emplace_back(place_, bytes);
      memory.back().fill(0xA5);
      shard.workspace = workspace.data();
      shard.workspace_bytes = workspace.bytes();
      require_ok(isobit_linear_logp_shard(&shard, memory.back().data(), nullptr));
      synchronise(place_);  // the workspace goes away
      states.push_back({first, shard.weight.shape[0], memory.back().data()});
    }
    if (swap_states) swap_two(memory, &states);
    std::reverse(states.begin(), states.end());
    args.weight = args.hidden = args.bias = args.temperature = {};
    require_ok(isobit_linear_logp_merge(&args, states.data(), static_cast<int32_t>(states.size()), nullptr));
    synchronise(place_);
  }
  return outputs.download();
}

linear_logp::ReferenceProblem reference_of(const LogpCase& c) {
  linear_logp::ReferenceProblem r;
  r.rows = c.shape().n;
  r.width = c.shape().h;
  r.vocab = c.shape().v;
  r.targets = c.shape().k;
  r.top = 0;
  r.hidden = to_doubles(c.hidden(), c.options().dtype);
  r.weight = to_doubles(c.weight(), c.options().dtype);
  r.bias.assign(c.bias().begin(), c.bias().end());
  r.temperature.assign(static_cast<size_t>(r.rows), c.options().temperature);
  if (c.options().row_temperature) r.temperature.assign(c.temperature().begin(), c.temperature().end());
  r.target = c.target();
  r.softcap = c.options().softcap;
  r.use_ignore_index = true;
  r.ignore_index = -100;
  return r;
}

}  // namespace isobit::cli
