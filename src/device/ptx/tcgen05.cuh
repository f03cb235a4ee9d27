// Tensor memory and the matrix instructions of one thread, family- and architecture-specific targets of SM100, SM103
// and SM110 (PTX ISA 9.7.16). An address in tensor memory is lane << 16 | column; a column of a lane is 32 bits.
#pragma once

#include <cstdint>

namespace isobit::device::ptx {

// One thread of the warp, always the same for the same warp (PTX ISA 9.7.13, elect.sync). All lanes execute it.
__device__ __forceinline__ bool elect_one() {
  uint32_t elected;
  asm volatile(
      "{\n"
      ".reg .pred chosen;\n"
      "elect.sync _|chosen, 0xFFFFFFFF;\n"
      "selp.u32 %0, 1, 0, chosen;\n"
      "}"
      : "=r"(elected));
  return elected != 0;
}

// Takes columns (a power of two, 32 to 512) for the block and writes their address to shared memory; waits until they
// are free. One warp, all lanes; the same warp gives them back before the block ends.
__device__ __forceinline__ void tensor_memory_allocate(uint32_t shared, uint32_t columns) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared), "r"(columns)
               : "memory");
}
__device__ __forceinline__ void tensor_memory_allocate_no_more() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
}
__device__ __forceinline__ void tensor_memory_free(uint32_t address, uint32_t columns) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns));
}

// Order between tensor-memory operations of different threads: before a thread signals, after a thread has waited.
__device__ __forceinline__ void tensor_fence_before_signal() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
__device__ __forceinline__ void tensor_fence_after_wait() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// 32 rows of 16 bytes in shared memory, behind a descriptor, to four columns: row r to lanes r, r + 32, r + 64, r + 96.
__device__ __forceinline__ void tensor_copy_scales(uint32_t address, uint64_t shared) {
  asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(address), "l"(shared) : "memory");
}

// sums = a b, plus sums if `accumulate`: E2M1 elements, K = 64, one E4M3 scale per 16 elements of a row. `block16` says
// what scale_vec::4X says, and is accepted by the family-specific targets too.
__device__ __forceinline__ void tensor_mma_nvfp4(uint32_t sums, uint64_t a, uint64_t b, uint32_t instruction,
                                                 uint32_t a_scales, uint32_t b_scales, bool accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred accumulate;\n"
      "setp.ne.u32 accumulate, %6, 0;\n"
      "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 [%0], %1, %2, %3, [%4], [%5], accumulate;\n"
      "}" ::"r"(sums),
      "l"(a), "l"(b), "r"(instruction), "r"(a_scales), "r"(b_scales), "r"(static_cast<uint32_t>(accumulate))
      : "memory");
}

// sums = a b, plus sums if `accumulate`: bf16 or fp16 elements with fp32 sums, K = 16.
__device__ __forceinline__ void tensor_mma_half(uint32_t sums, uint64_t a, uint64_t b, uint32_t instruction,
                                                bool accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred accumulate;\n"
      "setp.ne.u32 accumulate, %4, 0;\n"
      "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, accumulate;\n"
      "}" ::"r"(sums),
      "l"(a), "l"(b), "r"(instruction), "r"(static_cast<uint32_t>(accumulate))
      : "memory");
}

// Arrives at the barrier once all earlier matrix and copy instructions of this thread are done.
__device__ __forceinline__ void tensor_commit(uint32_t barrier) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier) : "memory");
}
// The same at the same place in every block of the cluster whose rank is a bit of `blocks`.
__device__ __forceinline__ void tensor_commit(uint32_t barrier, uint16_t blocks) {
  asm volatile(
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(
          barrier),
      "h"(blocks)
      : "memory");
}

