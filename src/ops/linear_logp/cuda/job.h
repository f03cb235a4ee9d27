// What one launch sequence works on: a chunk of rows against all ids of the call, and where its partial results lie.
// Plain data that goes to kernels by value.
#pragma once

#include <cstdint>

#include "ops/linear_logp/contract.h"
#include "ops/linear_logp/saved.h"
#include "ops/linear_logp/state.h"
#include "ops/linear_logp/tree.h"

namespace isobit::linear_logp::cuda {

// How the kernel of an architecture cuts the ids into slots. Leaves are numbered from Job::origin.
enum class SlotKind : int32_t {
  kLeaf,   // tiles of whole leaves: slot = leaf
  kTriple  // tiles of 192 ids: every three leaves are four slots, leaf, unit, unit, leaf
};

// Sums on their way to the merge. A slot is a leaf or a unit; element (slot, row) stands at slot * slot_stride + row *
// row_stride. Almost every r is 0, so the sign of s says whether `exponents` was written and need be read.
struct Partials {
  uint32_t* sums;      // bits of s; sign set: r stands in exponents
  int32_t* exponents;  // r
  float* weighted;     // q; nullptr without entropy
  int64_t slot_stride;
  int64_t row_stride;
  SlotKind kind;
};

// A [rows, K] array of the workspace or of a shard's state.
template <class T>
struct Matrix {
  T* data;
  int64_t row_stride;
  int64_t column_stride;
};

// What the top list is made of; null pointers where none is wanted.
struct TopInput {
  float* logits;          // [rows][logits_stride]: all logits of a row, written by the big product
  int64_t logits_stride;  // even
  float* maxima;          // [rows][maxima_stride]: the largest of each unit, written by the big product
  int64_t maxima_stride;
  int32_t* row_r;  // [rows]: the row's (r, s), written by the merge
  float* row_s;
};

struct Job {
  Params p;        // of the chunk: rows, and pointers at its first row
  int64_t origin;  // global id of the first tile's first column: first_id rounded down to a leaf

  // The existing ids of a tile inside [whole_begin, whole_end) make whole units, except for those from ragged_id on,
  // none of them in an incomplete border leaf. whole_end lies beyond every tile if the range ends with the vocabulary:
  // units that do not exist need no care there.
  int64_t whole_begin, whole_end;
  int64_t ragged_id;   // first id of the vocabulary's last unit if that is not whole; else -1
  RangeParts parts;    // nodes and raw border ids of this range
  float* raw;          // shard: logits of parts.front and parts.back, [slot][row]; else nullptr
  int64_t raw_stride;  // from slot to slot

  Partials partials;
  Matrix<float> target_logit;  // of the targets that the range holds
  Matrix<float> rank_target;   // of all targets: what ranks are counted against
  bool select_targets;         // whether the big product leaves target logits there; else launch_gather has
  Matrix<int32_t> rank;        // counts; data is nullptr if rank is not wanted
  SavedArrays saved;           // of the chunk's rows; null if the call does not save
  float* lead_leaf;            // [rows, kLeaf] logits of the leaf that holds the row's lead; nullptr without leads
  TopInput top;
};

// What the inner loops have to compute. Everything of kFull is decided at run time.
enum class Mode { kLogp, kEntropy, kFull };

// Whether a logit is more than its products.
ISOBIT_HD constexpr bool is_tempered(const Params& p) {
  return p.temperature != nullptr || p.temperature_value != 1.0f;
}
ISOBIT_HD constexpr bool finishes_logits(const Params& p) {
  return p.bias != nullptr || p.softcap != 0.0f || is_tempered(p);
}

// True if logits need more than the products or somebody needs more than the targets' logits.
ISOBIT_HD constexpr bool has_options(const Params& p) {
  return finishes_logits(p) || p.wants_rank || p.targets != 1 || p.top > 0;
}

ISOBIT_HD constexpr Mode mode_of(const Params& p) {
  if (has_options(p)) return Mode::kFull;
  return p.wants_entropy ? Mode::kEntropy : Mode::kLogp;
}

// First slot of a leaf, and how many slots it has. There are fewer than 2^25 leaves.
ISOBIT_HD constexpr int32_t slot_of_leaf(SlotKind kind, int32_t leaf) {
  if (kind == SlotKind::kLeaf) return leaf;
  const int32_t third = leaf % 3;
  return leaf / 3 * 4 + third + (third == 2 ? 1 : 0);
}
ISOBIT_HD constexpr int slots_of_leaf(SlotKind kind, int32_t leaf) {
  return kind == SlotKind::kTriple && leaf % 3 == 1 ? 2 : 1;
}

ISOBIT_HD constexpr int64_t count_slots(SlotKind kind, int32_t leaves) {
  return leaves == 0 ? 0 : slot_of_leaf(kind, leaves - 1) + slots_of_leaf(kind, leaves - 1);
}

// The slot of an id given as its distance from Job::origin, and whether that slot is a whole leaf.
ISOBIT_HD constexpr bool is_leaf_slot(SlotKind kind, int64_t offset) {
  return slots_of_leaf(kind, static_cast<int32_t>(offset / kLeaf)) == 1;
}
ISOBIT_HD constexpr int32_t slot_of_id(SlotKind kind, int64_t offset) {
  const bool second = !is_leaf_slot(kind, offset) && offset % kLeaf >= kUnit;
  return slot_of_leaf(kind, static_cast<int32_t>(offset / kLeaf)) + (second ? 1 : 0);
}

// Whether a shard hands this id's logit on as it is.
ISOBIT_HD constexpr bool is_raw(const RangeParts& parts, int64_t id) {
  return (id >= parts.front.begin && id < parts.front.end) || (id >= parts.back.begin && id < parts.back.end);
}

}  // namespace isobit::linear_logp::cuda
