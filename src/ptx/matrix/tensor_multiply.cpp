// tcgen05 by one thread: products, copies into tensor memory, commits.
#include <cstring>

#include "ptx/arithmetic/tensor_arithmetic.h"
#include "ptx/matrix/matrix_descriptor.h"
#include "ptx/matrix/tcgen05.h"
#include "ptx/matrix/tensor_instruction.h"
#include "ptx/memory/mbarrier_state.h"

namespace isobit::ptx {
namespace {

constexpr int kMostM = 128, kMostN = 256, kRowBytes = 32;
constexpr uint32_t kQuarterLanes = 32, kQuarters = 4;

struct Operands {
  uint16_t a[kMostM][kRowBytes / 2];
  uint16_t b[kMostN][kRowBytes / 2];
  uint32_t a_scales[kMostM], b_scales[kMostN];
  float d[kMostM][kMostN];
};

struct Multiplication {
  TensorInstruction shape;
  MatrixDescriptor a, b;
  uint32_t d = 0, a_scales = 0, b_scales = 0;  // addresses in tensor memory
  bool scaled = false, accumulate = false;
  uint32_t disabled[kQuarters] = {};  // masks of lanes of D that stay as they are
};

// Row m of D: with M = 64 every second half of a quarter of the lanes holds nothing.
uint32_t lane_of_row(const Multiplication& x, uint32_t row) {
  return tensor_lane(x.d) + (x.shape.m == 64 ? row / 16 * kQuarterLanes + row % 16 : row);
}

// Four bytes for each row: row r in lane r % 32 of column r / 32, the same in all four quarters of the lanes.
void read_scales(Cta& cta, uint32_t address, int rows, uint32_t* out, const AsyncOperation& operation) {
  if (tensor_lane(address) != 0)
    throw ExecutionFault{FindingKind::kTensorMemory, "scale factors at " + hex(address) + ": expected lane 0"};
  for (uint32_t first = 0; first < static_cast<uint32_t>(rows); first += kQuarterLanes) {
    const uint32_t column = tensor_column(address) + first / kQuarterLanes;
    const uint32_t count = std::min(kQuarterLanes, static_cast<uint32_t>(rows) - first);
    for (uint32_t q = 0; q < kQuarters; ++q) {
      const uint32_t* words =
          cta.tensor.access(cta.engine, {q * kQuarterLanes, count, column, 1}, false, accessor_of(operation));
      for (uint32_t r = 0; r < count; ++r) {
        const uint32_t word = words[r * kTensorColumns];
        if (q == 0) out[first + r] = word;
        if (word == out[first + r]) continue;
        throw ExecutionFault{FindingKind::kTensorMemory, "scale factors of row " + std::to_string(first + r) +
                                                             " differ between quarters of the lanes"};
      }
    }
  }
}

// Calls f(row of D, words of tensor memory) for every row, as a read or a write of D.
template <class F>
void for_each_row_of_d(Cta& cta, const Multiplication& x, bool write, const AsyncOperation& operation, F&& f) {
  const uint32_t rows = static_cast<uint32_t>(x.shape.m), part = rows / kQuarters;
  for (uint32_t first = 0; first < rows; first += part) {
    const TensorRegion region{lane_of_row(x, first), part, tensor_column(x.d), static_cast<uint32_t>(x.shape.n)};
    uint32_t* words = cta.tensor.access(cta.engine, region, write, accessor_of(operation));
    for (uint32_t r = 0; r < part; ++r) f(first + r, words + r * kTensorColumns);
  }
}

void negate(uint16_t (*m)[kRowBytes / 2], int rows, bool scaled) {
  const uint16_t signs = scaled ? 0x8888 : 0x8000;
  for (int r = 0; r < rows; ++r) {
    for (int k = 0; k < kRowBytes / 2; ++k) m[r][k] ^= signs;
  }
}

void perform(Cta& cta, const Multiplication& x, const AsyncOperation& operation) {
  thread_local Operands o;
  const int m = x.shape.m, n = x.shape.n;
  const size_t row_bytes = static_cast<size_t>(n) * sizeof(float);
  read_matrix(cta, x.a, m, x.shape.a_mn_major, &o.a[0][0], operation);
  read_matrix(cta, x.b, n, x.shape.b_mn_major, &o.b[0][0], operation);
  if (x.shape.negate_a) negate(o.a, m, x.scaled);
  if (x.shape.negate_b) negate(o.b, n, x.scaled);
  if (x.accumulate) {
    for_each_row_of_d(cta, x, false, operation,
                      [&](uint32_t r, const uint32_t* words) { std::memcpy(o.d[r], words, row_bytes); });
  } else {
    for (int r = 0; r < m; ++r) std::memset(o.d[r], 0, row_bytes);
  }
  const TensorArithmetic& arithmetic = cta.engine.tensor_arithmetic();
  if (x.scaled) {
    read_scales(cta, x.a_scales, m, o.a_scales, operation);
    read_scales(cta, x.b_scales, n, o.b_scales, operation);
    const auto bytes = [](const uint16_t* p) { return reinterpret_cast<const uint8_t*>(p); };
    arithmetic.multiply_scaled(
        {m, n, bytes(&o.a[0][0]), bytes(&o.b[0][0]), o.a_scales, o.b_scales, &o.d[0][0], kMostN});
  } else {
    arithmetic.multiply({x.shape.format, m, n, &o.a[0][0], &o.b[0][0], &o.d[0][0], kMostN});
  }
  for_each_row_of_d(cta, x, true, operation, [&](uint32_t r, uint32_t* words) {
    const uint32_t lane = lane_of_row(x, r);
    if (!(x.disabled[lane / 32] >> lane % 32 & 1)) std::memcpy(words, o.d[r], row_bytes);
  });
  ++cta.engine.statistics().mma;
}

// mode
constexpr uint32_t kScaled = 1;

// d: address of D, a and b: matrix descriptors, c: instruction descriptor, e: accumulate, list: addresses of the scale
// factors or masks of disabled lanes.
void multiply(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) {
    Multiplication x;
    x.scaled = i.mode & kScaled;
    const uint32_t shape = w.word(i.c)[l];
    x.shape = x.scaled ? nvfp4_instruction(shape) : f16_instruction(shape);
    x.a = tensor_descriptor(w.wide(i.a)[l]);
    x.b = tensor_descriptor(w.wide(i.b)[l]);
    x.d = w.word(i.d)[l];
    const uint32_t lane = tensor_lane(x.d);
    if (lane != 0 && !(x.shape.m == 64 && lane == 16))
      throw ExecutionFault{FindingKind::kTensorMemory, "D at lane " + std::to_string(lane)};
    x.accumulate = w.predicate(i.e) >> l & 1;
    if (x.scaled) {
      x.a_scales = w.word(i.list[0])[l];
      x.b_scales = w.word(i.list[1])[l];
    } else {
      for (size_t k = 0; k < i.list.size(); ++k) x.disabled[k] = w.word(i.list[k])[l];
    }
    Cta* cta = &w.cta;
    w.engine.submit(w.engine.begin_pipe_operation(w, false), [=](AsyncOperation& o) { perform(*cta, x, o); });
  });
}

