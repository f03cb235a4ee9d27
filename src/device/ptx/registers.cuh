// Moving registers between warpgroups, SM90 (PTX ISA 9.7.20.5, setmaxnreg). All warps of the warpgroup execute it.
#pragma once

namespace isobit::device::ptx {

template <int kRegisters>
__device__ __forceinline__ void release_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

template <int kRegisters>
__device__ __forceinline__ void claim_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// The same value, but nothing that depends on it is computed ahead of this place and kept in registers.
__device__ __forceinline__ int32_t not_ahead(int32_t value) {
  asm volatile("" : "+r"(value));
  return value;
}

}  // namespace isobit::device::ptx
