// Thin C++20 header over the C functions: typed tensor views, defaults, statuses that cannot be dropped. Header-only,
// throws nothing, owns nothing but HostWorkspace. The rules of every call stand in isobit.h and the operators' headers.
#ifndef ISOBIT_ISOBIT_HPP_
#define ISOBIT_ISOBIT_HPP_

#include <isobit/geglu.h>
#include <isobit/isobit.h>
#include <isobit/linear_logp.h>
#include <isobit/nvfp4_geglu.h>
#include <isobit/nvfp4_linear.h>
#include <isobit/nvfp4_quantize.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <type_traits>

namespace isobit {
inline namespace v1 {

// ---- status ---------------------------------------------------------------------------------------------------------

// What a call returned. message() is the thread's message and valid until its next isobit call.
class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  constexpr Status(isobit_status code) : code_(code) {}  // implicit: `return isobit_linear_logp(...)`
  constexpr bool ok() const { return code_ == ISOBIT_OK; }
  constexpr explicit operator bool() const { return ok(); }
  constexpr isobit_status code() const { return code_; }
  const char* message() const { return ok() ? "" : isobit_last_error(); }

 private:
  isobit_status code_ = ISOBIT_OK;
};

// ---- tensors --------------------------------------------------------------------------------------------------------

// Elements without a C++ type of their own; the bits are those of the format.
struct Bf16 {
  uint16_t bits;
};
struct Fp16 {
  uint16_t bits;
};

template <class T>
inline constexpr isobit_dtype kDtype = ISOBIT_NONE;
template <>
inline constexpr isobit_dtype kDtype<Bf16> = ISOBIT_BF16;
template <>
inline constexpr isobit_dtype kDtype<Fp16> = ISOBIT_FP16;
template <>
inline constexpr isobit_dtype kDtype<float> = ISOBIT_FP32;
template <>
inline constexpr isobit_dtype kDtype<int32_t> = ISOBIT_INT32;
template <>
inline constexpr isobit_dtype kDtype<int64_t> = ISOBIT_INT64;
template <>
inline constexpr isobit_dtype kDtype<uint8_t> = ISOBIT_UINT8;

struct Device {
  isobit_device_type type = ISOBIT_CPU;
  int32_t id = 0;
};
constexpr Device cuda(int32_t id = 0) { return {ISOBIT_CUDA, id}; }

// View of caller-owned memory with explicit strides in elements. At most four dimensions; a longer list gives a view of
// rank -1, which every call refuses. (Inputs are const in C++ and void* in the C struct; no call writes to an input.)
template <class T>
isobit_tensor tensor(T* data, std::initializer_list<int64_t> shape, std::initializer_list<int64_t> stride,
                     Device device = {}) {
  using Element = std::remove_const_t<T>;
  static_assert(kDtype<Element> != ISOBIT_NONE, "isobit: no dtype for this element type");
  isobit_tensor view = {};
  view.data = const_cast<Element*>(data);
  view.dtype = kDtype<Element>;
  view.device_type = device.type;
  view.device_id = device.id;
  view.rank = shape.size() <= 4 && shape.size() == stride.size() ? static_cast<int32_t>(shape.size()) : -1;
  for (int32_t i = 0; i < view.rank; ++i) {
    view.shape[i] = shape.begin()[i];
    view.stride[i] = stride.begin()[i];
  }
  return view;
}

// Dense, row-major view.
template <class T>
isobit_tensor tensor(T* data, std::initializer_list<int64_t> shape, Device device = {}) {
  isobit_tensor view = tensor(data, shape, shape, device);
  int64_t stride = 1;
  for (int32_t i = view.rank; i-- > 0;) {
    view.stride[i] = stride;
    stride *= view.shape[i];
  }
  return view;
}

// Scratch memory of a CPU call: `bytes` aligned to 256, freed at the end of the scope. data() is null if there was not
// enough memory (the call then answers ISOBIT_WORKSPACE_TOO_SMALL or names the null pointer).
class HostWorkspace {
 public:
  explicit HostWorkspace(size_t bytes)
      : data_(::operator new (bytes, std::align_val_t{256}, std::nothrow)), bytes_(data_ != nullptr ? bytes : 0) {}
  ~HostWorkspace() { ::operator delete (data_, std::align_val_t{256}); }
  HostWorkspace(const HostWorkspace&) = delete;
  HostWorkspace& operator=(const HostWorkspace&) = delete;
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_;
  size_t bytes_;
};

struct WorkspaceBytes {
  size_t minimum = 0;      // rows go in chunks
  size_t recommended = 0;  // more gains nothing
};

// ---- linear_logp ----------------------------------------------------------------------------------------------------

// Arguments with their defaults: `LinearLogp call; call.hidden = tensor(...);`
struct LinearLogp : isobit_linear_logp_args {
  LinearLogp() : isobit_linear_logp_args(isobit_linear_logp_args_init()) {}