// a: address in tensor memory, b: matrix descriptor. 32 rows of 16 bytes become four columns, in each quarter of the
// lanes.
void copy_in(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) {
    const uint32_t to = w.word(i.a)[l];
    const MatrixDescriptor from = tensor_descriptor(w.wide(i.b)[l]);
    if (tensor_lane(to) != 0)
      throw ExecutionFault{FindingKind::kTensorMemory, "a copy to " + hex(to) + ": expected lane 0"};
    Cta* cta = &w.cta;
    w.engine.submit(w.engine.begin_pipe_operation(w, true), [=](AsyncOperation& o) {
      const TensorRegion region{0, kTensorLanes, tensor_column(to), kMatrixPiece / 4};
      uint32_t* words = cta->tensor.access(cta->engine, region, true, accessor_of(o));
      for (uint32_t r = 0; r < kQuarterLanes; ++r) {
        const std::byte* piece = read_piece(*cta, k_major_piece(from, r, 0), o);
        for (uint32_t q = 0; q < kQuarters; ++q)
          std::memcpy(words + (q * kQuarterLanes + r) * kTensorColumns, piece, kMatrixPiece);
      }
    });
  });
}

// a: barrier, b: mask of CTAs or none.
void commit(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) {
    const uint32_t barrier = static_cast<uint32_t>(i.wide_address ? w.wide(i.a)[l] : w.word(i.a)[l]);
    const bool multicast = i.b != kNoSlot;
    const uint32_t ranks = multicast ? w.word(i.b)[l] & 0xFFFF : 1u << shared_rank(barrier);
    if (ranks == 0) throw ExecutionFault{FindingKind::kBarrierMisuse, "empty multicast mask"};
    Cta* cta = &w.cta;
    w.engine.submit(w.engine.begin_pipe_operation(w, false), [=](AsyncOperation& o) {
      for_each_lane(ranks, [&](int rank) {
        const uint32_t signal = shared_offset(barrier) | static_cast<uint32_t>(rank) << 24;
        MemoryBarrier& b = find_memory_barrier(*cta, signal, o.clock, true, o.pc);
        b.arriving.join(o.clock);
        arrive_on(cta->engine, b, 1);
      });
    });
  });
}

}  // namespace

