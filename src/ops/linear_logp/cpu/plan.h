// How a call is cut into pieces and where the pieces keep their data in the caller's workspace.
//
// A chunk is `blocks` blocks of up to `block_rows` rows; each block is decoded once. A job is one span of 1,024 global
// ids against one block; it leaves the span's node, or the leaves of a span that is not complete, in slots.
#pragma once

#include "ops/linear_logp/contract.h"
#include "ops/linear_logp/cpu/rows.h"
#include "ops/linear_logp/node.h"

namespace isobit::linear_logp::cpu {

inline constexpr int kSpanLevel = 1;

struct Pieces {
  int threads;
  int64_t block_rows;
  int64_t blocks;
  int64_t chunk_rows() const { return block_rows * blocks; }
};

// Data of one chunk. Rows are those of the chunk: only active ones, without gaps.
struct ChunkData {
  int64_t* row;      // [chunk_rows] row of the call
  uint16_t* packed;  // [chunk_rows][H]
  char* decoded;     // [blocks][decoded_bytes]
  size_t decoded_bytes;
  float* target_z;  // [chunk_rows][K]
  Node* slots;      // [slot][chunk_rows]
  int64_t* lead;    // [chunk_rows] id whose logit `others` leaves out, -1 for none; only if the call saves
  Node* others;     // [chunk_rows] the slot that holds the lead, without it; likewise
};

// Data of one thread.
struct ThreadData {
  char* scratch;      // of multiply_tile
  float* z;           // [block_rows][kUnit]
  Node* leaf;         // [variant][block_rows]: of all logits, and without the lead's if the call saves
  Node* span;         // likewise
  int32_t* rank;      // [chunk_rows][K], if rank is wanted
  TopEntry* top;      // [chunk_rows][T], with a top list
  int32_t* top_size;  // [chunk_rows]
};

inline int64_t node_variants(const Params& p) { return p.saves ? 2 : 1; }

// Spans that the call's ids touch, and nodes that their jobs leave per row.
IdRange spans_of(IdRange ids);
int64_t slot_count(const Params& p);

// The best pieces that fit into `bytes`; the smallest pieces if none do.
Pieces choose_pieces(const Params& p, size_t bytes);
Pieces smallest_pieces(const Params& p);
Pieces best_pieces(const Params& p);

// Bytes of a call's workspace with these pieces.
size_t workspace_bytes(const Params& p, const Pieces& pieces);

ChunkData chunk_data(const Params& p, const Pieces& pieces, void* workspace);
ThreadData thread_data(const Params& p, const Pieces& pieces, void* workspace, int thread);

}  // namespace isobit::linear_logp::cpu
