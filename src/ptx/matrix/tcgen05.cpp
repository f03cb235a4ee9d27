// tcgen05: tensor memory and its matrix unit.
#include "ptx/matrix/tcgen05.h"

#include "ptx/decode/families.h"

namespace isobit::ptx {

void decode_tcgen05(Decoder& d) {
  d.scope().kernel().uses_tensor_memory = true;
  const size_t form = d.require_any({"alloc", "dealloc", "relinquish_alloc_permit", "ld", "st", "wait::ld", "wait::st",
                                     "fence::before_thread_sync", "fence::after_thread_sync", "cp", "commit", "mma"});
  if (form <= 2) return decode_tensor_allocation(d, form);
  if (form <= 4) return decode_tensor_transfer(d, form == 3);
  if (form <= 6) return decode_tensor_wait(d, form == 5);
  if (form <= 8) return decode_tensor_fence(d, form == 8);
  if (d.take("cta_group::2")) d.fail("pairs of CTAs are not supported");
  d.require("cta_group::1");
  if (form == 9) return decode_tensor_copy_in(d);
  if (form == 10) return decode_tensor_commit(d);
  decode_tensor_multiply(d);
}

}  // namespace isobit::ptx
