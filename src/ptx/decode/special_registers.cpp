#include "ptx/decode/special_registers.h"

#include <array>

namespace isobit::ptx {
namespace {

struct SpecialRow {
  std::string_view name;
  SpecialRegister which;
};

using enum SpecialRegister;

constexpr auto kRows = std::to_array<SpecialRow>({
    {"%tid.x", kTidX},
    {"%tid.y", kTidY},
    {"%tid.z", kTidZ},
    {"%ntid.x", kNtidX},
    {"%ntid.y", kNtidY},
    {"%ntid.z", kNtidZ},
    {"%ctaid.x", kCtaidX},
    {"%ctaid.y", kCtaidY},
    {"%ctaid.z", kCtaidZ},
    {"%nctaid.x", kNctaidX},
    {"%nctaid.y", kNctaidY},
    {"%nctaid.z", kNctaidZ},
    {"%clusterid.x", kClusteridX},
    {"%clusterid.y", kClusteridY},
    {"%clusterid.z", kClusteridZ},
    {"%nclusterid.x", kNclusteridX},
    {"%nclusterid.y", kNclusteridY},
    {"%nclusterid.z", kNclusteridZ},
    {"%cluster_ctaid.x", kClusterCtaidX},
    {"%cluster_ctaid.y", kClusterCtaidY},
    {"%cluster_ctaid.z", kClusterCtaidZ},
    {"%cluster_nctaid.x", kClusterNctaidX},
    {"%cluster_nctaid.y", kClusterNctaidY},
    {"%cluster_nctaid.z", kClusterNctaidZ},
    {"%cluster_ctarank", kClusterCtarank},
    {"%cluster_nctarank", kClusterNctarank},
    {"%is_explicit_cluster", kIsExplicitCluster},
    {"%laneid", kLaneid},
    {"%warpid", kWarpid},
    {"%nwarpid", kNwarpid},
    {"%lanemask_eq", kLanemaskEq},
    {"%lanemask_le", kLanemaskLe},
    {"%lanemask_lt", kLanemaskLt},
    {"%lanemask_ge", kLanemaskGe},
    {"%lanemask_gt", kLanemaskGt},
    {"%smid", kSmid},
    {"%nsmid", kNsmid},
    {"%gridid", kGridid},
    {"%dynamic_smem_size", kDynamicSmemSize},
    {"%total_smem_size", kTotalSmemSize},
});

}  // namespace

std::optional<SpecialRegister> find_special_register(std::string_view name) {
  for (const SpecialRow& row : kRows) {
    if (row.name == name) return row.which;
  }
  return std::nullopt;
}

}  // namespace isobit::ptx
