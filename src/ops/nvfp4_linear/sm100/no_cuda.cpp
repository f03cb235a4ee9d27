// Stands in for launch.cu in a build without its architectures. Dispatch refuses the rows before they are reached.
#include "ops/nvfp4_linear/sm100/launch.h"

namespace isobit::nvfp4_linear::sm100 {

template <int kBlocks>
Status takes(const Params&, const DeviceProperties&) {
  return fail(ISOBIT_UNSUPPORTED, "not in this build");
}
template <int kBlocks>
Status run(const Params&, void*) {
  return fail(ISOBIT_UNSUPPORTED, "not in this build");
}
WorkspaceBytes workspace(const Params&) { return {}; }

template Status takes<1>(const Params&, const DeviceProperties&);
template Status takes<2>(const Params&, const DeviceProperties&);
template Status run<1>(const Params&, void*);
template Status run<2>(const Params&, void*);

}  // namespace isobit::nvfp4_linear::sm100
