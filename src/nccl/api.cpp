// The C functions of libisobit_nccl.
#include <exception>

#include "isobit/tensor_parallel.h"
#include "nccl/group.h"
#include "nccl/nccl_transport.h"

struct isobit_tp {
  std::unique_ptr<isobit::nccl::Group> group;
};

namespace {

// Group::create or create_training.
template <class Args>
using Create = isobit::Status (*)(std::unique_ptr<isobit::nccl::Transport>, const Args*, int32_t,
                                  std::unique_ptr<isobit::nccl::Group>*);

template <class Args>
isobit::Status create(void* communicator, const Args* args, int32_t timeout_ms, isobit_tp** tp, Create<Args> make) {
  std::unique_ptr<isobit::nccl::Transport> transport;
  if (tp == nullptr) return isobit::refuse("tp", "a pointer", "null");
  if (isobit::Status s = isobit::nccl::make_nccl_transport(communicator, &transport); !s.ok()) return s;
  auto made = std::make_unique<isobit_tp>();
  const isobit::Status s = make(std::move(transport), args, timeout_ms, &made->group);
  if (s.ok()) *tp = made.release();
  return s;
}

template <class Args>
isobit_status create_or_fail(void* communicator, const Args* args, int32_t timeout_ms, isobit_tp** tp,
                             Create<Args> make) {
  try {
    return create(communicator, args, timeout_ms, tp, make).code();
  } catch (const std::exception& error) {  // no memory, no thread
    return isobit::fail(ISOBIT_INTERNAL_ERROR, "creation: %s", error.what()).code();
  }
}

isobit::Status check_handle(const isobit_tp* tp) {
  return tp != nullptr ? isobit::Status() : isobit::refuse("tp", "a pointer", "null");
}

}  // namespace

extern "C" {

const char* isobit_tp_last_error(void) { return isobit::last_error(); }

isobit_status isobit_tp_create(void* communicator, const isobit_linear_logp_args* args, int32_t timeout_ms,
                               isobit_tp** tp) {
  return create_or_fail(communicator, args, timeout_ms, tp, &isobit::nccl::Group::create);
}

isobit_status isobit_tp_create_training(void* communicator, const isobit_linear_logp_backward_args* args,
                                        int32_t timeout_ms, isobit_tp** tp) {
  return create_or_fail(communicator, args, timeout_ms, tp, &isobit::nccl::Group::create_training);
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

isobit_status isobit_tp_backward_bytes(const isobit_tp* tp, size_t* bytes) {
  if (const isobit::Status s = check_handle(tp); !s.ok()) return s.code();
  if (bytes == nullptr) return isobit::refuse("bytes", "a pointer", "null").code();
  *bytes = tp->group->backward_bytes();
  return ISOBIT_OK;
}

isobit_status isobit_tp_backward_workspace(const isobit_tp* tp, const isobit_linear_logp_backward_args* args,
                                           size_t* minimum, size_t* recommended) {
  if (const isobit::Status s = check_handle(tp); !s.ok()) return s.code();
  return tp->group->backward_workspace(args, minimum, recommended).code();
}

isobit_status isobit_tp_linear_logp_save(const isobit_tp* tp, const isobit_linear_logp_backward_args* args,
                                         void* stream) {
  if (const isobit::Status s = check_handle(tp); !s.ok()) return s.code();
  return tp->group->save(args, stream).code();
}

isobit_status isobit_tp_linear_logp_backward(const isobit_tp* tp, const isobit_linear_logp_backward_args* args,
                                             void* stream) {
  if (const isobit::Status s = check_handle(tp); !s.ok()) return s.code();
  return tp->group->backward(args, stream).code();
}

}  // extern "C"