// 128 columns of the warp's 32 lanes, one lane a thread. The wait is part of the statement: the compiler does not know
// that the load is asynchronous, and could move a use between the two.
__device__ __forceinline__ void tensor_load(float (&columns)[128], uint32_t address) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x128.b32 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, [%128];\n"
      "tcgen05.wait::ld.sync.aligned;"
      : "=f"(columns[0]), "=f"(columns[1]), "=f"(columns[2]), "=f"(columns[3]), "=f"(columns[4]), "=f"(columns[5]),
        "=f"(columns[6]), "=f"(columns[7]), "=f"(columns[8]), "=f"(columns[9]), "=f"(columns[10]), "=f"(columns[11]),
        "=f"(columns[12]), "=f"(columns[13]), "=f"(columns[14]), "=f"(columns[15]), "=f"(columns[16]),
        "=f"(columns[17]), "=f"(columns[18]), "=f"(columns[19]), "=f"(columns[20]), "=f"(columns[21]),
        "=f"(columns[22]), "=f"(columns[23]), "=f"(columns[24]), "=f"(columns[25]), "=f"(columns[26]),
        "=f"(columns[27]), "=f"(columns[28]), "=f"(columns[29]), "=f"(columns[30]), "=f"(columns[31]),
        "=f"(columns[32]), "=f"(columns[33]), "=f"(columns[34]), "=f"(columns[35]), "=f"(columns[36]),
        "=f"(columns[37]), "=f"(columns[38]), "=f"(columns[39]), "=f"(columns[40]), "=f"(columns[41]),
        "=f"(columns[42]), "=f"(columns[43]), "=f"(columns[44]), "=f"(columns[45]), "=f"(columns[46]),
        "=f"(columns[47]), "=f"(columns[48]), "=f"(columns[49]), "=f"(columns[50]), "=f"(columns[51]),
        "=f"(columns[52]), "=f"(columns[53]), "=f"(columns[54]), "=f"(columns[55]), "=f"(columns[56]),
        "=f"(columns[57]), "=f"(columns[58]), "=f"(columns[59]), "=f"(columns[60]), "=f"(columns[61]),
        "=f"(columns[62]), "=f"(columns[63]), "=f"(columns[64]), "=f"(columns[65]), "=f"(columns[66]),
        "=f"(columns[67]), "=f"(columns[68]), "=f"(columns[69]), "=f"(columns[70]), "=f"(columns[71]),
        "=f"(columns[72]), "=f"(columns[73]), "=f"(columns[74]), "=f"(columns[75]), "=f"(columns[76]),
        "=f"(columns[77]), "=f"(columns[78]), "=f"(columns[79]), "=f"(columns[80]), "=f"(columns[81]),
        "=f"(columns[82]), "=f"(columns[83]), "=f"(columns[84]), "=f"(columns[85]), "=f"(columns[86]),
        "=f"(columns[87]), "=f"(columns[88]), "=f"(columns[89]), "=f"(columns[90]), "=f"(columns[91]),
        "=f"(columns[92]), "=f"(columns[93]), "=f"(columns[94]), "=f"(columns[95]), "=f"(columns[96]),
        "=f"(columns[97]), "=f"(columns[98]), "=f"(columns[99]), "=f"(columns[100]), "=f"(columns[101]),
        "=f"(columns[102]), "=f"(columns[103]), "=f"(columns[104]), "=f"(columns[105]), "=f"(columns[106]),
        "=f"(columns[107]), "=f"(columns[108]), "=f"(columns[109]), "=f"(columns[110]), "=f"(columns[111]),
        "=f"(columns[112]), "=f"(columns[113]), "=f"(columns[114]), "=f"(columns[115]), "=f"(columns[116]),
        "=f"(columns[117]), "=f"(columns[118]), "=f"(columns[119]), "=f"(columns[120]), "=f"(columns[121]),
        "=f"(columns[122]), "=f"(columns[123]), "=f"(columns[124]), "=f"(columns[125]), "=f"(columns[126]),
        "=f"(columns[127])
      : "r"(address)
      : "memory");
}

// Eight columns of the warp's 32 lanes, one lane a thread: written, and read as in tensor_load.
__device__ __forceinline__ void tensor_store_8(uint32_t address, const float (&columns)[8]) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};\n"
      "tcgen05.wait::st.sync.aligned;" ::"r"(address),
      "f"(columns[0]), "f"(columns[1]), "f"(columns[2]), "f"(columns[3]), "f"(columns[4]), "f"(columns[5]),
      "f"(columns[6]), "f"(columns[7])
      : "memory");
}
__device__ __forceinline__ void tensor_load_8(float (&columns)[8], uint32_t address) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];\n"
      "tcgen05.wait::ld.sync.aligned;"
      : "=f"(columns[0]), "=f"(columns[1]), "=f"(columns[2]), "=f"(columns[3]), "=f"(columns[4]), "=f"(columns[5]),
        "=f"(columns[6]), "=f"(columns[7])
      : "r"(address)
      : "memory");
}

}  // namespace isobit::device::ptx
