// cp.async.bulk.tensor: boxes of a tensor between global and shared memory.
#include <cstring>

#include "ptx/engine/lanes.h"
#include "ptx/memory/async_copies.h"
#include "ptx/memory/mbarrier_state.h"
#include "ptx/memory/tensor_map.h"

namespace isobit::ptx {
namespace {

using Coordinates = std::array<int64_t, 5>;

TensorMapBits read_map(Engine& engine, uint64_t address, size_t rank, int32_t pc) {
  if (address % 64 != 0) misaligned(address, 64);
  TensorMapBits map;
  std::memcpy(&map, access_global(engine, address, 128, false, pc), sizeof map);
  if (map.magic != kTensorMapMagic) throw ExecutionFault{FindingKind::kTensorMap, "no tensor map at " + hex(address)};
  if (map.rank != rank) {
    throw ExecutionFault{FindingKind::kTensorMap, "a map of rank " + std::to_string(map.rank) +
                                                      " where the instruction has " + std::to_string(rank)};
  }
  return map;
}

uint32_t box_bytes(const TensorMapBits& map) {
  uint64_t bytes = map.element_bytes;
  for (const uint32_t extent : map.box) bytes *= extent;
  return static_cast<uint32_t>(bytes);
}

// One row of a box: where it starts in shared memory and which of its bytes exist in the tensor.
struct BoxRow {
  uint32_t shared = 0;  // offset before swizzling
  uint64_t global = 0;  // address of the first existing byte
  uint32_t begin = 0, end = 0;
};

// Calls f(row) for every row of the box at `origin`.
template <class F>
void for_each_row(const TensorMapBits& map, const Coordinates& origin, uint32_t shared, F&& f) {
  const uint32_t row_bytes = map.box[0] * map.element_bytes;
  uint32_t index[5] = {0, 0, 0, 0, 0};
  for (uint64_t rows = box_bytes(map) / row_bytes; rows > 0; --rows, shared += row_bytes) {
    BoxRow row{shared, map.address, 0, row_bytes};
    for (int i = 1; i < map.rank; ++i) {
      const int64_t c = origin[static_cast<size_t>(i)] + index[i];
      if (c < 0 || static_cast<uint64_t>(c) >= map.shape[i]) row.end = 0;
      row.global += static_cast<uint64_t>(c) * map.stride_bytes[i - 1];
    }
    const int64_t size = map.element_bytes, first = origin[0];
    const int64_t inside_begin = std::max<int64_t>(0, -first), inside_end = static_cast<int64_t>(map.shape[0]) - first;
    row.begin = static_cast<uint32_t>(std::min<int64_t>(inside_begin * size, row.end));
    row.end = static_cast<uint32_t>(std::max<int64_t>(row.begin, std::min<int64_t>(row.end, inside_end * size)));
    row.global += static_cast<uint64_t>((first * size) + row.begin);
    f(row);
    for (int i = 1; i < 5 && ++index[i] == map.box[i]; ++i) index[i] = 0;
  }
}

// Calls f(shared offset, offset in the row, bytes) for the 16-byte pieces of a row, at their swizzled places.
template <class F>
void for_each_piece(const TensorMapBits& map, const BoxRow& row, F&& f) {
  const uint32_t row_bytes = map.box[0] * map.element_bytes;
  for (uint32_t x = 0; x < row_bytes; x += 16) f(swizzled(row.shared + x, map.swizzle), x);
}

void check_box(const TensorMapBits& map, uint32_t shared) {
  if (shared % 128 != 0) misaligned(shared, 128);
  if (map.swizzle != Swizzle::kNone && map.box[0] * map.element_bytes != swizzle_bytes(map.swizzle)) {
    throw ExecutionFault{FindingKind::kUnsupported, "box rows narrower than their swizzle are not modelled"};
  }
}

void load_box(Cta& cta, const TensorMapBits& map, const Coordinates& origin, uint32_t shared,
              const AsyncOperation& operation) {
  std::vector<std::byte> staged(map.box[0] * map.element_bytes);
  for_each_row(map, origin, shared_offset(shared), [&](const BoxRow& row) {
    std::fill(staged.begin(), staged.end(), std::byte{0});
    if (row.end > row.begin) {
      std::memcpy(staged.data() + row.begin,
                  access_global(cta.engine, row.global, row.end - row.begin, false, operation.pc), row.end - row.begin);
    }
    for_each_piece(map, row, [&](uint32_t offset, uint32_t x) {
      const SharedPlace place = locate_shared(cta, offset | cta.rank << 24, 16, "tensor copy");
      std::memcpy(access_shared_async(place, 16, true, operation, true), staged.data() + x, 16);
    });
  });
}

// The device stores whole pieces of 16 bytes: where the tensor ends inside one, the rest of that piece is written too
// (a tensor of 60 16-bit columns, H200, 2026-11-29). Loads fill with zeros from the exact end.
uint32_t stored_bytes(const BoxRow& row, uint32_t row_bytes) {
  return std::min((row.end + 15) / 16 * 16, row_bytes) - row.begin;
}

void store_box(Cta& cta, const TensorMapBits& map, const Coordinates& origin, uint32_t shared,
               const AsyncOperation& operation) {
  std::vector<std::byte> staged(map.box[0] * map.element_bytes);
  for_each_row(map, origin, shared_offset(shared), [&](const BoxRow& row) {
    for_each_piece(map, row, [&](uint32_t offset, uint32_t x) {
      const SharedPlace place = locate_shared(cta, offset | cta.rank << 24, 16, "tensor copy");
      std::memcpy(staged.data() + x, access_shared_async(place, 16, false, operation, true), 16);
    });
    if (row.end > row.begin) {
      const uint32_t bytes = stored_bytes(row, static_cast<uint32_t>(staged.size()));
      std::memcpy(access_global(cta.engine, row.global, bytes, true, operation.pc), staged.data() + row.begin, bytes);
    }
  });
}

Coordinates read_coordinates(Warp& w, const Instruction& i, const TensorMapBits& map, int lane) {
  Coordinates c{};
  for (size_t k = 0; k < i.list.size(); ++k) c[k] = static_cast<int32_t>(w.word(i.list[k])[lane]);
  if (c[0] % map.packed != 0) throw ExecutionFault{FindingKind::kTensorMap, "a coordinate inside a byte"};
  c[0] /= map.packed;
  return c;
}

// a: shared destination, b: map, e: barrier, c: multicast mask or none, list: coordinates.
void tensor_load(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) {
    const TensorMapBits map = read_map(w.engine, w.wide(i.b)[l], i.list.size(), w.pc);
    const Coordinates origin = read_coordinates(w, i, map, l);
    const uint32_t to = w.word(i.a)[l], barrier = w.word(i.e)[l];
    const bool multicast = i.c != kNoSlot;
    const uint32_t ranks = multicast ? w.word(i.c)[l] & 0xFFFF : 1u << shared_rank(to);
    check_box(map, to);
    if (ranks == 0) throw ExecutionFault{FindingKind::kTensorMap, "empty multicast mask"};
    Cta* own = &w.cta;
    w.engine.submit(w, [=](AsyncOperation& operation) {
      for_each_lane(ranks, [&](int rank) {
        const uint32_t window = static_cast<uint32_t>(rank) << 24;
        Cta* target = locate_shared(*own, shared_offset(to) | window, box_bytes(map), "tensor copy").cta;
        load_box(*target, map, origin, to, operation);
        const uint32_t signal = multicast ? shared_offset(barrier) | window : barrier;
        MemoryBarrier& b = find_memory_barrier(*own, signal, operation.clock, true, operation.pc);
        complete_bytes(own->engine, b, box_bytes(map), operation.clock);
      });
    });
  });
}

