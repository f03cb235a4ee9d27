// The part of the contract that concerns memory: shard states, workspace, and what may overlap what.
#pragma once

#include "ops/linear_logp/contract.h"

namespace isobit::linear_logp {

inline long long number(int64_t value) { return static_cast<long long>(value); }

// Bytes of the state of a shard of these ids.
int64_t state_bytes(const Params& p, IdRange ids);

// least <= value <= most, for the quantity called `letter` of the argument `name`.
Status check_limit(const char* name, const char* letter, int64_t value, int64_t least, int64_t most);

struct Region {
  const char* name;
  ByteRange bytes;
};

// A fixed list: the arguments' tensors, the workspace, and what a merge reads.
class RegionList {
 public:
  void add(const char* name, const isobit_tensor& tensor) { regions_[count_++] = {name, byte_range(tensor)}; }
  void add(const char* name, const void* data, int64_t bytes) {
    const auto begin = reinterpret_cast<uintptr_t>(data);
    regions_[count_++] = {name,
                          data == nullptr ? ByteRange{} : ByteRange{begin, begin + static_cast<uintptr_t>(bytes)}};
  }
  const Region* begin() const { return regions_; }
  const Region* end() const { return regions_ + count_; }

 private:
  Region regions_[24 + kMaxShards];
  int count_ = 0;
};

// Nothing that is written overlaps anything else, judged by first and last byte.
Status check_apart(const RegionList& written, const RegionList& read);

// The state that a shard call writes, and with rank the target logits that it reads.
Status check_state(const isobit_linear_logp_args& args, void* state, Params* params);

// What a merge reads, of the argument `name`: puts it in ascending order, leaves empty shards out and checks that the
// others, *shards of them, partition [0, V).
Status check_partition(const char* name, MergeInput* merge, int64_t vocab, int64_t rows, int32_t* shards);

// The outputs, the state and the workspace of a call against everything else.
Status check_overlaps(const isobit_linear_logp_args& args, const Params& params);

}  // namespace isobit::linear_logp
