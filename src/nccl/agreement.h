// What the ranks of a group tell each other about their calls, and what must be equal.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.h"
#include "isobit/linear_logp.h"

namespace isobit::nccl {

inline constexpr int kMaxRanks = 128;

// One rank's record. Plain bytes: it travels as it is. Its size and the place of the version stay the same in every
// version of isobit, so that libraries of two versions tell each other so and misread nothing.
struct Agreement {
  static constexpr int kWords = 64;
  // Must be equal on all ranks, in the order in which a disagreement is looked for.
  enum Field : int32_t {
    kVersion,  // the record's first word; where it differs, no other word has a meaning
    kContract,
    kCapability,
    kRows,
    kWidth,
    kVocab,
    kTargets,
    kDtype,
    kBias,
    kTemperature,
    kTemperatureValue,
    kSoftcap,
    kUseIgnoreIndex,
    kIgnoreIndex,
    kEntropy,
    kTraining,  // from here on of backward calls alone
    kBackwardContract,
    kUpstream,        // bit 0: d_logp, 1: d_lse, 2: d_entropy
    kHiddenGradient,  // its dtype
    kFields
  };
  int64_t field[kFields];
  int64_t first_id;
  int64_t count;    // ids of the rank that exist
  int64_t refusal;  // status of the rank's own check, ISOBIT_OK if it has nothing against its arguments
  int64_t unused[kWords - kFields - 3];
};
static_assert(sizeof(Agreement) == 8 * Agreement::kWords && offsetof(Agreement, field) == 0);

// Reads a rank's arguments; its own refusal stands in the record as well as in the status.
Status describe(const isobit_linear_logp_args* args, Agreement* mine);

// The same of a group that trains: its states hold the entropy, whatever outputs a call asks for.
Status describe_training(const isobit_linear_logp_backward_args* args, Agreement* mine);

// The same verdict and line on every rank: each looks at all records in the ranks' order.
Status check_agreement(const Agreement* all, int ranks, const isobit_linear_logp_args& args);

// A call's arguments against what was agreed at creation: the first `fields` of the record, and the range.
Status check_unchanged(const Agreement& agreed, const Agreement& call, int fields);

// forward's arguments with the outputs on which a training group's states depend.
isobit_linear_logp_args training_forward(const isobit_linear_logp_backward_args& args);

// Arguments as another rank has them, as far as the size of its state depends on them.
isobit_linear_logp_args args_of(const Agreement& rank, const isobit_linear_logp_args& args);
isobit_linear_logp_backward_args args_of(const Agreement& rank, const isobit_linear_logp_backward_args& args);

// Status of a libisobit call, with its message as this library's.
Status passed_on(isobit_status status);

}  // namespace isobit::nccl
