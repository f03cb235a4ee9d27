#include "ops/linear_logp/cpu/backward.h"

#include <algorithm>

#include "cpu/parallel_for.h"
#include "ops/linear_logp/cpu/backward_plan.h"
#include "ops/linear_logp/cpu/backward_rows.h"
#include "ops/linear_logp/cpu/hidden_sums.h"
#include "ops/linear_logp/cpu/kernel.h"
#include "ops/linear_logp/cpu/rows.h"
#include "ops/linear_logp/cpu/weight_sums.h"
#include "ops/linear_logp/segment_climb.h"

namespace isobit::linear_logp::cpu {
namespace {

// The numbers of the valid rows; d_hidden of the others.
int64_t collect_valid(const BackwardParams& p, int64_t* valid) {
  int64_t count = 0;
  for (int64_t row = 0; row < p.forward.rows; ++row) {
    if (is_valid_row(p.forward, row)) {
      valid[count++] = row;
    } else if (p.wants_hidden) {
      fill_hidden_row(p, row, is_ignored_row(p.forward, row) ? 0.0f : numerics::bits_float(numerics::kNanBits));
    }
  }
  return count;
}

void run_sums(const BackwardParams& p, const BackwardData& data) {
  const int64_t valid_count = p.forward.rows > 0 ? collect_valid(p, data.valid) : 0;
  const int64_t ids = p.forward.count;
  const bool wants_rows = p.wants_weight || p.wants_bias;
  for (int64_t row = valid_count == 0 ? 0 : ids; row < p.weight_rows && wants_rows; ++row) fill_weight_row(p, row);
  if (valid_count == 0) return;
  const BackwardPieces pieces = choose_backward_pieces(p, p.forward.workspace_bytes);
  const int64_t block = pieces.block;
  // Few rows or ids go in smaller blocks, so that every thread has one.
  const auto block_of = [&](int64_t all) {
    return std::clamp((all + pieces.threads - 1) / pieces.threads, int64_t{1}, block);
  };
  if (p.wants_hidden) {
    const int64_t rows = block_of(valid_count);
    isobit::cpu::parallel_for((valid_count + rows - 1) / rows, pieces.threads, [&](int64_t at, int thread) {
      const int64_t first = at * rows;
      sum_hidden_block(p, data.saved, data.valid + first, std::min(rows, valid_count - first),
                       job_data(p, pieces, thread));
    });
  }
  if (wants_rows) {
    const int64_t size = block_of(std::max<int64_t>(ids, 1));
    isobit::cpu::parallel_for((ids + size - 1) / size, pieces.threads, [&](int64_t at, int thread) {
      const int64_t first = p.forward.first_id + at * size;
      const IdRange range = {first, std::min(first + size, p.forward.first_id + ids)};
      sum_weight_block(p, data.saved, data.valid, valid_count, range, job_data(p, pieces, thread));
    });
  }
}

void merge_parts(const BackwardParams& p) {
  const Params& f = p.forward;
  constexpr int64_t kColumns = 64;
  const int64_t threads = std::min<int64_t>(isobit::cpu::thread_count(f.threads), std::max<int64_t>(f.rows, 1));
  isobit::cpu::parallel_for(f.rows, static_cast<int>(threads), [&](int64_t row, int) {
    float levels[kSegmentLevels * kColumns];
    for (int64_t h = 0; h < f.width; h += kColumns) {
      const int64_t columns = std::min(kColumns, f.width - h);
      SegmentClimb climb({kSegmentLevels - 1, 0}, f.vocab, levels, columns);
      for (int32_t i = 0; i < p.part_count; ++i) {
        const SegmentRange segments = segment_range(p.parts[i].ids, f.vocab);
        const float* sums = static_cast<const float*>(p.parts[i].data) + row * f.width + h;
        for (int64_t at = segments.begin; at < segments.end; sums += f.rows * f.width) {
          const NodeId node = largest_segment_node(at, segments.end);
          climb.push(node, sums);
          at = (node.index + 1) << node.level;
        }
      }
      for (int64_t c = 0; c < columns; ++c) {
        write_gradient(p.d_hidden, row * p.d_hidden.stride + h + c, climb.value()[c]);
      }
    }
  });
}

}  // namespace

Status takes_backward(const BackwardParams&, const DeviceProperties&) { return Status(); }

WorkspaceBytes backward_workspace(const BackwardParams& p) {
  const WorkspaceBytes forward = workspace(forward_of(p, nullptr, nullptr, 0));
  return {backward_bytes(p, smallest_backward_pieces(p), forward.minimum),
          backward_bytes(p, best_backward_pieces(p), forward.recommended)};
}

Status run_backward(const BackwardParams& p, void*) {
  if (p.purpose == BackwardPurpose::kMerge) {
    merge_parts(p);
    return Status();
  }
  if (p.purpose == BackwardPurpose::kSaveMerge) {
    Params forward = p.forward;
    forward.saves = true;
    forward.saved = p.saved;
    run_merge(forward);
    return Status();
  }
  BackwardData data{};
  if (p.forward.rows > 0) data = backward_data(p);
  const bool makes_record = p.purpose == BackwardPurpose::kSave || p.saved == nullptr;
  if (makes_record && p.forward.rows > 0) run_forward(forward_of(p, data.saved, data.forward, data.forward_bytes));
  if (p.purpose != BackwardPurpose::kSave) run_sums(p, data);
  return Status();
}

}  // namespace isobit::linear_logp::cpu
