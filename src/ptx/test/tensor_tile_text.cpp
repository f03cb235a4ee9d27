#include <string>

#include "ptx/test/tensor_tile.h"

namespace isobit::ptx::test {
namespace {

const char* const kHead = R"(
.version 8.8
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 tile[];
.visible .entry tile_product(.param .u64 in, .param .u64 out, .param .u32 bytes) .reqntid 128, 1, 1
{
  .reg .pred %p<12>;
  .reg .b32 %r<32>;
  .reg .b32 %v<32>;
  .reg .b64 %d<16>;
  .shared .align 8 .b8 gates[24];
  .shared .align 4 .b8 home[4];
  ld.param.u64 %d1, [in];
  ld.param.u64 %d2, [out];
  ld.param.u32 %r1, [bytes];
  mov.u32 %r2, %tid.x;
  shr.u32 %r3, %r2, 5;
  mov.u32 %r4, gates;
  mov.u32 %r5, tile;
  setp.ne.u32 %p1, %r2, 0;
  setp.ne.u32 %p2, %r3, 1;
  setp.ne.u32 %p3, %r3, 0;
  @%p1 bra INITIALISED;
  mbarrier.init.shared::cta.b64 [%r4], 1;
  mbarrier.init.shared::cta.b64 [%r4+8], 1;
  mbarrier.init.shared::cta.b64 [%r4+16], 4;
  fence.mbarrier_init.release.cluster;
INITIALISED:
  @%p2 bra ALLOCATED;
  mov.u32 %r6, home;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r6], 128;
  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
ALLOCATED:
  bar.sync 0;
  ld.shared.b32 %r7, [home];
  mov.b32 %r8, 0;
TURN:
  setp.ne.u32 %p5, %r8, 0;
  @%p3 bra ISSUED;
  elect.sync _|%p4, -1;
  @!%p4 bra ELECTED;
  @%p5 bra EMPTY;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], %r1;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%d1], %r1, [%r4];
FULL:
  mbarrier.try_wait.parity.shared::cta.b64 %p6, [%r4], 0;
  @!%p6 bra FULL;
  bra MULTIPLY;
EMPTY:
  mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p7, [%r4+16], 0;
  @!%p7 bra EMPTY;
  tcgen05.fence::after_thread_sync;
MULTIPLY:
)";

const char* const kTail = R"(
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r14];
ELECTED:
  bar.warp.sync -1;
ISSUED:
  mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r4+8], %r8;
  @!%p9 bra ISSUED;
  tcgen05.fence::after_thread_sync;
  shl.b32 %r20, %r3, 21;
  add.u32 %r20, %r20, %r7;
  tcgen05.ld.sync.aligned.32x32b.x16.b32 {LOW}, [%r20];
  tcgen05.ld.sync.aligned.32x32b.x16.b32 {HIGH}, [%r20+16];
  tcgen05.wait::ld.sync.aligned;
  tcgen05.fence::before_thread_sync;
  elect.sync _|%p8, -1;
  @%p8 mbarrier.arrive.relaxed.cluster.shared::cta.b64 _, [%r4+16];
  mad.lo.u32 %r21, %r8, 128, %r2;
  mul.wide.u32 %d3, %r21, 128;
  add.s64 %d4, %d2, %d3;
STORES
  add.u32 %r8, %r8, 1;
  setp.lt.u32 %p10, %r8, 2;
  @%p10 bra TURN;
  bar.sync 0;
  @%p2 bra END;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, 128;
END:
  ret;
}
)";

// The products of one turn. %r14 becomes the barrier of the commit.
const char* const kNvfp4 = R"(
  // B, the scale factors of A, then those of B behind A; their columns behind D.
  add.u32 %r9, %r5, 16384;
  add.u32 %r10, %r5, 20480;
  add.u32 %r11, %r5, 22528;
  DESCRIPTOR(%d5, %r5, 0x4000404000010000)
  DESCRIPTOR(%d6, %r9, 0x4000404000010000)
  DESCRIPTOR(%d7, %r10, 0x0000400800000000)
  DESCRIPTOR(%d8, %r11, 0x0000400800000000)
  add.u32 %r12, %r7, 32;
  add.u32 %r13, %r7, 48;
  mov.b32 %r15, 0;
  mov.b32 %r16, 0x08080480;
