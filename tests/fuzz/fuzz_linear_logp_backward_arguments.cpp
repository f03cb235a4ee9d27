// The same for the functions of its backward half.
#include <array>

#include "linear_logp_arguments.h"

using namespace isobit::fuzz;

namespace {

using Args = isobit_linear_logp_backward_args;

constexpr size_t kMostBytes = size_t{1} << 24;

Args backward_arguments(Source& source, Arena& arena) {
  Args args = ISOBIT_LINEAR_LOGP_BACKWARD_ARGS_INIT;
  args.forward = arguments(source, arena);
  const auto flags = source.raw<uint16_t>();
  if (flags & 1) args.struct_size = source.raw<uint32_t>();
  // Most calls reach the checks behind those of the forward pass.
  if (flags & 2) args.forward.rank = args.forward.target_logit = args.forward.top_id = args.forward.top_logp = {};
  if (flags & 4) args.forward.hidden.dtype = args.forward.weight.dtype = ISOBIT_BF16;
  for (isobit_tensor* t : {&args.d_logp, &args.d_lse, &args.d_entropy, &args.d_hidden, &args.d_weight, &args.d_bias}) {
    *t = tensor(source, arena);
    if ((flags & 8) && t->dtype != ISOBIT_NONE) t->dtype = ISOBIT_FP32;
  }
  args.accumulate = flags & 16 ? static_cast<int32_t>(source.number()) : flags / 32 % 2;
  args.subtract_p = flags & 64 ? static_cast<int32_t>(source.number()) : flags / 128 % 2;
  if (flags & 256) args.reserved = source.raw<int32_t>();
  return args;
}

bool gradients_fit(const Args& args) {
  for (const isobit_tensor* t :
       {&args.d_logp, &args.d_lse, &args.d_entropy, &args.d_hidden, &args.d_weight, &args.d_bias}) {
    if (t->dtype != ISOBIT_NONE && !fits_part(*t)) return false;
  }
  return true;
}

// Every function that only answers. Bytes of a size, or 0 where there is none or it is too large to be tried.
size_t ask(const Args& args, isobit_status (*size)(const Args*, size_t*)) {
  size_t bytes = 0;
  const isobit_status status = size(&args, &bytes);
  check_status(status);
  return status == ISOBIT_OK && bytes < kMostBytes ? bytes : 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Source source(data, size);
  Arena arena;
  Args args = backward_arguments(source, arena);
  const auto merge_count = static_cast<int32_t>(source.number());
  const auto why_size = source.raw<uint8_t>();
  const std::vector<uint8_t> before = arena.bytes();

  size_t minimum = 0, recommended = 0;
  std::vector<char> why(why_size);
  check_status(isobit_linear_logp_backward_supported(&args, why.data(), why.size()));
  check_status(isobit_linear_logp_backward_supported(nullptr, nullptr, 0));
  const isobit_status sized = isobit_linear_logp_backward_workspace(&args, &minimum, &recommended);
  check_status(sized);
  require(sized != ISOBIT_OK || minimum <= recommended);
  const size_t saved_bytes = ask(args, isobit_linear_logp_saved_bytes);
  const size_t part_bytes = ask(args, isobit_linear_logp_part_bytes);
  if (!all_fit(args.forward) || !gradients_fit(args)) return 0;

  const size_t given = sized == ISOBIT_OK && minimum < kMostBytes ? minimum : 0;
  const Workspace workspace = workspace_of(given);
  const Workspace saved = workspace_of(saved_bytes);
  const Workspace part = workspace_of(part_bytes);
  args.forward.workspace = workspace.get();
  args.forward.workspace_bytes = given;
  std::array<isobit_linear_logp_state, 3> states{};
  for (isobit_linear_logp_state& state : states) state = {source.number(), source.number(), nullptr};
  const int32_t count = std::min(merge_count, 3);
  guarded(arena, before, [&] { return isobit_linear_logp_save_merge(&args, states.data(), count, nullptr); });
  guarded(arena, before, [&] { return isobit_linear_logp_backward_merge(&args, states.data(), count, nullptr); });
  guarded(arena, before, [&] { return isobit_linear_logp_backward(&args, nullptr); });
  // Calls with a record: one that writes it, and those that read it. Nothing but outputs may differ afterwards.
  args.saved = saved.get();
  if (saved_bytes == 0) return 0;
  const std::vector<uint8_t> now = arena.bytes();
  const isobit_status status = guarded(arena, now, [&] { return isobit_linear_logp_save(&args, nullptr); });
  if (status != ISOBIT_OK) return 0;
  args.forward.logp = args.forward.lse = args.forward.entropy = {};
  const std::vector<uint8_t> then = arena.bytes();
  guarded(arena, then,
          [&] { return isobit_linear_logp_backward_shard(&args, part_bytes > 0 ? part.get() : nullptr, nullptr); });
  return 0;
}