void decode_tensor_copy_in(Decoder& d) {
  Instruction& out = d.out();
  d.require("32x128b");
  d.require("warpx4");
  d.expect_count(2, 2);
  out.a = d.plain_address(d.operand(0), 32);
  out.b = d.source(1, Type::kB64);
  out.handler = copy_in;
}

void decode_tensor_commit(Decoder& d) {
  Instruction& out = d.out();
  d.require("mbarrier::arrive::one");
  const bool multicast = d.take("multicast::cluster");
  out.wide_address = !d.take("shared::cluster");
  d.require("b64");
  d.expect_count(multicast ? 2 : 1, multicast ? 2 : 1);
  out.a = d.plain_address(d.operand(0), out.wide_address ? 64 : 32);
  if (multicast) out.b = d.source(1, Type::kB16);
  out.handler = commit;
}

void decode_tensor_multiply(Decoder& d) {
  Instruction& out = d.out();
  const bool scaled = d.require_any({"kind::f16", "kind::mxf4nvf4"}) == 1;
  // Which operand stays in the unit's own buffer has no effect on the result.
  d.take_any({"collector::a::fill", "collector::a::use", "collector::a::lastuse", "collector::a::discard"});
  if (scaled) {
    d.require("block_scale");
    d.require_any({"block16", "scale_vec::4X"});
    d.expect_count(7, 7);
    out.mode = kScaled;
    for (const size_t k : {size_t{4}, size_t{5}}) out.list.push_back(d.plain_address(d.operand(k), 32));
  } else {
    const bool masked = d.count() > 5;
    d.expect_count(5, 6);
    if (masked) {
      if (d.operand(4).parts.size() != kQuarters) d.fail("expected four masks of disabled lanes");
      for (const Operand& part : d.operand(4).parts) out.list.push_back(d.source(part, Type::kB32));
    }
  }
  if (d.operand(1).kind == OperandKind::kAddress) d.fail("A from tensor memory is not supported");
  out.d = d.plain_address(d.operand(0), 32);
  out.a = d.source(1, Type::kB64);
  out.b = d.source(2, Type::kB64);
  out.c = d.source(3, Type::kB32);
  out.e = d.predicate(d.operand(d.count() - 1));
  out.handler = multiply;
}

}  // namespace isobit::ptx
