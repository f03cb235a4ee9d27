#include "ops/linear_logp/cpu/plan.h"

#include <algorithm>

#include "cpu/mma/multiply_tile.h"
#include "cpu/parallel_for.h"
#include "ops/linear_logp/cpu/carver.h"

namespace isobit::linear_logp::cpu {
namespace {

// A block shares the decoding of a tile of weights; beyond 128 rows that share is below 10 % and the rows leave the L2
// cache.
constexpr int64_t kBlockRows = 128;
constexpr int64_t kSmallestBlockRows = 16;
constexpr int64_t kJobsPerThread = 4;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

ChunkData carve_chunk(const Params& p, const Pieces& pieces, Carver* carver) {
  const int64_t rows = pieces.chunk_rows();
  ChunkData data;
  data.row = carver->take<int64_t>(rows);
  data.packed = carver->take<uint16_t>(rows * p.width);
  data.decoded_bytes = (isobit::cpu::decoded_rows_bytes(pieces.block_rows, p.width) + 63) / 64 * 64;
  data.decoded = carver->take<char>(static_cast<int64_t>(data.decoded_bytes) * pieces.blocks);
  data.target_z = carver->take<float>(rows * p.targets);
  data.slots = carver->take<Node>(rows * slot_count(p));
  data.lead = carver->take<int64_t>(p.saves ? rows : 0);
  data.others = carver->take<Node>(p.saves ? rows : 0);
  return data;
}

ThreadData carve_thread(const Params& p, const Pieces& pieces, Carver* carver) {
  const int64_t rows = pieces.chunk_rows();
  ThreadData data;
  data.scratch = carver->take<char>(static_cast<int64_t>(isobit::cpu::tile_scratch_bytes(pieces.block_rows)));
  data.z = carver->take<float>(pieces.block_rows * kUnit);
  data.leaf = carver->take<Node>(node_variants(p) * pieces.block_rows);
  data.span = carver->take<Node>(node_variants(p) * pieces.block_rows);
  data.rank = carver->take<int32_t>(p.wants_rank ? rows * p.targets : 0);
  data.top = carver->take<TopEntry>(rows * p.top);
  data.top_size = carver->take<int32_t>(p.top > 0 ? rows : 0);
  return data;
}

// Blocks enough to keep every thread busy when the vocabulary alone has too few spans.
int64_t useful_blocks(const Params& p, int threads, int64_t block_rows) {
  const int64_t spans = std::max<int64_t>(spans_of(p.shard_ids()).size(), 1);
  const int64_t wanted = divide_up(kJobsPerThread * threads, spans);
  return std::clamp<int64_t>(wanted, 1, std::max<int64_t>(divide_up(p.rows, block_rows), 1));
}

}  // namespace

IdRange spans_of(IdRange ids) {
  if (ids.size() == 0) return {0, 0};
  return {ids.begin / node_ids(kSpanLevel), divide_up(ids.end, node_ids(kSpanLevel))};
}

int64_t slot_count(const Params& p) {
  return count_nodes(range_parts(p.shard_ids(), p.vocab).nodes, p.vocab, kSpanLevel);
}

Pieces smallest_pieces(const Params& p) { return {1, std::clamp<int64_t>(p.rows, 1, kSmallestBlockRows), 1}; }

Pieces best_pieces(const Params& p) {
  const int threads = isobit::cpu::thread_count(p.threads);
  const int64_t block_rows = std::clamp<int64_t>(p.rows, 1, kBlockRows);
  const int64_t blocks = useful_blocks(p, threads, block_rows);
  const int64_t jobs = std::max<int64_t>(spans_of(p.shard_ids()).size() * blocks, 1);
  return {static_cast<int>(std::min<int64_t>(threads, jobs)), block_rows, blocks};
}

Pieces choose_pieces(const Params& p, size_t bytes) {
  const Pieces best = best_pieces(p);
  const Pieces smallest = smallest_pieces(p);
  for (Pieces pieces = best;; pieces.threads = std::max(pieces.threads / 2, 1)) {
    for (pieces.block_rows = best.block_rows;;
         pieces.block_rows = std::max(pieces.block_rows / 2, smallest.block_rows)) {
      for (pieces.blocks = best.blocks; pieces.blocks > 0; --pieces.blocks) {
        if (workspace_bytes(p, pieces) <= bytes) return pieces;
      }
      if (pieces.block_rows == smallest.block_rows) break;
    }
    if (pieces.threads == 1) return smallest;
  }
}

size_t workspace_bytes(const Params& p, const Pieces& pieces) {
  Carver carver(nullptr);
  carve_chunk(p, pieces, &carver);
  for (int thread = 0; thread < pieces.threads; ++thread) carve_thread(p, pieces, &carver);
  return carver.used();
}

ChunkData chunk_data(const Params& p, const Pieces& pieces, void* workspace) {
  Carver carver(workspace);
  return carve_chunk(p, pieces, &carver);
}

ThreadData thread_data(const Params& p, const Pieces& pieces, void* workspace, int thread) {
  Carver carver(workspace);
  carve_chunk(p, pieces, &carver);
  ThreadData data;
  for (int i = 0; i <= thread; ++i) data = carve_thread(p, pieces, &carver);
  return data;
}

}  // namespace isobit::linear_logp::cpu