STEP:
  tcgen05.cp.cta_group::1.32x128b.warpx4 [%r12], %d7;
  tcgen05.cp.cta_group::1.32x128b.warpx4 [%r13], %d8;
  or.b32 %r17, %r15, %r8;
  setp.ne.u32 %p11, %r17, 0;
  tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 [%r7], %d5, %d6, %r16, [%r12], [%r13], %p11;
  add.u64 %d5, %d5, 2;
  add.u64 %d6, %d6, 2;
  add.u64 %d7, %d7, 32;
  add.u64 %d8, %d8, 32;
  add.u32 %r12, %r12, 4;
  add.u32 %r13, %r13, 4;
  add.u32 %r15, %r15, 1;
  setp.lt.u32 %p11, %r15, 4;
  @%p11 bra STEP;
  add.u32 %r14, %r4, 8;
)";

const char* const kBf16 = R"(
  add.u32 %r9, %r5, 16384;
  DESCRIPTOR(%d5, %r5, 0x4000404000010000)
  DESCRIPTOR(%d6, %r9, 0x4000404000010000)
  mov.b32 %r15, 0;
  mov.b32 %r16, 0x08080490;
STEP:
  or.b32 %r17, %r15, %r8;
  setp.ne.u32 %p11, %r17, 0;
  tcgen05.mma.cta_group::1.kind::f16 [%r7], %d5, %d6, %r16, %p11;
  add.u64 %d5, %d5, 2;
  add.u64 %d6, %d6, 2;
  add.u32 %r15, %r15, 1;
  setp.lt.u32 %p11, %r15, 4;
  @%p11 bra STEP;
  add.u32 %r14, %r4, 8;
)";

void replace(std::string& text, const std::string& mark, const std::string& by) {
  text.replace(text.find(mark), mark.size(), by);
}

// DESCRIPTOR(to, address, rest): address / 16 in the low bits, `rest` elsewhere.
void expand_descriptors(std::string& text) {
  for (size_t at; (at = text.find("DESCRIPTOR(")) != std::string::npos;) {
    const size_t first = text.find(',', at), second = text.find(',', first + 1), end = text.find(')', at);
    const std::string to = text.substr(at + 11, first - at - 11), from = text.substr(first + 2, second - first - 2);
    const std::string rest = text.substr(second + 2, end - second - 2);
    text.replace(at, end - at + 1,
                 "shr.u32 %r31, " + from + ", 4;\n  cvt.u64.u32 " + to + ", %r31;\n  or.b64 " + to + ", " + to + ", " +
                     rest + ";");
  }
}

std::string registers(int first, int count) {
  std::string list;
  for (int i = first; i < first + count; ++i) list += (i == first ? "%v" : ", %v") + std::to_string(i);
  return list;
}

}  // namespace

std::string tile_text(TileKind kind) {
  std::string text = std::string(kHead) + (kind == TileKind::kNvfp4 ? kNvfp4 : kBf16) + kTail;
  if (kind == TileKind::kBf16ColumnsOfB) {
    // 32 columns are 64 bytes, eight k an atom of 512 bytes, a step two of these.
    replace(text, "%r9, 0x4000404000010000", "%r9, 0x8000402000010000");
    replace(text, "%d6, %d6, 2;", "%d6, %d6, 64;");
    replace(text, "0x08080490", "0x08090490");
  }
  expand_descriptors(text);
  replace(text, "LOW", registers(0, 16));
  replace(text, "HIGH", registers(16, 16));
  std::string stores;
  for (int i = 0; i < kTileN; i += 4)
    stores += "  st.global.v4.b32 [%d4+" + std::to_string(4 * i) + "], {" + registers(i, 4) + "};\n";
  replace(text, "STORES\n", stores);
  return text;
}

}  // namespace isobit::ptx::test
