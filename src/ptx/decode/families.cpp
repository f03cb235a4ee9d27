// The table of opcodes.
#include "ptx/decode/families.h"

#include <algorithm>
#include <array>

namespace isobit::ptx {
namespace {

struct FamilyRow {
  std::string_view opcode;
  DecodeFunction decode;
};

constexpr auto kFamilies = std::to_array<FamilyRow>({
    {"abs", decode_abs},
    {"activemask", decode_activemask},
    {"add", decode_add},
    {"addc", decode_addc},
    {"and", decode_and},
    {"atom", decode_atom},
    {"bar", decode_bar},
    {"barrier", decode_barrier},
    {"bfe", decode_bfe},
    {"bfi", decode_bfi},
    {"bfind", decode_bfind},
    {"bra", decode_bra},
    {"brev", decode_brev},
    {"brx", decode_brx},
    {"clusterlaunchcontrol", decode_clusterlaunchcontrol},
    {"clz", decode_clz},
    {"cnot", decode_cnot},
    {"copysign", decode_copysign},
    {"cos", decode_approximate},
    {"cp", decode_cp},
    {"createpolicy", decode_createpolicy},
    {"cvt", decode_cvt},
    {"cvta", decode_cvta},
    {"div", decode_div},
    {"elect", decode_elect},
    {"ex2", decode_approximate},
    {"exit", decode_ret},
    {"fence", decode_fence},
    {"fma", decode_fma},
    {"getctarank", decode_getctarank},
    {"griddepcontrol", decode_griddepcontrol},
    {"isspacep", decode_isspacep},
    {"ld", decode_ld},
    {"ldmatrix", decode_ldmatrix},
    {"lg2", decode_approximate},
    {"lop3", decode_lop3},
    {"mad", decode_mad},
    {"mapa", decode_mapa},
    {"match", decode_match},
    {"max", decode_max},
    {"mbarrier", decode_mbarrier},
    {"membar", decode_membar},
    {"min", decode_min},
    {"mma", decode_mma},
    {"mov", decode_mov},
    {"movmatrix", decode_movmatrix},
    {"mul", decode_mul},
    {"nanosleep", decode_nanosleep},
    {"neg", decode_neg},
    {"not", decode_not},
    {"or", decode_or},
    {"popc", decode_popc},
    {"prefetch", decode_prefetch},
    {"prefetchu", decode_prefetch},
    {"prmt", decode_prmt},
    {"rcp", decode_rcp},
    {"red", decode_red},
    {"redux", decode_redux},
    {"rem", decode_rem},
    {"ret", decode_ret},
    {"rsqrt", decode_approximate},
    {"sad", decode_sad},
    {"selp", decode_selp},
    {"setmaxnreg", decode_setmaxnreg},
    {"setp", decode_setp},
    {"shf", decode_shf},
    {"shfl", decode_shfl},
    {"shl", decode_shl},
    {"shr", decode_shr},
    {"sin", decode_approximate},
    {"sqrt", decode_sqrt},
    {"st", decode_st},
    {"stmatrix", decode_stmatrix},
    {"sub", decode_sub},
    {"subc", decode_subc},
    {"tanh", decode_approximate},
    {"tcgen05", decode_tcgen05},
    {"testp", decode_testp},
    {"trap", decode_trap},
    {"vote", decode_vote},
    {"wgmma", decode_wgmma},
    {"xor", decode_xor},
});

}  // namespace

DecodeFunction find_family(std::string_view opcode) {
  const auto it =
      std::find_if(kFamilies.begin(), kFamilies.end(), [&](const FamilyRow& r) { return r.opcode == opcode; });
  return it == kFamilies.end() ? nullptr : it->decode;
}

}  // namespace isobit::ptx
