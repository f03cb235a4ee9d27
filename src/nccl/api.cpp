// The C functions of libisobit_nccl.
#include <exception>

#include "isobit/tensor_parallel.h"
#include "nccl/group.h"
#include "nccl/nccl_transport.h"

struct isobit_tp {
  std::unique_ptr<isobit::nccl::Group> group;
};

namespace {

isobit::Status create(void* communicator, const isobit_linear_logp_args* args, int32_t timeout_ms, isobit_tp** tp) {
  std::unique_ptr<isobit::nccl::Transport> transport;
  if (tp == nullptr) return isobit::refuse("tp", "a pointer", "null");
  if (isobit::Status s = isobit::nccl::make_nccl_transport(communicator, &transport); !s.ok()) return s;
  auto made = std::make_unique<isobit_tp>();
  const isobit::Status s = isobit::nccl::Group::create(std::move(transport), args, timeout_ms, &made->group);
  if (s.ok()) *tp = made.release();
  return s;
}

isobit::Status check_handle(const isobit_tp* tp) {
  return tp != nullptr ? isobit::Status() : isobit::refuse("tp", "a pointer", "null");
}

}  // namespace

extern "C" {

const char* isobit_tp_last_error(void) { return isobit::last_error(); }

isobit_status isobit_tp_create(void* communicator, const isobit_linear_logp_args* args, int32_t timeout_ms,
                               isobit_tp** tp) {
  try {
    return create(communicator, args, timeout_ms, tp).code();
  } catch (const std::exception& error) {  // no memory, no thread
    return isobit::fail(ISOBIT_INTERNAL_ERROR, "isobit_tp_create: %s", error.what()).code();
  }
}

void isobit_tp_destroy(isobit_tp* tp) { delete tp; }

isobit_status isobit_tp_state_bytes(const isobit_tp* tp, size_t* bytes) {
  if (const isobit::Status s = check_handle(tp); !s.ok()) return s.code();
  if (bytes == nullptr) return isobit::refuse("bytes", "a pointer", "null").code();
  *bytes = tp->group->slot_bytes();
  return ISOBIT_OK;
}

isobit_status isobit_tp_workspace(const isobit_tp* tp, const isobit_linear_logp_args* args, size_t* minimum,
                                  size_t* recommended) {
  if (const isobit::Status s = check_handle(tp); !s.ok()) return s.code();
  return tp->group->workspace(args, minimum, recommended).code();
}

isobit_status isobit_tp_linear_logp(const isobit_tp* tp, const isobit_linear_logp_args* args, void* stream) {
  if (const isobit::Status s = check_handle(tp); !s.ok()) return s.code();
  return tp->group->linear_logp(args, stream).code();
}

}  // extern "C"
