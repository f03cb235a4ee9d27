#include "ops/linear_logp/cpu/hidden_sums.h"

#include <algorithm>
#include <cstring>

#include "cpu/mma/multiply_tile.h"
#include "ops/linear_logp/cpu/backward_rows.h"
#include "ops/linear_logp/cpu/operands.h"
#include "ops/linear_logp/segment_climb.h"

namespace isobit::linear_logp::cpu {
namespace {

using isobit::cpu::Format;
using isobit::cpu::kTileColumns;

class HiddenSums {
 public:
  HiddenSums(const BackwardParams& p, int64_t count, const JobData& job)
      : p_(p), f_(p.forward), count_(count), job_(job) {}

  void load(void* saved, const int64_t* valid) const {
    for (int64_t r = 0; r < count_; ++r) {
      job_.rows[r] = row_gradient(p_, saved, valid[r]);
      const uint16_t* const hidden = static_cast<const uint16_t*>(f_.hidden) + valid[r] * f_.hidden_stride;
      std::memcpy(job_.packed + r * f_.width, hidden, static_cast<size_t>(f_.width) * sizeof(uint16_t));
    }
    isobit::cpu::decode_rows({job_.packed, count_, f_.width, f_.width, Format::kBf16}, 0, count_, job_.decoded);
  }

  void run() const {
    const SegmentRange segments = segment_range(f_.shard_ids(), f_.vocab);
    int64_t node_index = 0;
    for (int64_t at = segments.begin; at < segments.end; ++node_index) {
      const NodeId node = largest_segment_node(at, segments.end);
      const int64_t end = (node.index + 1) << node.level;
      SegmentClimb climb(node, f_.vocab, job_.sums, count_ * f_.width);
      for (int64_t segment = at; segment < end; ++segment) {
        const IdRange ids = segment_node_ids({0, segment}, f_.vocab);
        if (ids.size() == 0) break;
        for (int64_t begin = ids.begin; begin < ids.end; begin += kPiece) {
          sum_piece({begin, std::min(begin + kPiece, ids.end)});
          if (begin == ids.begin) {
            std::copy_n(job_.chain, count_ * f_.width, piece_sum());
          } else {
            for (int64_t i = 0; i < count_ * f_.width; ++i) piece_sum()[i] = piece_sum()[i] + job_.chain[i];
          }
        }
        climb.push({0, segment}, piece_sum());
      }
      store(climb.value(), node_index);
      at = end;
    }
  }

 private:
  // Behind the levels of the climb.
  float* piece_sum() const { return job_.sums + kSegmentLevels * count_ * f_.width; }

  void sum_piece(IdRange piece) const {
    for (int64_t begin = piece.begin; begin < piece.end; begin += kChainTile) {
      const IdRange ids = {begin, std::min(begin + kChainTile, piece.end)};
      form(ids);
      isobit::cpu::decode_rows({job_.dt, count_, ids.size(), kChainTile, Format::kBf16}, 0, count_, job_.decoded_dt);
      for (int64_t h = 0; h < f_.width; h += kTileColumns) {
        const auto columns = static_cast<int>(std::min<int64_t>(kTileColumns, f_.width - h));
        transpose(ids, h, columns);
        float* const chain = job_.chain + h;
        isobit::cpu::multiply_tile(job_.decoded_dt, count_,
                                   {job_.transposed, columns, ids.size(), kChainTile, Format::kBf16}, 0, columns, chain,
                                   f_.width, job_.scratch, begin == piece.begin ? nullptr : chain);
      }
    }
  }

  // dt of the ids, from logits made anew.
  void form(IdRange ids) const {
    for (int64_t id = ids.begin; id < ids.end; id += kTileColumns) {
      const IdRange tile = {id, std::min<int64_t>(id + kTileColumns, ids.end)};
      isobit::cpu::multiply_tile(job_.decoded, count_, weight_matrix(f_), id - f_.first_id,
                                 static_cast<int>(tile.size()), job_.dot, kTileColumns, job_.scratch);
      form_gradients(p_,
                     {job_.rows, count_, tile, job_.dot, kTileColumns, 1, job_.dt + (id - ids.begin), kChainTile, 1});
    }
  }

  void transpose(IdRange ids, int64_t h, int columns) const {
    for (int64_t i = 0; i < ids.size(); ++i) {
      const uint16_t* const weight =
          static_cast<const uint16_t*>(f_.weight) + (ids.begin + i - f_.first_id) * f_.weight_stride + h;
      for (int64_t c = 0; c < columns; ++c) job_.transposed[c * kChainTile + i] = weight[c];
    }
  }

  void store(const float* sums, int64_t node) const {
    for (int64_t r = 0; r < count_; ++r) {
      const int64_t row = job_.rows[r].row;
      for (int64_t h = 0; h < f_.width; ++h) {
        const float x = sums[r * f_.width + h];
        if (p_.part != nullptr) {
          p_.part[(node * f_.rows + row) * f_.width + h] = numerics::canonical_nan(x);
        } else {
          write_gradient(p_.d_hidden, row * p_.d_hidden.stride + h, x);
        }
      }
    }
  }

  const BackwardParams& p_;
  const Params& f_;
  int64_t count_;
  const JobData& job_;
};

}  // namespace

void sum_hidden_block(const BackwardParams& p, void* saved, const int64_t* valid, int64_t count, const JobData& job) {
  const HiddenSums sums(p, count, job);
  sums.load(saved, valid);
  sums.run();
}

void fill_hidden_row(const BackwardParams& p, int64_t row, float value) {
  const Params& f = p.forward;
  const int64_t nodes = p.part == nullptr ? 0 : count_segment_nodes(segment_range(f.shard_ids(), f.vocab));
  for (int64_t h = 0; h < f.width; ++h) {
    if (p.d_hidden) write_gradient(p.d_hidden, row * p.d_hidden.stride + h, value);
    for (int64_t node = 0; node < nodes; ++node) p.part[(node * f.rows + row) * f.width + h] = value;
  }
}

}  // namespace isobit::linear_logp::cpu
