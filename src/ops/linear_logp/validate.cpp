#include "ops/linear_logp/validate.h"

#include <algorithm>
#include <cstring>

#include "core/runtime.h"

namespace isobit::linear_logp {
namespace {

// Reads elements of a tensor of any strides, from a device through a window that moves along.
class Reader {
 public:
  Reader(const isobit_tensor& tensor, Device device, void* stream)
      : end_(byte_range(tensor).end), device_(device), stream_(stream) {}

  template <class T>
  Status read(const T* element, T* value) {
    const auto address = reinterpret_cast<uintptr_t>(element);
    if (device_.type == ISOBIT_CPU) {
      *value = *element;
      return Status();
    }
    if (address < begin_ || address + sizeof(T) > begin_ + bytes_) {
      bytes_ = std::min(sizeof window_, static_cast<size_t>(end_ - address));
      begin_ = address;
      if (Status s = runtime().copy_to_host(device_.id, window_, element, bytes_, stream_); !s.ok()) {
        bytes_ = 0;
        return s;
      }
    }
    std::memcpy(value, window_ + (address - begin_), sizeof(T));
    return Status();
  }

 private:
  uintptr_t end_;
  Device device_;
  void* stream_;
  uintptr_t begin_ = 0;
  size_t bytes_ = 0;
  unsigned char window_[16384];
};

Status read_target(Reader* reader, const Params& p, int64_t row, int64_t k, int64_t* id) {
  const int64_t offset = row * p.target_row_stride + k * p.target_column_stride;
  if (p.target_is_int64) return reader->read(static_cast<const int64_t*>(p.target) + offset, id);
  int32_t narrow = 0;
  const Status s = reader->read(static_cast<const int32_t*>(p.target) + offset, &narrow);
  *id = narrow;
  return s;
}

}  // namespace

Status find_bad_row(const isobit_linear_logp_args& args, const Params& params, int64_t* row, void* stream) {
  // The query that filled params did not look at these pointers.
  const isobit_dtype target_dtype = params.target_is_int64 ? ISOBIT_INT64 : ISOBIT_INT32;
  if (Status s = check_view("target", args.target, {target_dtype}, {1, 2}); !s.ok()) return s;
  if (present(args.temperature)) {
    if (Status s = check_view("temperature", args.temperature, {ISOBIT_FP32}, {1, 2}); !s.ok()) return s;
  }
  Reader targets(args.target, params.device, stream);
  Reader temperatures(args.temperature, params.device, stream);
  for (int64_t n = 0; n < params.rows; ++n) {
    bool ignored = true;
    bool outside = false;
    for (int64_t k = 0; k < params.targets; ++k) {
      int64_t id = 0;
      if (Status s = read_target(&targets, params, n, k, &id); !s.ok()) return s;
      if (params.use_ignore_index && id == params.ignore_index) continue;
      ignored = false;
      outside = outside || id < 0 || id >= params.vocab;
    }
    float temperature = params.temperature_value;
    if (params.temperature != nullptr && !ignored) {
      const float* const element = params.temperature + n * params.temperature_stride;
      if (Status s = temperatures.read(element, &temperature); !s.ok()) return s;
    }
    if (!ignored && (outside || !(temperature > 0.0f))) {
      *row = n;
      return Status();
    }
  }
  *row = -1;
  return Status();
}

}  // namespace isobit::linear_logp
