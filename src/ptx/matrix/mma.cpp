// mma.sync m16n8k16 with fp32 accumulators.
#include <bit>

#include "ptx/arithmetic/mma_arithmetic.h"
#include "ptx/decode/families.h"
#include "ptx/engine/lanes.h"
#include "ptx/values/collective.h"

namespace isobit::ptx {
namespace {

constexpr int kM = 16, kN = 8, kK = 16;

uint16_t half_of(uint32_t word, int which) { return static_cast<uint16_t>(word >> (16 * which)); }

// list: d0-d3, a0-a3, b0-b1, c0-c3. mode: MmaFormat.
void multiply(Warp& w, const Instruction& i, LaneMask active) {
  if (!converged(w, kAllLanes, active)) return;
  uint16_t a[kM][kK], b[kN][kK];
  float d[kM][kN];
  for (int l = 0; l < kLanes; ++l) {
    const int row = l / 4, column = 2 * (l % 4);
    for (int h = 0; h < 2; ++h) {
      for (int r = 0; r < 4; ++r)
        a[row + 8 * (r & 1)][column + 8 * (r >> 1) + h] = half_of(w.word(i.list[4 + static_cast<size_t>(r)])[l], h);
      for (int r = 0; r < 2; ++r)
        b[row][column + 8 * r + h] = half_of(w.word(i.list[8 + static_cast<size_t>(r)])[l], h);
      for (int r = 0; r < 2; ++r)
        d[row + 8 * r][column + h] = std::bit_cast<float>(w.word(i.list[10 + static_cast<size_t>(2 * r + h)])[l]);
    }
  }
  w.engine.arithmetic().multiply({static_cast<MmaFormat>(i.mode), kM, kN, &a[0][0], &b[0][0], &d[0][0], kN});
  for (int l = 0; l < kLanes; ++l) {
    for (int r = 0; r < 4; ++r) {
      w.word(i.list[static_cast<size_t>(r)])[l] =
          std::bit_cast<uint32_t>(d[l / 4 + 8 * (r >> 1)][2 * (l % 4) + (r & 1)]);
    }
  }
  ++w.engine.statistics().mma;
}

void take_fragment(Decoder& d, size_t index, size_t count, Type type, bool destination) {
  const Operand& o = d.operand(index);
  if (o.kind != OperandKind::kVector || o.parts.size() != count)
    d.fail("operand " + std::to_string(index + 1) + " needs " + std::to_string(count) + " registers");
  for (const Operand& part : o.parts)
    d.out().list.push_back(destination ? d.destination(part, type) : d.source(part, type));
}

}  // namespace

void decode_mma(Decoder& d) {
  d.require("sync");
  d.require("aligned");
  if (!d.take("m16n8k16")) d.fail("only m16n8k16 is supported: no other shape's arithmetic was measured");
  d.require("row");
  d.require("col");
  const Type c = d.take_type(), b = d.take_type(), a = d.take_type(), result = d.take_type();
  const bool known = a == b && c == Type::kF32 && result == Type::kF32 && (a == Type::kBf16 || a == Type::kF16);
  if (!known) d.fail("only bf16 and f16 with f32 accumulators are supported");
  d.expect_count(4, 4);
  take_fragment(d, 0, 4, Type::kF32, true);
  take_fragment(d, 1, 4, Type::kB32, false);
  take_fragment(d, 2, 2, Type::kB32, false);
  take_fragment(d, 3, 4, Type::kF32, false);
  d.out().mode = static_cast<uint32_t>(a == Type::kBf16 ? MmaFormat::kBf16 : MmaFormat::kFp16);
  d.out().flow = Flow::kMayStop;
  d.out().handler = multiply;
}

}  // namespace isobit::ptx
