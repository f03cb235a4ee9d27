// Decoders of the instruction families; families.cpp maps opcodes to them.
#pragma once
#include "ptx/decode/decoder.h"

namespace isobit::ptx {

// integer.cpp, and float.cpp for the floating types of the same opcodes
void decode_add(Decoder& d);
void decode_sub(Decoder& d);
void decode_mul(Decoder& d);
void decode_mad(Decoder& d);
void decode_div(Decoder& d);
void decode_rem(Decoder& d);
void decode_min(Decoder& d);
void decode_max(Decoder& d);
void decode_abs(Decoder& d);
void decode_neg(Decoder& d);
void decode_sad(Decoder& d);
void decode_addc(Decoder& d);
void decode_subc(Decoder& d);
// logic.cpp
void decode_and(Decoder& d);
void decode_or(Decoder& d);
void decode_xor(Decoder& d);
void decode_not(Decoder& d);
void decode_cnot(Decoder& d);
void decode_shl(Decoder& d);
void decode_shr(Decoder& d);
void decode_shf(Decoder& d);
void decode_lop3(Decoder& d);
void decode_prmt(Decoder& d);
// bit_fields.cpp
void decode_bfe(Decoder& d);
void decode_bfi(Decoder& d);
void decode_popc(Decoder& d);
void decode_clz(Decoder& d);
void decode_brev(Decoder& d);
void decode_bfind(Decoder& d);
// compare.cpp
void decode_setp(Decoder& d);
void decode_selp(Decoder& d);
// move.cpp
void decode_mov(Decoder& d);
void decode_cvta(Decoder& d);
void decode_mapa(Decoder& d);
void decode_getctarank(Decoder& d);
void decode_isspacep(Decoder& d);
// float.cpp
void decode_float_add(Decoder& d, Type type);
void decode_float_sub(Decoder& d, Type type);
void decode_float_mul(Decoder& d, Type type);
void decode_fma(Decoder& d);
void decode_float_div(Decoder& d, Type type);
void decode_float_extremum(Decoder& d, Type type, bool maximum);
void decode_float_sign(Decoder& d, Type type, bool negate);
void decode_sqrt(Decoder& d);
void decode_rcp(Decoder& d);
void decode_copysign(Decoder& d);
void decode_testp(Decoder& d);
// half_arithmetic.cpp: add, sub, mul and fma of the 16-bit floats
bool is_half(Type type);
void decode_half(Decoder& d, Type type);
void decode_half_sign(Decoder& d, Type type, bool negate);
// approximate.cpp
void decode_approximate(Decoder& d);
// convert.cpp, convert_float.cpp, convert_packed.cpp
void decode_cvt(Decoder& d);
bool decode_float_cvt(Decoder& d, Type to, Type from);
bool decode_packed_cvt(Decoder& d, Type to, Type from);
// load_store.cpp
void decode_ld(Decoder& d);
void decode_st(Decoder& d);
void decode_prefetch(Decoder& d);
// atomics.cpp
void decode_atom(Decoder& d);
void decode_red(Decoder& d);
// control.cpp
void decode_bra(Decoder& d);
void decode_brx(Decoder& d);
void decode_ret(Decoder& d);
void decode_trap(Decoder& d);
void decode_nanosleep(Decoder& d);
void decode_setmaxnreg(Decoder& d);
void decode_griddepcontrol(Decoder& d);
void decode_createpolicy(Decoder& d);
// barrier.cpp
void decode_bar(Decoder& d);
void decode_barrier(Decoder& d);
void decode_fence(Decoder& d);
void decode_membar(Decoder& d);
// collective.cpp
void decode_shfl(Decoder& d);
void decode_vote(Decoder& d);
void decode_match(Decoder& d);
void decode_redux(Decoder& d);
void decode_elect(Decoder& d);
void decode_activemask(Decoder& d);
// mbarrier.cpp, async_copy.cpp, matrix.cpp, mma.cpp, wgmma.cpp
void decode_mbarrier(Decoder& d);
void decode_cp(Decoder& d);
void decode_ldmatrix(Decoder& d);
void decode_stmatrix(Decoder& d);
void decode_movmatrix(Decoder& d);
void decode_mma(Decoder& d);
void decode_wgmma(Decoder& d);
// cluster_launch_control.cpp
void decode_clusterlaunchcontrol(Decoder& d);
// tcgen05.cpp, with tensor_transfer.cpp and tensor_multiply.cpp
void decode_tcgen05(Decoder& d);

}  // namespace isobit::ptx
