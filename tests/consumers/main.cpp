// A C++ user of the installed library: the wrapper compiles, links, and refuses what it should.
#include <cstdio>
#include <cstring>
#include <isobit/isobit.hpp>

int main() {
  if (isobit_version() != ISOBIT_VERSION_MAJOR * 10000 + ISOBIT_VERSION_MINOR * 100 + ISOBIT_VERSION_PATCH) return 1;
  float data[6] = {};
  const isobit_tensor view = isobit::tensor(data, {2, 3});
  if (view.rank != 2 || view.stride[0] != 3 || view.stride[1] != 1 || view.dtype != ISOBIT_FP32) return 2;
  const isobit::LinearLogp empty;
  isobit::WorkspaceBytes bytes;
  const isobit::Status status = empty.workspace_size(&bytes);
  std::printf("%s\n%s\n", isobit_build_info(), status.message());
  return !status.ok() && std::strlen(status.message()) > 0 ? 0 : 3;
}
