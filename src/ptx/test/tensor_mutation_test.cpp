// Mutants of the tile product on tensor memory: each planted mistake is caught, or stands here as a known blind spot.
#include <gtest/gtest.h>

#include "ptx/test/mutants.h"
#include "ptx/test/tensor_tile.h"

namespace isobit::ptx::test {
namespace {

constexpr const char* kDrop = "";

const Mutant kMutants[] = {
    {"initialisation fence dropped", "fence.mbarrier_init", 1, kDrop, "proxy-fence"},
    {"barrier after the allocation dropped", "bar.sync", 1, kDrop, "uninitialised-read"},
    {"wait for the operands always passes", "mbarrier.try_wait", 1, "setp.eq.u32 %p6, 0, 0;", "race"},
    {"wait for the readers always passes", "mbarrier.try_wait", 2, "setp.eq.u32 %p7, 0, 0;", "deadlock"},
    {"fence after the wait for the readers dropped", "tcgen05.fence::after", 1, kDrop, "race"},
    {"wait for the products always passes", "mbarrier.try_wait", 3, "setp.eq.u32 %p9, 0, 0;", "uninitialised-read"},
    {"fence after the wait for the products dropped", "tcgen05.fence::after", 2, kDrop, "tensor-fence"},
    {"commit dropped", "tcgen05.commit", 1, kDrop, "deadlock"},
    {"commit to the readers' barrier", "add.u32 %r14, %r4, 8", 1, "add.u32 %r14, %r4, 16;", "deadlock"},
    {"commit to the operands' barrier", "add.u32 %r14, %r4, 8", 1, "mov.b32 %r14, %r4;", "deadlock"},
    {"wait::ld dropped", "tcgen05.wait::ld", 1, kDrop, "race"},
    {"fence before the arrival dropped", "tcgen05.fence::before", 1, kDrop, "race"},
    {"arrival of the readers dropped", "@%p8 mbarrier.arrive", 1, kDrop, "deadlock"},
    {"barrier before the release dropped", "bar.sync", 2, kDrop, "race"},
    {"release dropped", "tcgen05.dealloc", 1, kDrop, "tensor-memory"},
    {"half of the columns released", "sync.aligned.b32 %r7, 128", 1, "sync.aligned.b32 %r7, 64;", "tensor-memory"},
    {"too few columns allocated", "[%r6], 128", 1, "[%r6], 64;", "tensor-memory"},
    {"columns: no power of two", "[%r6], 128", 1, "[%r6], 96;", "tensor-memory"},
    {"permit relinquished before the allocation", "tcgen05.alloc", 1,
     "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; "
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 "
     "[%r6], 128;",
     "tensor-memory"},
    {"every warp reads the first lanes", "shl.b32 %r20, %r3, 21", 1, "mov.b32 %r20, 0;", "tensor-memory"},
    {"first column left out", "}, [%r20]", 1, "}, [%r20+1];", "values"},
    {"read behind the accumulator", "[%r20+16]", 1, "[%r20+112];", "uninitialised-read"},
    {"copy of A's scale factors dropped", "tcgen05.cp", 1, kDrop, "uninitialised-read"},
    {"B's scale factors copied over those of A", "warpx4 [%r13], %d8", 1, "warpx4 [%r12], %d8;", "uninitialised-read"},
    {"scale factors of A and B exchanged", "[%r12], [%r13], %p11", 1, "[%r13], [%r12], %p11;", "values"},
    {"scale factors of a later step not advanced", "add.u64 %d7, %d7, 32", 1, kDrop, "values"},
    {"scale factors of a later step copied over the first", "add.u32 %r12, %r12, 4", 1, kDrop, "race"},
    {"operand of a later step not advanced", "add.u64 %d6, %d6, 2", 1, kDrop, "values"},
    {"first product adds to what was there", "or.b32 %r17, %r15, %r8", 1, "mov.b32 %r17, 1;", "uninitialised-read"},
    {"products do not add up", "or.b32 %r17, %r15, %r8", 1, "mov.b32 %r17, 0;", "values"},
    {"64-byte swizzle", "0x4000404000010000", 1, "0x8000404000010000;", "values"},
    {"stride of eight rows halved", "0x4000404000010000", 1, "0x4000402000010000;", "values"},
    {"descriptor without its version", "0x4000404000010000", 1, "0x4000004000010000;", "tensor-memory"},
    {"half of the columns multiplied", "0x08080480", 1, "0x08040480;", "uninitialised-read"},
    {"64 rows", "0x08080480", 1, "0x04080480;", "tensor-memory"},
    {"UE8M0 scale factors", "0x08080480", 1, "0x08880480;", "tensor-memory"},
    {"elements of another type", "0x08080480", 1, "0x08080500;", "tensor-memory"},
    {"minus B", "0x08080480", 1, "0x08084480;", "values"},
    {"copy engine's barrier expects too little", "_, [%r4], %r1", 1, "_, [%r4], 1024;", "deadlock"},
    {"permit never relinquished", "tcgen05.relinquish", 1, kDrop, "survives"},
};

std::string outcome(const std::string& text) {
  for (const ScheduleCase& schedule : kScheduleCases) {
    const TileResult result = run_tile(text, TileKind::kNvfp4, schedule);
    if (!result.error.empty()) return result.error;
    if (!result.report.ok()) return name_of(result.report.findings[0].kind);
    if (result.out != tile_expected(TileKind::kNvfp4)) return "values";
  }
  return "survives";
}

class TensorMutation : public testing::TestWithParam<Mutant> {};

TEST_P(TensorMutation, IsCaught) {
  const auto mutated = planted(tile_text(TileKind::kNvfp4), GetParam());
  ASSERT_TRUE(mutated.has_value()) << "the pattern is not in the kernel: " << GetParam().find;
  EXPECT_EQ(outcome(*mutated), GetParam().caught) << GetParam().name;
}

INSTANTIATE_TEST_SUITE_P(Tile, TensorMutation, testing::ValuesIn(kMutants));

}  // namespace
}  // namespace isobit::ptx::test
