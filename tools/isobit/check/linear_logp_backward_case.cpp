#include "check/linear_logp_backward_case.h"

#include <stdexcept>

#include "arrays.h"

namespace isobit::cli {
namespace {

using Args = isobit_linear_logp_backward_args;

std::vector<float> random_floats(int64_t count, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = random_value(seed, i, 1.0f);
  return values;
}

void require_ok(isobit_status status) {
  if (status != ISOBIT_OK) throw std::runtime_error(isobit_last_error());
}

isobit_tensor tensor(void* data, Place place, int64_t rows, int64_t columns) {
  isobit_tensor t = {data, ISOBIT_FP32, place.type, place.id, columns > 0 ? 2 : 1, {rows, columns}, {1, 0}};
  if (columns > 0) {
    t.stride[0] = columns;
    t.stride[1] = 1;
  }
  return t;
}

// Calls `run` with a workspace of the queried size.
template <class Run>
void with_workspace(Args args, Place place, double share, const Run& run) {
  size_t minimum = 0;
  size_t recommended = 0;
  require_ok(isobit_linear_logp_backward_workspace(&args, &minimum, &recommended));
  const Buffer workspace(place, minimum + static_cast<size_t>(static_cast<double>(recommended - minimum) * share));
  workspace.fill(0xA5);
  args.forward.workspace = workspace.data();
  args.forward.workspace_bytes = workspace.bytes();
  require_ok(run(&args));
  synchronise(place);  // the workspace goes away
}

std::string bytes_of(const Buffer& buffer) {
  std::string bytes(buffer.bytes(), '\0');
  buffer.download(bytes.data(), bytes.size());
  return bytes;
}

}  // namespace

// Poisoned memory for the gradients of a call.
struct BackwardCase::Outputs {
  Outputs(const LogpShape& shape, bool with_bias, Place where, int64_t row_count)
      : place(where),
        rows(row_count),
        width(shape.h),
        hidden(where, static_cast<size_t>(row_count * shape.h) * 4),
        weight(where, static_cast<size_t>(shape.v * shape.h) * 4),
        bias(where, static_cast<size_t>(with_bias ? shape.v : 0) * 4) {
    for (const Buffer* buffer : {&hidden, &weight, &bias}) buffer->fill(0xA5);
  }
  isobit_tensor hidden_view() const { return tensor(hidden.data(), place, rows, width); }
  void attach_ids(Args* args, int64_t first, int64_t count) const {
    args->d_weight = tensor(static_cast<float*>(weight.data()) + first * width, place, count, width);
    if (bias.bytes() > 0) args->d_bias = tensor(static_cast<float*>(bias.data()) + first, place, count, 0);
  }
  GradientBytes download() const { return {bytes_of(hidden), bytes_of(weight), bytes_of(bias)}; }

