// The T largest logits seen so far, best first.
#pragma once

#include "ops/linear_logp/cpu/rows.h"
#include "ops/linear_logp/finish.h"

namespace isobit::linear_logp::cpu {

// Works on memory of the caller; entries may come in any order.
class TopList {
 public:
  TopList(TopEntry* entries, int32_t* size, int64_t capacity) : entries_(entries), size_(*size), capacity_(capacity) {}

  bool full() const { return size_ == capacity_; }
  float smallest() const { return entries_[size_ - 1].z; }

  void add(TopEntry entry) {
    if (full() && !before(entry, entries_[size_ - 1])) return;
    int64_t at = full() ? size_ - 1 : size_++;
    for (; at > 0 && before(entry, entries_[at - 1]); --at) entries_[at] = entries_[at - 1];
    entries_[at] = entry;
  }

 private:
  static bool before(TopEntry a, TopEntry b) { return ranks_before(a.z, a.id, b.z, b.id); }

  TopEntry* entries_;
  int32_t& size_;
  int64_t capacity_;
};

}  // namespace isobit::linear_logp::cpu
