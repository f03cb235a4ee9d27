#include "ops/linear_logp/cpu/rows.h"

#include "ops/linear_logp/finish.h"

namespace isobit::linear_logp::cpu {
namespace {

constexpr float kNan = numerics::bits_float(numerics::kNanBits);

void write_target(const Params& p, int64_t row, int64_t k, float logp, int32_t rank, float z) {
  if (p.logp) p.logp.at(row, k) = logp;
  if (p.rank) p.rank.at(row, k) = rank;
  if (p.target_logit) p.target_logit.at(row, k) = numerics::canonical_nan(z);
}

}  // namespace

void write_row(const Params& p, int64_t row, const RowValues& values) {
  const RowSum sum = row_sum(values.node);
  bool outside = false;
  for (int64_t k = 0; k < p.targets; ++k) {
    const int64_t id = target_id(p, row, k);
    if (is_ignored(p, id)) {
      write_target(p, row, k, 0.0f, 0, 0.0f);
    } else if (!has_logit(p, id)) {
      outside = true;
      write_target(p, row, k, kNan, -1, kNan);
    } else {
      const int32_t rank = p.rank && sum.kind == RowKind::kUsual ? values.rank[k] : -1;
      write_target(p, row, k, row_logp(sum, values.target_z[k]), rank, values.target_z[k]);
    }
  }
  if (p.lse) p.lse.at(row) = outside ? kNan : row_lse(sum);
  if (p.entropy) p.entropy.at(row) = outside ? kNan : row_entropy(sum, values.node);
  const bool listed = !outside && sum.kind == RowKind::kUsual;
  for (int64_t t = 0; t < p.top; ++t) {
    p.top_id.at(row, t) = listed ? values.top[t].id : -1;
    if (p.top_logp) p.top_logp.at(row, t) = listed ? row_logp(sum, values.top[t].z) : kNan;
  }
}

void write_ignored_row(const Params& p, int64_t row) {
  for (int64_t k = 0; k < p.targets; ++k) write_target(p, row, k, 0.0f, 0, 0.0f);
  if (p.lse) p.lse.at(row) = 0.0f;
  if (p.entropy) p.entropy.at(row) = 0.0f;
  for (int64_t t = 0; t < p.top; ++t) {
    p.top_id.at(row, t) = 0;
    if (p.top_logp) p.top_logp.at(row, t) = 0.0f;
  }
}

}  // namespace isobit::linear_logp::cpu
