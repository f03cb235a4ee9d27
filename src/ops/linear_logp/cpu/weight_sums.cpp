#include "ops/linear_logp/cpu/weight_sums.h"

#include <algorithm>
#include <cstring>

#include "cpu/mma/multiply_tile.h"
#include "ops/linear_logp/cpu/backward_rows.h"
#include "ops/linear_logp/cpu/operands.h"

namespace isobit::linear_logp::cpu {
namespace {

using isobit::cpu::Format;
using isobit::cpu::kTileColumns;

constexpr uint16_t kOne = 0x3F80;

class WeightSums {
 public:
  WeightSums(const BackwardParams& p, void* saved, const int64_t* valid, IdRange ids, const JobData& job)
      : p_(p), f_(p.forward), saved_(saved), valid_(valid), ids_(ids), job_(job) {
    isobit::cpu::decode_rows(weight_matrix(f_), ids.begin - f_.first_id, ids.size(), job.decoded);
  }

  void run(int64_t valid_count) const {
    for (int64_t begin = 0; begin < valid_count; begin += kPiece) {
      sum_piece(begin, std::min(begin + kPiece, valid_count));
      for (int64_t v = 0; v < ids_.size(); ++v) add_piece(v, begin == 0);
    }
    for (int64_t v = 0; v < ids_.size(); ++v) store(v);
  }

 private:
  // The chains of valid rows [first, last), by their numbers.
  void sum_piece(int64_t first, int64_t last) const {
    for (int64_t begin = first; begin < last; begin += kChainTile) {
      const int64_t count = std::min(begin + kChainTile, last) - begin;
      for (int64_t at = 0; at < count; at += kTileColumns)
        form(begin + at, at, std::min<int64_t>(count - at, kTileColumns));
      isobit::cpu::decode_rows({job_.dt, ids_.size(), count, kChainTile, Format::kBf16}, 0, ids_.size(),
                               job_.decoded_dt);
      for (int64_t h = 0; h < f_.width && p_.wants_weight; h += kTileColumns) {
        const auto columns = static_cast<int>(std::min<int64_t>(kTileColumns, f_.width - h));
        transpose(begin, count, h, columns);
        multiply(columns, count, job_.chain + h, f_.width, begin == first);
      }
      if (p_.wants_bias) {
        std::fill_n(job_.transposed, count, kOne);
        multiply(1, count, job_.bias_chain, 1, begin == first);
      }
    }
  }

  void multiply(int columns, int64_t count, float* chain, int64_t stride, bool restart) const {
    isobit::cpu::multiply_tile(job_.decoded_dt, ids_.size(),
                               {job_.transposed, columns, count, kChainTile, Format::kBf16}, 0, columns, chain, stride,
                               job_.scratch, restart ? nullptr : chain);
  }

  // dt of up to 64 valid rows, which stand at `at` of the chain tile. Ids are the rows of the product here: a step's
  // terms commute.
  void form(int64_t first, int64_t at, int64_t count) const {
    for (int64_t r = 0; r < count; ++r) {
      const int64_t row = valid_[first + r];
      job_.rows[r] = row_gradient(p_, saved_, row);
      std::memcpy(job_.packed + r * f_.width, hidden(row), static_cast<size_t>(f_.width) * sizeof(uint16_t));
    }
    isobit::cpu::multiply_tile(job_.decoded, ids_.size(), {job_.packed, count, f_.width, f_.width, Format::kBf16}, 0,
                               static_cast<int>(count), job_.dot, kTileColumns, job_.scratch);
    form_gradients(p_, {job_.rows, count, ids_, job_.dot, 1, kTileColumns, job_.dt + at, 1, kChainTile});
  }

  const uint16_t* hidden(int64_t row) const { return static_cast<const uint16_t*>(f_.hidden) + row * f_.hidden_stride; }

  void transpose(int64_t first, int64_t count, int64_t h, int columns) const {
    for (int64_t r = 0; r < count; ++r) {
      const uint16_t* const values = hidden(valid_[first + r]) + h;
      for (int64_t c = 0; c < columns; ++c) job_.transposed[c * kChainTile + r] = values[c];
    }
  }

  // One more piece of an id's sums.
  void add_piece(int64_t v, bool first) const {
    const int64_t row = weight_row(v);
    if (p_.wants_weight) {
      add(job_.sums + v * f_.width, job_.chain + v * f_.width, f_.width, first, p_.d_weight, row * p_.d_weight.stride);
    }
    if (p_.wants_bias) add(job_.bias_sum + v, job_.bias_chain + v, 1, first, p_.d_bias, row * p_.d_bias.stride);
  }

  // The first piece follows the buffer's values, if the call accumulates.
  void add(float* sum, const float* piece, int64_t count, bool first, const GradientOutput& out, int64_t offset) const {
    if (first && !p_.accumulate) {
      std::copy_n(piece, count, sum);
      return;
    }
    const float* const before = first ? static_cast<const float*>(out.data) + offset : sum;
    for (int64_t i = 0; i < count; ++i) sum[i] = before[i] + piece[i];
  }

  void store(int64_t v) const {
    const int64_t row = weight_row(v);
    for (int64_t h = 0; h < f_.width && p_.wants_weight; ++h) {
      write_gradient(p_.d_weight, row * p_.d_weight.stride + h, job_.sums[v * f_.width + h]);
    }
    if (p_.wants_bias) write_gradient(p_.d_bias, row * p_.d_bias.stride, job_.bias_sum[v]);
  }

  int64_t weight_row(int64_t v) const { return ids_.begin + v - f_.first_id; }

  const BackwardParams& p_;
  const Params& f_;
  void* saved_;
  const int64_t* valid_;
  IdRange ids_;
  const JobData& job_;
};

}  // namespace

void sum_weight_block(const BackwardParams& p, void* saved, const int64_t* valid, int64_t valid_count, IdRange ids,
                      const JobData& job) {
  WeightSums(p, saved, valid, ids, job).run(valid_count);
}

void fill_weight_row(const BackwardParams& p, int64_t row) {
  if (p.accumulate) return;
  for (int64_t h = 0; h < p.forward.width && p.wants_weight; ++h) {
    write_gradient(p.d_weight, row * p.d_weight.stride + h, 0.0f);
  }
  if (p.wants_bias) write_gradient(p.d_bias, row * p.d_bias.stride, 0.0f);
}

}  // namespace isobit::linear_logp::cpu