  Status workspace_size(WorkspaceBytes* bytes) const {
    return isobit_linear_logp_workspace(this, &bytes->minimum, &bytes->recommended);
  }
  void use(const HostWorkspace& memory) {
    workspace = memory.data();
    workspace_bytes = memory.bytes();
  }
  Status run(void* stream = nullptr) const { return isobit_linear_logp(this, stream); }
  Status validate(int64_t* first_bad_row, void* stream = nullptr) const {
    return isobit_linear_logp_validate(this, first_bad_row, stream);
  }
  Status state_bytes(size_t* bytes) const { return isobit_linear_logp_state_bytes(this, bytes); }
  Status shard(void* state, void* stream = nullptr) const { return isobit_linear_logp_shard(this, state, stream); }
  Status merge(const isobit_linear_logp_state* states, int32_t count, void* stream = nullptr) const {
    return isobit_linear_logp_merge(this, states, count, stream);
  }
};

// The backward pass; inputs, options and workspace are in `forward`.
struct LinearLogpBackward : isobit_linear_logp_backward_args {
  LinearLogpBackward() : isobit_linear_logp_backward_args(isobit_linear_logp_backward_args_init()) {}

  Status workspace_size(WorkspaceBytes* bytes) const {
    return isobit_linear_logp_backward_workspace(this, &bytes->minimum, &bytes->recommended);
  }
  void use(const HostWorkspace& memory) {
    forward.workspace = memory.data();
    forward.workspace_bytes = memory.bytes();
  }
  Status run(void* stream = nullptr) const { return isobit_linear_logp_backward(this, stream); }
  Status saved_bytes(size_t* bytes) const { return isobit_linear_logp_saved_bytes(this, bytes); }
  Status save(void* stream = nullptr) const { return isobit_linear_logp_save(this, stream); }
  Status save_merge(const isobit_linear_logp_state* states, int32_t count, void* stream = nullptr) const {
    return isobit_linear_logp_save_merge(this, states, count, stream);
  }
  Status part_bytes(size_t* bytes) const { return isobit_linear_logp_part_bytes(this, bytes); }
  Status shard(void* part, void* stream = nullptr) const {
    return isobit_linear_logp_backward_shard(this, part, stream);
  }
  Status merge(const isobit_linear_logp_state* parts, int32_t count, void* stream = nullptr) const {
    return isobit_linear_logp_backward_merge(this, parts, count, stream);
  }
};

// ---- nvfp4 ----------------------------------------------------------------------------------------------------------

// A packed matrix from its two dense buffers: codes [rows, k/2] and scales of the padded shape of the layout.
inline isobit_nvfp4_matrix nvfp4_matrix(const uint8_t* codes, const uint8_t* scales, int64_t rows, int64_t k,
                                        isobit_nvfp4_layout layout = ISOBIT_NVFP4_128X4, Device device = {}) {
  isobit_nvfp4_matrix matrix = {};
  int64_t padded_rows = 0, padded_blocks = 0;
  isobit_nvfp4_scales_shape(layout, rows, k, &padded_rows, &padded_blocks);
  matrix.codes = tensor(codes, {rows, k / 2}, device);
  matrix.scales = tensor(scales, {padded_rows, padded_blocks}, device);
  matrix.layout = layout;
  return matrix;
}

struct Nvfp4Quantize : isobit_nvfp4_quantize_args {
  Nvfp4Quantize() : isobit_nvfp4_quantize_args(isobit_nvfp4_quantize_args_init()) {}
  Status run(void* stream = nullptr) const { return isobit_nvfp4_quantize(this, stream); }
};

struct Nvfp4Linear : isobit_nvfp4_linear_args {
  Nvfp4Linear() : isobit_nvfp4_linear_args(isobit_nvfp4_linear_args_init()) {}

  Status workspace_size(WorkspaceBytes* bytes) const {
    return isobit_nvfp4_linear_workspace(this, &bytes->minimum, &bytes->recommended);
  }
  void use(const HostWorkspace& memory) {
    workspace = memory.data();
    workspace_bytes = memory.bytes();
  }
  Status run(void* stream = nullptr) const { return isobit_nvfp4_linear(this, stream); }
};

struct Nvfp4Geglu : isobit_nvfp4_geglu_args {
  Nvfp4Geglu() : isobit_nvfp4_geglu_args(isobit_nvfp4_geglu_args_init()) {}

  Status workspace_size(WorkspaceBytes* bytes) const {
    return isobit_nvfp4_geglu_workspace(this, &bytes->minimum, &bytes->recommended);
  }
  void use(const HostWorkspace& memory) {
    workspace = memory.data();
    workspace_bytes = memory.bytes();
  }
  Status run(void* stream = nullptr) const { return isobit_nvfp4_geglu(this, stream); }
};

// ---- geglu ----------------------------------------------------------------------------------------------------------

struct GegluForward : isobit_geglu_forward_args {
  GegluForward() : isobit_geglu_forward_args() { struct_size = sizeof(isobit_geglu_forward_args); }
  Status run(void* stream = nullptr) const { return isobit_geglu_forward(this, stream); }
};

struct GegluBackward : isobit_geglu_backward_args {
  GegluBackward() : isobit_geglu_backward_args() { struct_size = sizeof(isobit_geglu_backward_args); }
  Status run(void* stream = nullptr) const { return isobit_geglu_backward(this, stream); }
};

}  // namespace v1
}  // namespace isobit

#endif  // ISOBIT_ISOBIT_HPP_
