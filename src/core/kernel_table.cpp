#include "core/kernel_table.h"

#include "core/build_config.h"
#include "core/capability.h"

namespace isobit {

Status check_row(const KernelInfo& info, Device device, const DeviceProperties& properties) {
  if (!info.built) return fail(ISOBIT_UNSUPPORTED, "not in this build (%s)", info.architectures);
  if (info.device != device.type) {
    return fail(ISOBIT_UNSUPPORTED, "runs on %s, the tensors are on %s", info.device == ISOBIT_CPU ? "the CPU" : "CUDA",
                device.type == ISOBIT_CPU ? "the CPU" : "CUDA");
  }
  if (device.type == ISOBIT_CPU) return Status();
  if (properties.capability < info.min_capability || properties.capability > info.max_capability) {
    return fail(ISOBIT_UNSUPPORTED, "needs compute capability %s, device %d has %d.%d",
                CapabilityText(info.min_capability, info.max_capability).text, device.id, properties.capability / 10,
                properties.capability % 10);
  }
  // Devices of tests run what they are given, whatever the build has.
  const bool real = &runtime() == &default_runtime();
  if (real && !has_code_for(properties.capability, kCudaCapabilities)) {
    return fail(ISOBIT_UNSUPPORTED, "this build is for architectures %s, device %d has compute capability %d.%d",
                kCudaCapabilitiesText, device.id, properties.capability / 10, properties.capability % 10);
  }
  return Status();
}

Status check_workspace(const WorkspaceBytes& needed, const void* workspace, size_t bytes, size_t alignment) {
  if (bytes < needed.minimum) {
    return fail(ISOBIT_WORKSPACE_TOO_SMALL, "workspace_bytes: expected %zu or more (recommended %zu), got %zu",
                needed.minimum, needed.recommended, bytes);
  }
  if (needed.minimum == 0) return Status();
  if (workspace == nullptr) return refuse("workspace", "a pointer", "null");
  if (reinterpret_cast<uintptr_t>(workspace) % alignment == 0) return Status();
  char expected[64];
  std::snprintf(expected, sizeof expected, "an address aligned to %zu bytes", alignment);
  return refuse("workspace", expected, "%p", workspace);
}

void RefusalList::add(const char* kernel, const char* reason) {
  const int written = std::snprintf(text_ + length_, sizeof text_ - length_, "\n  %s: %s", kernel, reason);
  if (written > 0) length_ = std::min(length_ + static_cast<size_t>(written), sizeof text_ - 1);
}

}  // namespace isobit
