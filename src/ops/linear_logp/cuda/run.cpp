#include "ops/linear_logp/cuda/run.h"

#include <algorithm>
#include <cstdint>

#include "core/runtime.h"
#include "ops/linear_logp/cuda/arena.h"
#include "ops/linear_logp/cuda/kernels.h"
#include "ops/linear_logp/cuda/launch.h"

namespace isobit::linear_logp::cuda {
namespace {

// A chunk of this many rows keeps every schedule busy; more gains nothing measurable.
constexpr int64_t kRecommendedRows = 8192;
constexpr int64_t kMinimumRows = 128;  // of the smallest workspace, unless they need more than kMinimumLimit
constexpr size_t kMinimumLimit = size_t{60} << 20;
// With a top list a chunk's logits are in the workspace, so fewer rows are worth it: 768 of 151,936 ids.
constexpr size_t kRecommendedTopBytes = size_t{512} << 20;
constexpr int64_t kMaxTileIds = 1024;  // of any producer
constexpr int64_t kRowGranule = 8;     // rows of a 32-byte sector
constexpr int64_t kChunkGranule = 128;

int64_t round_up(int64_t x, int64_t granule) { return (x + granule - 1) / granule * granule; }

int64_t first_leaf_id(const Params& p) { return p.first_id / kLeaf * kLeaf; }

int32_t leaves_of(const Params& p) {
  return static_cast<int32_t>((p.first_id + p.count - first_leaf_id(p) + kLeaf - 1) / kLeaf);
}

struct Layout {
  Partials partials;
  float* target_logit;
  int32_t* rank;
  float* lead_leaf;
  TopInput top;
  void* scratch;
};

Layout lay_out(const Params& p, const Producer& producer, int64_t rows, Arena* arena) {
  const int64_t slots = count_slots(producer.kind, leaves_of(p));
  const int64_t padded = round_up(rows, kRowGranule);
  Layout layout{};
  layout.partials.kind = producer.kind;
  layout.partials.slot_stride = producer.row_major ? 1 : padded;
  layout.partials.row_stride = producer.row_major ? slots : 1;
  layout.partials.sums = arena->take<uint32_t>(slots * padded);
  layout.partials.exponents = arena->take<int32_t>(slots * padded);
  if (p.wants_entropy) layout.partials.weighted = arena->take<float>(slots * padded);
  layout.target_logit = arena->take<float>(rows * p.targets);
  if (p.wants_rank) layout.rank = arena->take<int32_t>(rows * p.targets);
  if (p.top > 0) {
    layout.top.logits_stride = round_up(p.vocab, kRowGranule);
    layout.top.logits = arena->take<float>(rows * layout.top.logits_stride);
    layout.top.maxima_stride = (p.vocab + kUnit - 1) / kUnit;
    layout.top.maxima = arena->take<float>(rows * layout.top.maxima_stride);
    layout.top.row_r = arena->take<int32_t>(rows);
    layout.top.row_s = arena->take<float>(rows);
  }
  if (p.saves && p.finds_lead) layout.lead_leaf = arena->take<float>(rows * kLeaf);
  layout.scratch = arena->take<unsigned char>(static_cast<int64_t>(producer.scratch_bytes));
  return layout;
}

size_t chunk_bytes(const Params& p, int64_t rows) {
  Arena arena(nullptr);
  lay_out(p, {SlotKind::kTriple, false, kMaxScratchBytes, nullptr}, rows, &arena);
  return arena.used();
}

// The most rows whose chunk fits, in granules where there are several; 0 if not even one does.
int64_t rows_that_fit(const Params& p) {
  int64_t low = 0;
  int64_t high = p.rows;
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (chunk_bytes(p, middle) <= p.workspace_bytes) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low < p.rows && low > kChunkGranule ? low / kChunkGranule * kChunkGranule : low;
}

SavedArrays skip_rows(const SavedArrays& saved, int64_t rows) {
  return {saved.r + rows,        saved.s + rows,        saved.q + rows,
          saved.others_r + rows, saved.others_s + rows, saved.lead + rows};
}

template <class T>
T* advance(T* data, int64_t elements) {
  return data == nullptr ? nullptr : data + elements;
}

const void* advance_bytes(const void* data, int64_t bytes) {
  return data == nullptr ? nullptr : static_cast<const unsigned char*>(data) + bytes;
}

template <class T>
Output<T> advance_rows(Output<T> output, int64_t rows) {
  output.data = advance(output.data, rows * output.row_stride);
  return output;
}

Params rows_of(Params p, int64_t first, int64_t rows) {
  p.rows = rows;
  p.hidden = advance_bytes(p.hidden, first * p.hidden_stride * 2);
  p.target = advance_bytes(p.target, first * p.target_row_stride * (p.target_is_int64 ? 8 : 4));
  p.temperature = advance(p.temperature, first * p.temperature_stride);
  p.logp = advance_rows(p.logp, first);
  p.lse = advance_rows(p.lse, first);
  p.entropy = advance_rows(p.entropy, first);
  p.rank = advance_rows(p.rank, first);
  p.target_logit = advance_rows(p.target_logit, first);
  p.top_id = advance_rows(p.top_id, first);
  p.top_logp = advance_rows(p.top_logp, first);
  return p;
}

Job job_of(const Params& p, const Layout& layout) {
  Job job{};
  job.p = p;
  job.origin = first_leaf_id(p);
  job.parts = range_parts({p.first_id, p.first_id + p.count}, p.vocab);
  job.whole_begin = job.parts.nodes.begin;
  const int64_t end = p.first_id + p.count;
  const bool ends = job.parts.nodes.end == end;
  job.whole_end = ends ? kMaxVocab + kMaxTileIds : job.parts.nodes.end;
  job.ragged_id = ends && end % kUnit != 0 ? end / kUnit * kUnit : -1;
  job.partials = layout.partials;
  job.target_logit = {layout.target_logit, p.targets, 1};
  job.rank_target = job.target_logit;
  job.rank = {layout.rank, p.targets, 1};
  job.lead_leaf = layout.lead_leaf;
  job.top = layout.top;
  return job;
}

// Calls body(chunk's Params, its Layout, its Producer, first row) for every chunk.
template <class Body>
Status for_each_chunk(const Params& p, ChooseProducer choose, Body body) {
  const int64_t fit = rows_that_fit(p);  // at least 1: the minimum has been checked
  for (int64_t first = 0; first < p.rows; first += fit) {
    const Params chunk = rows_of(p, first, std::min(fit, p.rows - first));
    const Producer producer = choose(chunk.rows);
    Arena arena(p.workspace);
    const Layout layout = lay_out(chunk, producer, chunk.rows, &arena);
    if (Status s = body(chunk, layout, producer, first); !s.ok()) return s;
  }
  return Status();
}

Status clear_ranks(const Job& job, int64_t elements, void* stream) {
  if (job.rank.data == nullptr) return Status();
  return runtime().fill_bytes(job.p.device.id, job.rank.data, 0, static_cast<size_t>(elements) * 4, stream);
}

Status run_chunk(Job& job, const Producer& producer, void* scratch, void* stream) {
  const Params& p = job.p;
  if (Status s = clear_ranks(job, p.rows * p.targets, stream); !s.ok()) return s;
  job.select_targets = p.targets == 1 && !p.wants_rank;
  if (!job.select_targets) {
    if (Status s = launch_gather(job, stream); !s.ok()) return s;
  }
  const bool leads = job.lead_leaf != nullptr;
  if (Status s = leads ? launch_leads(job, stream) : Status(); !s.ok()) return s;
  if (Status s = producer.launch(job, scratch, stream); !s.ok()) return s;
  if (Status s = leads ? launch_others(job, stream) : Status(); !s.ok()) return s;
  if (Status s = launch_merge(job, stream); !s.ok()) return s;
  return p.top > 0 ? launch_top(job, stream) : Status();
}

Status run_whole(const Params& p, ChooseProducer choose, void* stream) {
  const auto run = [&](const Params& chunk, const Layout& layout, const Producer& producer, int64_t first) {
    Job job = job_of(chunk, layout);
    if (p.saves) job.saved = skip_rows(saved_arrays(p.saved, p.rows), first);
    return run_chunk(job, producer, layout.scratch, stream);
  };
  return for_each_chunk(p, choose, run);
}

Status run_shard(const Params& p, ChooseProducer choose, void* stream) {
  const bool entropy = p.wants_entropy;
  const bool rank = p.wants_rank;
  const StateLayout to = state_layout(p.shard_ids(), p.vocab, p.rows, p.targets, entropy, rank);
  const auto array = [&](int64_t offset, int64_t row) {
    return reinterpret_cast<float*>(static_cast<unsigned char*>(p.state) + offset) + row;
  };
  if (rank) {
    const auto bytes = static_cast<size_t>(to.bytes - to.rank);
    if (Status s = runtime().fill_bytes(p.device.id, array(to.rank, 0), 0, bytes, stream); !s.ok()) return s;
  }
  return for_each_chunk(
      p, choose, [&](const Params& chunk, const Layout& layout, const Producer& producer, int64_t first) {
        Job job = job_of(chunk, layout);
        job.raw = array(0, first);
        job.raw_stride = p.rows;
        job.target_logit = {array(to.target_logit, first), 1, p.rows};
        if (Status s = launch_gather(job, stream); !s.ok()) return s;
        if (rank) {
          job.rank = {reinterpret_cast<int32_t*>(array(to.rank, first)), 1, p.rows};
          job.rank_target = {chunk.target_logit.data, chunk.target_logit.row_stride, chunk.target_logit.column_stride};
        }
        if (chunk.count > 0) {
          if (Status s = producer.launch(job, layout.scratch, stream); !s.ok()) return s;
        }
        const NodeOutput nodes{reinterpret_cast<int32_t*>(array(to.r, first)), array(to.s, first),
                               entropy ? array(to.q, first) : nullptr, p.rows};
        return job.parts.nodes.size() == 0 ? Status() : launch_publish(job, nodes, stream);
      });
}

Status run_merge(const Params& p, void* stream) {
  ShardList list{};
  list.count = p.state_count;
  for (int32_t i = 0; i < p.state_count; ++i) {
    list.shard[i] = {p.states[i].ids, static_cast<const unsigned char*>(p.states[i].data)};
  }
  return launch_merge_states(p, list, stream);
}

}  // namespace

WorkspaceBytes workspace(const Params& p) {
  if (p.purpose == Purpose::kMerge || p.rows == 0) return {};
  int64_t rows = std::min(p.rows, kMinimumRows);
  while (rows > 1 && chunk_bytes(p, rows) > kMinimumLimit) rows /= 2;
  Params sized = p;
  sized.rows = std::min(p.rows, kRecommendedRows);
  sized.workspace_bytes = p.top > 0 ? kRecommendedTopBytes : SIZE_MAX;
  return {chunk_bytes(p, rows), chunk_bytes(p, std::max(rows, rows_that_fit(sized)))};
}

Status run(const Params& p, ChooseProducer choose, void* stream) {
  switch (p.purpose) {
    case Purpose::kShard:
      return run_shard(p, choose, stream);
    case Purpose::kMerge:
      return run_merge(p, stream);
    default:
      return run_whole(p, choose, stream);
  }
}

}  // namespace isobit::linear_logp::cuda
