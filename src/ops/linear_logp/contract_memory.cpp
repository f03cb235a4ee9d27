#include "ops/linear_logp/contract_memory.h"

#include <algorithm>
#include <cstdio>

#include "ops/linear_logp/state.h"

namespace isobit::linear_logp {
namespace {

Status check_pair(const Region& written, const Region& other) {
  if (!written.bytes.overlaps(other.bytes)) return Status();
  char rule[64];
  std::snprintf(rule, sizeof rule, "memory apart from %s", other.name);
  return refuse(written.name, rule, "an overlap");
}

}  // namespace

int64_t state_bytes(const Params& p, IdRange ids) {
  return state_layout(ids, p.vocab, p.rows, p.targets, p.wants_entropy, p.wants_rank).bytes;
}

Status check_limit(const char* name, const char* letter, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return Status();
  char rule[64];
  std::snprintf(rule, sizeof rule, "%lld <= %s <= %lld", number(least), letter, number(most));
  return refuse(name, rule, "%s = %lld", letter, number(value));
}

Status check_apart(const RegionList& written, const RegionList& read) {
  for (const Region& region : written) {
    for (const Region& other : read) {
      if (Status s = check_pair(region, other); !s.ok()) return s;
    }
    for (const Region* other = &region + 1; other != written.end(); ++other) {
      if (Status s = check_pair(region, *other); !s.ok()) return s;
    }
  }
  return Status();
}

Status check_state(const isobit_linear_logp_args& args, void* state, Params* params) {
  if (params->wants_rank) {
    const isobit_tensor& logit = args.target_logit;
    const int rank = args.target.rank;
    if (!present(logit)) return refuse("target_logit", "the targets' logits in a shard call with rank", "none");
    if (Status s = check_view("target_logit", logit, {ISOBIT_FP32}, {rank}); !s.ok()) return s;
    params->target_logit = {static_cast<float*>(logit.data), logit.stride[0], rank == 2 ? logit.stride[1] : 0};
  }
  if (state == nullptr && state_bytes(*params, params->shard_ids()) > 0) return refuse("state", "a pointer", "null");
  if (reinterpret_cast<uintptr_t>(state) % kStateAlignment != 0) {
    return refuse("state", "memory aligned to 16 bytes", "%p", state);
  }
  params->state = state;
  return Status();
}

Status check_partition(const char* name, MergeInput* merge, int64_t vocab, int64_t rows, int32_t* shards) {
  if (Status s = check_limit("count", "count", merge->count, 1, kMaxShards); !s.ok()) return s;
  if (merge->listed == nullptr) return refuse(name, "a pointer", "null");
  int32_t used = 0;
  for (int32_t i = 0; i < merge->count; ++i) {
    const isobit_linear_logp_state& listed = merge->listed[i];
    if (listed.count < 0 || listed.count > vocab || listed.first_id < 0 || listed.first_id > kMaxVocab) {
      return refuse(name, "ranges within [0, V)", "%s[%d]: first_id %lld, count %lld", name, i, number(listed.first_id),
                    number(listed.count));
    }
    if (listed.count == 0) continue;
    if (listed.data == nullptr && rows > 0) {
      return refuse(name, "the data of each", "%s[%d].data null", name, i);
    }
    if (reinterpret_cast<uintptr_t>(listed.data) % kStateAlignment != 0) {
      return refuse(name, "data aligned to 16 bytes", "%s[%d].data = %p", name, i, listed.data);
    }
    merge->ordered[used++] = {{listed.first_id, listed.first_id + listed.count}, listed.data};
  }
  std::sort(merge->ordered, merge->ordered + used,
            [](const StateView& a, const StateView& b) { return a.ids.begin < b.ids.begin; });
  constexpr const char* kRule = "shards that partition [0, V)";
  int64_t covered = 0;
  for (int32_t i = 0; i < used; ++i) {
    const IdRange ids = merge->ordered[i].ids;
    if (ids.begin != covered) {
      const bool overlap = ids.begin < covered;
      return refuse(name, kRule, "%s at id %lld", overlap ? "an overlap" : "a gap",
                    number(overlap ? ids.begin : covered));
    }
    covered = ids.end;
  }
  if (covered != vocab) {
    return refuse(name, kRule, "ids up to %lld of V = %lld", number(covered), number(vocab));
  }
  *shards = used;
  return Status();
}

Status check_overlaps(const isobit_linear_logp_args& args, const Params& params) {
  RegionList written;
  RegionList read;
  if (params.purpose == Purpose::kShard) {
    written.add("state", params.state, state_bytes(params, params.shard_ids()));
    if (params.wants_rank) read.add("target_logit", args.target_logit);
  } else {
    written.add("logp", args.logp);
    written.add("lse", args.lse);
    written.add("entropy", args.entropy);
    written.add("rank", args.rank);
    written.add("target_logit", args.target_logit);
    written.add("top_id", args.top_id);
    written.add("top_logp", args.top_logp);
  }
  if (params.purpose != Purpose::kMerge) {
    written.add("workspace", params.workspace, static_cast<int64_t>(params.workspace_bytes));
    read.add("hidden", args.hidden);
    read.add("weight", args.weight);
    read.add("bias", args.bias);
    read.add("temperature", args.temperature);
  }
  read.add("target", args.target);
  for (int32_t i = 0; i < params.state_count; ++i) {
    read.add("states", params.states[i].data, state_bytes(params, params.states[i].ids));
  }
  return check_apart(written, read);
}

}  // namespace isobit::linear_logp
