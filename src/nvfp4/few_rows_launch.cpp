#include "nvfp4/few_rows_launch.h"

#include <algorithm>

namespace isobit {
namespace {

constexpr int64_t kMostRows = 32;
constexpr int64_t kMostChainRows = 32;
constexpr int64_t kMostChainColumns = 2048;

int64_t pieces_of(int64_t extent, int64_t piece) { return (extent + piece - 1) / piece; }

// Of x as a block keeps it.
int64_t x_bytes(int64_t tokens, int64_t k) {
  return pieces_of(k, device::kNvfp4MostDepth) * device::kNvfp4MostDepth * tokens * 2;
}

}  // namespace

bool nvfp4_rows_are_few(int64_t rows, int64_t k) {
  const int64_t tokens = rows <= 8 ? 8 : rows <= 16 ? 16 : 32;
  return rows <= kMostRows && x_bytes(tokens, k) <= device::nvfp4_few_most_bytes(tokens);
}

bool nvfp4_is_chain(int64_t rows, int64_t columns) { return rows <= kMostChainRows && columns <= kMostChainColumns; }

const Nvfp4FewVariant& choose_few_rows(std::span<const Nvfp4FewVariant> variants, int64_t rows, int64_t columns,
                                       int multiprocessors) {
  const Nvfp4FewVariant* best = nullptr;
  int64_t least = 0;
  for (const Nvfp4FewVariant& variant : variants) {
    if (variant.tokens < rows || (best != nullptr && variant.tokens > best->tokens)) continue;
    const int64_t share = pieces_of(pieces_of(columns, variant.rows), multiprocessors) * variant.rows;
    if (best == nullptr || share < least) best = &variant, least = share;
  }
  return *best;
}

Status run_few_rows(const Nvfp4WgmmaCall& call, std::span<const Nvfp4FewVariant> variants, void* job,
                    device::Nvfp4FewPlan* plan, void* stream) {
  DeviceProperties properties;
  if (Status s = runtime().properties(call.device, &properties); !s.ok()) return s;
  const Nvfp4FewVariant& variant = choose_few_rows(variants, call.rows, call.columns, properties.multiprocessors);
  *plan = {call.weight.scales, static_cast<int32_t>(pieces_of(call.columns, 128)), static_cast<int32_t>(call.k / 64)};
  TensorMap codes;
  const auto swizzle = variant.depth == 128 ? TensorMapSpec::Swizzle::k64 : TensorMapSpec::Swizzle::k128;
  if (Status s = encode_nvfp4_codes(call, variant.rows / 2, variant.depth / 2, swizzle, &codes); !s.ok()) return s;
  LaunchShape shape;
  shape.grid.x = static_cast<uint32_t>(pieces_of(call.columns, variant.rows));
  shape.block.x = static_cast<uint32_t>(variant.threads);
  shape.dynamic_shared_bytes = variant.shared_bytes;
  uint32_t most = variant.shared_bytes;
  if (variant.keeps_x) {
    // An epilogue may put a value of 4 bytes for every row of x and pair of weight rows in x's place.
    const int64_t hidden_bytes = int64_t{variant.tokens} * variant.rows * 2;
    shape.dynamic_shared_bytes += static_cast<uint32_t>(std::max(x_bytes(variant.tokens, call.k), hidden_bytes));
    most += device::nvfp4_few_most_bytes(variant.tokens);
  }
  if (Status s = runtime().allow_shared_memory(call.device, variant.kernel, most); !s.ok()) return s;
  void* arguments[] = {&codes, job};
  return runtime().launch(call.device, variant.kernel, shape, arguments, stream);
}

}  // namespace isobit
