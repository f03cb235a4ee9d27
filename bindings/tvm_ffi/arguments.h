// What every operator's shim needs: DLPack tensors as isobit_tensor, the stream and the workspace of the framework that
// makes the call, and a status as an exception.
#pragma once

#include <isobit/isobit.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/tvm_ffi.h>

#include <cstddef>

namespace isobit::tvm_ffi {

namespace ffi = ::tvm::ffi;
using Tensor = ffi::TensorView;
using MaybeTensor = ffi::Optional<ffi::TensorView>;

// The view of a tensor, which must outlive the call. Throws TypeError or ValueError naming the argument for a dtype, a
// device or a rank that an isobit_tensor cannot hold; everything else is checked by the library.
isobit_tensor view(const char* name, const Tensor& tensor);

// Absent for None and for a tensor [0, 0], which stands for None under XLA.
isobit_tensor view(const char* name, const MaybeTensor& tensor);

// The stream that is current for the tensor's device, as the framework said when it made the call.
void* stream_of(const Tensor& tensor);

// Throws unless the status is ISOBIT_OK: the kind is "isobit.Error/" and the status, the text the library's message.
void check(isobit_status status);

// Throws unless the tensor is dense uint8 memory of at least `least` bytes on the device.
void check_bytes(const char* name, const Tensor& tensor, DLDevice device, size_t least);

// Scratch memory at a multiple of 256 bytes: the caller's bytes, or else what the caller's framework allocates.
class Workspace {
 public:
  // `recommended` is asked for if the caller brings nothing. Throws unless what it brings is dense uint8 on the device.
  Workspace(const MaybeTensor& given, size_t recommended, DLDevice device);
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  ffi::Optional<ffi::Tensor> owned_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace isobit::tvm_ffi
