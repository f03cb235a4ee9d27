// Decoders of the copies behind the opcode cp.
#pragma once
#include "ptx/decode/families.h"

namespace isobit::ptx {

void decode_cp_async(Decoder& d);     // cp.async
void decode_bulk_copy(Decoder& d);    // cp.async.bulk without a tensor
void decode_tensor_copy(Decoder& d);  // cp.async.bulk.tensor
void decode_bulk_group(Decoder& d, bool wait);

}  // namespace isobit::ptx
