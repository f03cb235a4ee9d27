#include "arguments.h"

#include <cstdint>
#include <string>

namespace isobit::tvm_ffi {
namespace {

// ISOBIT_NONE for a dtype that no operator takes. Packed E2M1 pairs and E4M3 scales are bytes to the library.
isobit_dtype dtype_of(DLDataType type) {
  if (type.lanes == 1) {
    switch (type.code << 8 | type.bits) {
      case kDLBfloat << 8 | 16:
        return ISOBIT_BF16;
      case kDLFloat << 8 | 16:
        return ISOBIT_FP16;
      case kDLFloat << 8 | 32:
        return ISOBIT_FP32;
      case kDLInt << 8 | 32:
        return ISOBIT_INT32;
      case kDLInt << 8 | 64:
        return ISOBIT_INT64;
      case kDLUInt << 8 | 8:
      case kDLFloat8_e4m3fn << 8 | 8:
        return ISOBIT_UINT8;
      default:
        return ISOBIT_NONE;
    }
  }
  const bool is_packed = type.code == kDLFloat4_e2m1fn && type.bits == 4 && type.lanes == 2;
  return is_packed ? ISOBIT_UINT8 : ISOBIT_NONE;
}

constexpr uintptr_t kAlignment = 256;  // of a workspace, in bytes

std::string name_of(DLDevice device) {
  const std::string kind = device.device_type == kDLCPU    ? "cpu"
                           : device.device_type == kDLCUDA ? "cuda"
                                                           : "device type " + std::to_string(device.device_type);
  return kind + ":" + std::to_string(device.device_id);
}

}  // namespace

isobit_tensor view(const char* name, const Tensor& tensor) {
  const DLDataType type = tensor.dtype();
  const DLDevice device = tensor.device();
  isobit_tensor out = {};
  out.dtype = dtype_of(type);
  if (out.dtype == ISOBIT_NONE) {
    TVM_FFI_THROW(TypeError) << name << ": expected one of bfloat16, float16, float32, int32, int64, uint8, "
                             << "float8_e4m3fn, got " << type;
  }
  if (device.device_type != kDLCPU && device.device_type != kDLCUDA) {
    TVM_FFI_THROW(TypeError) << name << ": expected a tensor on cpu or cuda, got DLPack device type "
                             << static_cast<int>(device.device_type);
  }
  if (tensor.ndim() > 4) {
    TVM_FFI_THROW(ValueError) << name << ": expected at most 4 dimensions, got " << tensor.ndim();
  }
  out.data = static_cast<char*>(tensor.data_ptr()) + tensor.byte_offset();
  out.device_type = device.device_type == kDLCUDA ? ISOBIT_CUDA : ISOBIT_CPU;
  out.device_id = device.device_id;
  out.rank = tensor.ndim();
  for (int i = 0; i < out.rank; ++i) {
    out.shape[i] = tensor.size(i);
    out.stride[i] = tensor.stride(i);
  }
  return out;
}

isobit_tensor view(const char* name, const MaybeTensor& tensor) {
  if (!tensor.has_value()) return {};
  const Tensor present = *tensor;
  const bool stands_for_none = present.ndim() == 2 && present.size(0) == 0 && present.size(1) == 0;
  return stands_for_none ? isobit_tensor{} : view(name, present);
}

void* stream_of(const Tensor& tensor) {
  const DLDevice device = tensor.device();
  return device.device_type == kDLCPU ? nullptr : TVMFFIEnvGetStream(device.device_type, device.device_id);
}

void check(isobit_status status) {
  if (status == ISOBIT_OK) return;
  const char* message = isobit_last_error();
  if (*message == '\0') message = isobit_status_string(status);
  throw ffi::Error("isobit.Error/" + std::to_string(status), message, "");
}

void check_bytes(const char* name, const Tensor& tensor, DLDevice device, size_t least) {
  const DLDataType type = tensor.dtype();
  const DLDevice found = tensor.device();
  if (type.code != kDLUInt || type.bits != 8 || type.lanes != 1) {
    TVM_FFI_THROW(TypeError) << name << ": expected uint8, got " << type;
  }
  if (found.device_type != device.device_type || found.device_id != device.device_id) {
    TVM_FFI_THROW(ValueError) << name << ": expected memory on " << name_of(device) << ", got " << name_of(found);
  }
  if (!tensor.is_contiguous()) {
    TVM_FFI_THROW(ValueError) << name << ": expected dense memory, got strides";
  }
  if (static_cast<size_t>(tensor.numel()) < least) {
    TVM_FFI_THROW(ValueError) << name << ": expected at least " << least << " bytes, got " << tensor.numel();
  }
}

Workspace::Workspace(const MaybeTensor& given, size_t recommended, DLDevice device) {
  if (given.has_value()) {
    const Tensor memory = *given;
    check_bytes("workspace", memory, device, 0);
    data_ = static_cast<char*>(memory.data_ptr()) + memory.byte_offset();
    bytes_ = static_cast<size_t>(memory.numel());
  } else {
    const int64_t size = static_cast<int64_t>(recommended + kAlignment - 1);
    owned_ = ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, ffi::ShapeView(&size, 1), {kDLUInt, 8, 1}, device);
    data_ = (*owned_).data_ptr();
    bytes_ = static_cast<size_t>(size);
  }
  const auto address = reinterpret_cast<uintptr_t>(data_);
  const uintptr_t skipped = (kAlignment - address % kAlignment) % kAlignment;
  data_ = static_cast<char*>(data_) + skipped;
  bytes_ = bytes_ > skipped ? bytes_ - skipped : 0;
}

}  // namespace isobit::tvm_ffi
