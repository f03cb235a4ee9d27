#include "nvfp4/scaled_launch.h"

#include <algorithm>
#include <cstdio>

#include "core/build_config.h"
#include "core/tensor_map_limits.h"

namespace isobit {
namespace {

using device::ScaledTile;

// Row tiles of a group: their codes and scales stay in L2 while all columns pass.
constexpr int32_t kGroupRowTiles = 16;

int64_t tiles(int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; }

// Both the copy engine's address rules and the layout of scales that tensor memory wants.
Status check_operand(const char* name, const Nvfp4View& view, int64_t rows) {
  char argument[32];
  const auto field = [&](const char* of) {
    std::snprintf(argument, sizeof argument, "%s.%s", name, of);
    return argument;
  };
  if (view.layout != numerics::ScaleLayout::k128x4) {
    return refuse(field("layout"), "128x4", "%s", view.layout == numerics::ScaleLayout::kLinear ? "linear" : "8x4");
  }
  if (reinterpret_cast<uintptr_t>(view.codes) % 16 != 0) {
    return refuse(field("codes"), "an address aligned to 16 bytes", "%p", static_cast<void*>(view.codes));
  }
  if (rows > 1 && view.row_stride % 16 != 0) {
    return refuse(field("codes"), "stride[0] a multiple of 16", "%lld", static_cast<long long>(view.row_stride));
  }
  if (view.row_stride >= kTensorMapStrideLimit) {
    return refuse(field("codes"), "stride[0] below 2^40", "%lld", static_cast<long long>(view.row_stride));
  }
  if (reinterpret_cast<uintptr_t>(view.scales) % 16 == 0) return Status();
  return refuse(field("scales"), "an address aligned to 16 bytes", "%p", static_cast<void*>(view.scales));
}

Status encode_codes(const Nvfp4View& view, int64_t rows, int64_t k, uint32_t box_rows, TensorMap* map) {
  TensorMapSpec spec;
  spec.type = TensorMapSpec::Type::kUint8;
  spec.address = view.codes;
  spec.shape[0] = static_cast<uint64_t>(k / 2);
  spec.shape[1] = static_cast<uint64_t>(rows);
  spec.stride_bytes[0] = static_cast<uint64_t>(rows > 1 ? view.row_stride : k / 2);
  spec.box[0] = ScaledTile::kRowBytes;
  spec.box[1] = box_rows;
  return runtime().encode_tensor_map(spec, map);
}

Status encode_scales(const Nvfp4View& view, int64_t rows, int64_t k, uint32_t box_steps, uint32_t box_row_tiles,
                     TensorMap* map) {
  TensorMapSpec spec;
  spec.type = TensorMapSpec::Type::kUint32;
  spec.rank = 3;
  spec.address = view.scales;
  spec.shape[0] = ScaledTile::kScaleTileBytes / 4;
  spec.shape[1] = static_cast<uint64_t>(k / ScaledTile::kStepDepth);
  spec.shape[2] = static_cast<uint64_t>(tiles(rows, ScaledTile::kScaleRows));
  spec.stride_bytes[0] = ScaledTile::kScaleTileBytes;
  spec.stride_bytes[1] = spec.shape[1] * ScaledTile::kScaleTileBytes;
  spec.box[0] = ScaledTile::kScaleTileBytes / 4;
  spec.box[1] = box_steps;
  spec.box[2] = box_row_tiles;
  spec.swizzle = TensorMapSpec::Swizzle::kNone;
  return runtime().encode_tensor_map(spec, map);
}

Status scaled_operands(const ScaledProduct& p, int blocks, device::ScaledOperands* operands) {
  const auto part = static_cast<uint32_t>(blocks);  // of x that a block copies, to all blocks of its cluster
  if (Status s = encode_codes(p.x, p.rows, p.k, ScaledTile::kRows / part, &operands->x); !s.ok()) return s;
  if (Status s = encode_codes(p.weight, p.columns, p.k, ScaledTile::kColumns, &operands->weight); !s.ok()) return s;
  if (Status s = encode_scales(p.x, p.rows, p.k, ScaledTile::kSteps / part, 1, &operands->x_scales); !s.ok()) return s;
  return encode_scales(p.weight, p.columns, p.k, ScaledTile::kSteps, ScaledTile::kColumns / ScaledTile::kScaleRows,
                       &operands->weight_scales);
}

}  // namespace

bool has_scaled_tiles(int capability) {
  return kBuiltForSm100 && (capability == 100 || capability == 103 || capability == 110);
}

Status scaled_tiles_take(const ScaledProduct& product, int blocks, const DeviceProperties& device) {
  if (!has_scaled_tiles(device.capability)) {
    return fail(ISOBIT_UNSUPPORTED, "built for compute capability 10.0, 10.3 and 11.0, the device has %d.%d",
                device.capability / 10, device.capability % 10);
  }
  if (device.shared_bytes_per_block < ScaledTile::kSharedBytes) {
    return fail(ISOBIT_UNSUPPORTED, "needs %u bytes of shared memory a block, the device has %zu",
                ScaledTile::kSharedBytes, device.shared_bytes_per_block);
  }
  if (product.k % ScaledTile::kStepDepth != 0) {
    return refuse("x.codes", "K a multiple of 64", "%lld", static_cast<long long>(product.k));
  }
  if (Status s = check_operand("x", product.x, product.rows); !s.ok()) return s;
  if (Status s = check_operand("weight", product.weight, product.columns); !s.ok()) return s;
  const int64_t units = tiles(product.rows, ScaledTile::kRows) * tiles(product.columns, blocks * ScaledTile::kColumns);
  if (units < int64_t{1} << 31) return Status();
  return fail(ISOBIT_UNSUPPORTED, "x, weight: expected fewer than 2^31 tiles of %d x %d, got %lld", ScaledTile::kRows,
              blocks * ScaledTile::kColumns, static_cast<long long>(units));
}

Status refuse_in_place_of_scaled_tiles(const char* forced, const DeviceProperties& device) {
  if (forced != nullptr || !has_scaled_tiles(device.capability)) return Status();
  return fail(ISOBIT_UNSUPPORTED, "on this device by name only (kernel), since its bits are not those of sm100");
}

device::ScaledPlan scaled_plan(const ScaledProduct& product, int blocks) {
  const auto rows = static_cast<int32_t>(tiles(product.rows, ScaledTile::kRows));
  const auto columns = static_cast<int32_t>(tiles(product.columns, blocks * ScaledTile::kColumns));
  return {{rows, columns, std::min(rows, kGroupRowTiles)}, static_cast<int32_t>(product.k / ScaledTile::kStepDepth)};
}

Status launch_scaled_tiles(int device, const void* kernel, const ScaledProduct& product, int blocks, void* job,
                           void* stream) {
  device::ScaledOperands operands;
  if (Status s = scaled_operands(product, blocks, &operands); !s.ok()) return s;
  DeviceProperties properties;
  if (Status s = runtime().properties(device, &properties); !s.ok()) return s;
  if (Status s = runtime().allow_shared_memory(device, kernel, ScaledTile::kSharedBytes); !s.ok()) return s;
  const int64_t units = scaled_plan(product, blocks).order.count();
  const int64_t clusters = std::min<int64_t>(units, std::max(properties.multiprocessors / blocks, 1));
  LaunchShape shape;
  shape.grid.x = static_cast<uint32_t>(clusters * blocks);
  shape.block.x = ScaledTile::kThreads;
  shape.cluster.x = static_cast<uint32_t>(blocks);
  shape.dynamic_shared_bytes = ScaledTile::kSharedBytes;
  void* arguments[] = {&operands, job};
  return runtime().launch(device, kernel, shape, arguments, stream);
}

}  // namespace isobit
