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

}  // namespace isobit::device::ptx
