#include "ptx/runtime/emulated_runtime.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "ptx/memory/tensor_map.h"
#include "ptx/runtime/kernel_names.h"

namespace isobit::ptx {
namespace {

constexpr size_t kRedZone = 4096;
constexpr uint32_t kSharedWithoutAttribute = 48 * 1024;

MachineOptions machine_options(const EmulationOptions& options, size_t shared_limit) {
  MachineOptions m = options.machine;
  m.multiprocessors = static_cast<uint32_t>(options.multiprocessors);
  m.shared_limit = static_cast<uint32_t>(shared_limit);
  return m;
}

// Opt-in shared memory of a block by compute capability.
size_t shared_limit_of(int capability) {
  switch (capability) {
    case 80:
      return 163 * 1024;
    case 86:
    case 89:
    case 120:
    case 121:
      return 99 * 1024;
    default:
      return 227 * 1024;
  }
}

Extent extent(const Dim3& d) { return {d.x, d.y, d.z}; }

uint32_t element_bytes(TensorMapSpec::Type type) {
  switch (type) {
    case TensorMapSpec::Type::kUint8:
      return 1;
    case TensorMapSpec::Type::kUint32:
    case TensorMapSpec::Type::kFp32:
      return 4;
    default:
      return 2;
  }
}

}  // namespace

DeviceBuffer::DeviceBuffer(Machine& machine, size_t bytes, bool initialised)
    : machine_(&machine), storage_(new std::byte[bytes + 3 * kRedZone]), size_(bytes) {
  const uint64_t start = reinterpret_cast<uint64_t>(storage_.get());
  data_ = storage_.get() + kRedZone + (kRedZone - start % kRedZone);  // aligned, with at least a red zone on both sides
  std::memset(storage_.get(), 0xCD, bytes + 3 * kRedZone);
  machine.register_buffer(data_, bytes, Access::kReadWrite, initialised);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : machine_(other.machine_), storage_(std::move(other.storage_)), data_(other.data_), size_(other.size_) {
  other.data_ = nullptr;
}

DeviceBuffer::~DeviceBuffer() {
  if (data_) machine_->unregister_buffer(data_);
}

EmulatedRuntime::EmulatedRuntime(const std::string& ptx_folder, EmulationOptions options)
    : options_(options),
      machine_(machine_options(options, shared_limit_of(options.capability))),
      has_texts_(library_.add_folder(ptx_folder)) {}

DeviceBuffer EmulatedRuntime::allocate(size_t bytes) { return DeviceBuffer(machine_, bytes, false); }

DeviceBuffer EmulatedRuntime::upload(const void* data, size_t bytes) {
  DeviceBuffer buffer(machine_, bytes, true);
  if (bytes > 0) std::memcpy(buffer.data(), data, bytes);
  return buffer;
}

Status EmulatedRuntime::properties(int, DeviceProperties* out) {
  std::snprintf(out->name, sizeof out->name, "PTX interpreter, compute capability %d.%d", options_.capability / 10,
                options_.capability % 10);
  out->capability = options_.capability;
  out->multiprocessors = options_.multiprocessors;
  out->shared_bytes_per_block = shared_limit_of(options_.capability);
  return Status();
}

Status EmulatedRuntime::launch(int, const void* kernel, const LaunchShape& shape, void** parameters, void*) {
  if (!has_texts_) return fail(ISOBIT_DEVICE_ERROR, "interpreter: the folder holds no PTX");
  const std::string name = symbol_at(kernel);
  if (name.empty()) return fail(ISOBIT_DEVICE_ERROR, "interpreter: the kernel's address has no symbol");
  auto found = library_.find(name, options_.capability);
  if (const Error* error = std::get_if<Error>(&found))
    return fail(ISOBIT_DEVICE_ERROR, "interpreter: %s", error->message.c_str());
  const auto allowed = allowed_shared_.find(kernel);
  const uint32_t most =
      allowed == allowed_shared_.end() ? kSharedWithoutAttribute : std::max(kSharedWithoutAttribute, allowed->second);
  if (shape.dynamic_shared_bytes > most) {
    return fail(ISOBIT_DEVICE_ERROR, "interpreter: dynamic shared memory: expected at most %u bytes, got %u", most,
                shape.dynamic_shared_bytes);
  }
  Module& module = *std::get<Module*>(found);
  const LaunchConfig config{extent(shape.grid), extent(shape.block), extent(shape.cluster), shape.dynamic_shared_bytes};
  const Report report = machine_.launch(module, name, config, parameters, module.find(name)->parameters.size());
  ++launches_;
  report_.findings.insert(report_.findings.end(), report.findings.begin(), report.findings.end());
  report_.statistics.warp_instructions += report.statistics.warp_instructions;
  report_.statistics.lane_instructions += report.statistics.lane_instructions;
  report_.statistics.mma += report.statistics.mma;
  report_.statistics.async_operations += report.statistics.async_operations;
  if (report.ok()) return Status();
  return fail(ISOBIT_DEVICE_ERROR, "interpreter: %s: %s", name.c_str(), report.text().c_str());
}

Status EmulatedRuntime::allow_shared_memory(int, const void* kernel, uint32_t bytes) {
  if (bytes > shared_limit_of(options_.capability)) {
    return fail(ISOBIT_DEVICE_ERROR, "interpreter: shared memory: expected at most %zu bytes, got %u",
                shared_limit_of(options_.capability), bytes);
  }
  allowed_shared_[kernel] = bytes;
  return Status();
}

Status EmulatedRuntime::encode_tensor_map(const TensorMapSpec& spec, TensorMap* out) {
  TensorMapDescription d;
  d.element_bytes = element_bytes(spec.type);
  d.rank = spec.rank;
  d.address = reinterpret_cast<uint64_t>(spec.address);
  std::copy_n(spec.shape, 5, d.shape);
  std::copy_n(spec.stride_bytes, 4, d.stride_bytes);
  std::copy_n(spec.box, 5, d.box);
  d.swizzle = static_cast<Swizzle>(spec.swizzle);
  const auto error = ptx::encode_tensor_map(d, out);
  return error ? fail(ISOBIT_DEVICE_ERROR, "tensor map: %s", error->c_str()) : Status();
}

Status EmulatedRuntime::fill_bytes(int, void* data, int value, size_t bytes, void*) {
  if (bytes == 0) return Status();
  if (machine_.bytes_from(data) < bytes)
    return fail(ISOBIT_DEVICE_ERROR, "interpreter: fill of %zu bytes outside of a buffer", bytes);
  std::memset(data, value, bytes);
  machine_.mark_initialised(data, bytes);
  return Status();
}

Status EmulatedRuntime::copy_to_host(int, void* host, const void* data, size_t bytes, void*) {
  if (bytes == 0) return Status();
  if (machine_.bytes_from(data) < bytes)
    return fail(ISOBIT_DEVICE_ERROR, "interpreter: copy of %zu bytes outside of a buffer", bytes);
  std::memcpy(host, data, bytes);
  return Status();
}

}  // namespace isobit::ptx