  Place place;
  int64_t rows, width;
  Buffer hidden, weight, bias;
};

BackwardCase::BackwardCase(const Kernel& kernel, Place place, const LogpShape& shape, const LogpOptions& options,
                           uint64_t seed)
    : forward_(kernel, place, shape, options, seed),
      place_(place),
      d_logp_(place, random_floats(shape.n * shape.k, seed + 10)),
      d_lse_(place, random_floats(shape.n, seed + 11)),
      d_entropy_(place, random_floats(shape.n, seed + 12)) {
  const Outputs outputs(shape, false, place, shape.n);
  Args args = arguments({.rows = shape.n});
  args.d_hidden = outputs.hidden_view();
  subtract_p_ = isobit_linear_logp_backward_supported(&args, nullptr, 0) == ISOBIT_UNSUPPORTED;
}

bool BackwardCase::takes_shards() const {
  // Without a workspace nothing runs: the status tells.
  const BackwardCall call = {.rows = forward_.shape().n};
  const Buffer saved = save(call);
  Args args = arguments(call);
  args.saved = saved.data();
  args.forward.vocab_size = forward_.shape().v;
  size_t bytes = 0;
  require_ok(isobit_linear_logp_part_bytes(&args, &bytes));
  const Buffer part(place_, bytes);
  return isobit_linear_logp_backward_shard(&args, part.data(), nullptr) != ISOBIT_UNSUPPORTED;
}

Args BackwardCase::arguments(const BackwardCall& call) const {
  Args args = ISOBIT_LINEAR_LOGP_BACKWARD_ARGS_INIT;
  const int64_t k = forward_.shape().k;
  args.forward = forward_.inputs(call.first_row, call.rows);
  args.forward.threads = call.threads;
  args.subtract_p = subtract_p_ ? 1 : 0;
  args.d_logp = tensor(d_logp_.data() + call.first_row * k, place_, call.rows, k);
  args.d_lse = tensor(d_lse_.data() + call.first_row, place_, call.rows, 0);
  args.d_entropy = tensor(d_entropy_.data() + call.first_row, place_, call.rows, 0);
  return args;
}

Buffer BackwardCase::save(const BackwardCall& call) const {
  Args args = arguments(call);
  size_t bytes = 0;
  require_ok(isobit_linear_logp_saved_bytes(&args, &bytes));
  Buffer saved(place_, bytes);
  args.saved = saved.data();
  with_workspace(args, place_, call.workspace_share, [](const Args* a) { return isobit_linear_logp_save(a, nullptr); });
  return saved;
}

GradientBytes BackwardCase::whole(const BackwardCall& call) const {
  const Outputs outputs(forward_.shape(), forward_.options().bias, place_, call.rows);
  const Buffer saved = call.saves ? save(call) : Buffer(place_, 0);
  Args args = arguments(call);
  if (call.saves) args.saved = saved.data();
  args.d_hidden = outputs.hidden_view();
  outputs.attach_ids(&args, 0, forward_.shape().v);
  with_workspace(args, place_, call.workspace_share,
                 [](const Args* a) { return isobit_linear_logp_backward(a, nullptr); });
  return outputs.download();
}

void BackwardCase::run_shard(const BackwardCall& call, const Outputs& outputs, const Buffer& saved, int64_t first,
                             int64_t count, std::vector<Buffer>* parts) const {
  Args args = arguments(call);
  args.saved = saved.data();
  args.forward.first_id = first;
  args.forward.vocab_size = forward_.shape().v;
  args.forward.weight.data = static_cast<uint16_t*>(args.forward.weight.data) + first * forward_.shape().h;
  args.forward.weight.shape[0] = count;
  if (forward_.options().bias) {
    args.forward.bias.data = static_cast<float*>(args.forward.bias.data) + first;
    args.forward.bias.shape[0] = count;
  }
  outputs.attach_ids(&args, first, count);
  size_t bytes = 0;
  require_ok(isobit_linear_logp_part_bytes(&args, &bytes));
  parts->emplace_back(place_, bytes);
  with_workspace(args, place_, call.workspace_share,
                 [&](const Args* a) { return isobit_linear_logp_backward_shard(a, parts->back().data(), nullptr); });
}

GradientBytes BackwardCase::sharded(const BackwardCall& call, int64_t ranks) const {
  const Outputs outputs(forward_.shape(), forward_.options().bias, place_, call.rows);
  const Buffer saved = save(call);
  const int64_t count = forward_.shape().v / ranks;
  std::vector<Buffer> parts;
  std::vector<isobit_linear_logp_state> listed;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    run_shard(call, outputs, saved, rank * count, count, &parts);
    listed.push_back({rank * count, count, parts.back().data()});
  }
  Args merge = ISOBIT_LINEAR_LOGP_BACKWARD_ARGS_INIT;
  merge.forward.vocab_size = forward_.shape().v;
  merge.forward.kernel = arguments(call).forward.kernel;
  merge.d_hidden = outputs.hidden_view();
  require_ok(isobit_linear_logp_backward_merge(&merge, listed.data(), static_cast<int32_t>(ranks), nullptr));
  synchronise(place_);
  return outputs.download();
}

linear_logp::ReferenceUpstream BackwardCase::upstream() const {
  return {{d_logp_.host().begin(), d_logp_.host().end()},
          {d_lse_.host().begin(), d_lse_.host().end()},
          {d_entropy_.host().begin(), d_entropy_.host().end()}};
}

}  // namespace isobit::cli
