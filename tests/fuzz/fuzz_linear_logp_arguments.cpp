// Arbitrary argument structs for every function of linear_logp.h's forward half: each call returns a status, a refusal
// has one line of text, and a refused call writes nothing. Pointers are real (their memory is as large as the views
// claim, or the view must be refused first), all other fields are the fuzzer's.
#include <array>

#include "linear_logp_arguments.h"

using namespace isobit::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Source source(data, size);
  Arena arena;
  isobit_linear_logp_args args = arguments(source, arena);
  const auto merge_count = static_cast<int32_t>(source.number());
  const auto why_size = source.raw<uint8_t>();
  const std::vector<uint8_t> before = arena.bytes();

  size_t minimum = 0, recommended = 0, state_bytes = 0;
  int64_t bad_row = 0;
  std::vector<char> why(why_size);  // exactly as large as said
  check_status(isobit_linear_logp_supported(&args, why.data(), why.size()));
  check_status(isobit_linear_logp_supported(nullptr, nullptr, 0));
  check_status(isobit_linear_logp_workspace(&args, nullptr, &recommended));
  check_status(isobit_linear_logp_state_bytes(&args, &state_bytes));
  const isobit_status sized = isobit_linear_logp_workspace(&args, &minimum, &recommended);
  require(sized != ISOBIT_OK || minimum <= recommended);
  if (!all_fit(args)) return 0;

  // Too small a workspace is refused before anything is written.
  const size_t given = sized == ISOBIT_OK && minimum < (size_t{1} << 24) ? minimum : 0;
  const Workspace workspace = workspace_of(given);
  args.workspace = workspace.get();
  args.workspace_bytes = given > 0 ? given - 1 : 0;
  if (given > 0) require(guarded(arena, before, [&] { return isobit_linear_logp(&args, nullptr); }) != ISOBIT_OK);
  args.workspace_bytes = given;
  guarded(arena, before, [&] { return isobit_linear_logp_validate(&args, &bad_row, nullptr); });
  std::array<isobit_linear_logp_state, 3> states{};
  for (isobit_linear_logp_state& state : states) {
    // Contents of the fuzzer would be read as far as their counts say, so only refusals can be asked for.
    state = {source.number(), source.number(), nullptr};
  }
  guarded(arena, before,
          [&] { return isobit_linear_logp_merge(&args, states.data(), std::min(merge_count, 3), nullptr); });
  guarded(arena, before, [&] { return isobit_linear_logp(&args, nullptr); });
  return 0;
}