// A box to load may begin before the tensor. A box to store may only end behind it: the CUDA programming guide rules
// out negative coordinates there.
void check_store_origin(const Coordinates& origin) {
  for (const int64_t c : origin) {
    if (c < 0) throw ExecutionFault{FindingKind::kTensorMap, "a store at the negative coordinate " + std::to_string(c)};
  }
}

// a: map, b: shared source, list: coordinates.
void tensor_store(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) {
    const TensorMapBits map = read_map(w.engine, w.wide(i.a)[l], i.list.size(), w.pc);
    const Coordinates origin = read_coordinates(w, i, map, l);
    const uint32_t from = w.word(i.b)[l];
    check_box(map, from);
    check_store_origin(origin);
    Cta* cta = &w.cta;
    const AsyncHandle handle = w.engine.submit(w, [=](AsyncOperation& operation) {
      locate_shared(*cta, from, box_bytes(map), "tensor copy");
      store_box(*cta, map, origin, from, operation);
    });
    w.bulk_copies[static_cast<size_t>(l)].open.push_back(handle);
  });
}

void do_nothing(Warp&, const Instruction&, LaneMask) {}

// The map and the coordinates of `[map, {x, y}]`.
Slot take_tensor(Decoder& d, const Operand& o, size_t rank) {
  if (o.kind != OperandKind::kAddress || o.parts.size() != 2 || o.parts[1].kind != OperandKind::kVector ||
      o.offset != 0) {
    d.fail("expected [map, {coordinates}]");
  }
  if (o.parts[1].parts.size() != rank) d.fail("the number of coordinates does not match the modifier");
  for (const Operand& c : o.parts[1].parts) d.out().list.push_back(d.source(c, Type::kS32));
  return d.source(o.parts[0], Type::kB64);
}

}  // namespace

void decode_tensor_copy(Decoder& d) {
  Instruction& out = d.out();
  const size_t rank = d.require_any({"1d", "2d", "3d", "4d", "5d"}) + 1;
  d.take("tile");
  const bool hint = d.take("L2::cache_hint");
  if (d.take("prefetch")) {
    d.require("L2");
    d.require("global");
    d.expect_count(1 + hint, 1 + hint);
    take_tensor(d, d.operand(0), rank);
    out.handler = do_nothing;
    return;
  }
  const bool store = d.take("bulk_group");
  d.require("global");
  if (store) {
    d.require("shared::cta");
    d.expect_count(2 + hint, 2 + hint);
    out.a = take_tensor(d, d.operand(0), rank);
    out.b = d.plain_address(d.operand(1), 32);
    out.handler = tensor_store;
  } else {
    d.require_any({"shared::cluster", "shared::cta"});
    d.require("mbarrier::complete_tx::bytes");
    const bool multicast = d.take("multicast::cluster");
    const size_t operands = 3u + multicast + hint;
    d.expect_count(operands, operands);
    out.a = d.plain_address(d.operand(0), 32);
    out.b = take_tensor(d, d.operand(1), rank);
    out.e = d.plain_address(d.operand(2), 32);
    if (multicast) out.c = d.source(3, Type::kB16);
    out.handler = tensor_load;
  }
  if (hint) d.source(d.count() - 1, Type::kB64);
}

}  // namespace isobit::ptx
