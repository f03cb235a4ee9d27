// How the race checker orders tensor memory. A warp has four agents there: its products, its copies from shared memory,
// its loads and its stores. Products are ordered by their issue, and a product follows the copies issued before it; a
// copy follows no product that was not waited for. An access must follow an earlier one of another agent through
// `visible`: what tcgen05.wait finished for the warp itself, and what tcgen05.fence::after_thread_sync took in of that
// which a fence::before_thread_sync, or a commit, put before a synchronisation.
#pragma once
#include <cstdint>
#include <vector>

#include "ptx/engine/clock.h"
#include "ptx/engine/tensor_memory.h"

namespace isobit::ptx {

class Warp;
class RaceChecker;

struct TensorOrder {
  int product_agent = 0, copy_agent = 0, load_agent = 0, store_agent = 0;
  uint32_t products = 0, copies = 0, loads = 0, stores = 0;  // epochs of the agents
  Clock pipe;                                                // what the next product or commit follows
  std::vector<uint32_t> visible, pipe_visible;

  void start(const RaceChecker& races, int warp_agent);
};

void before_thread_sync(Warp& w);
void after_thread_sync(Warp& w);
TensorAccessor next_tensor_load(Warp& w);
TensorAccessor next_tensor_store(Warp& w);
TensorAccessor tensor_release(Warp& w);
void finish_tensor_loads(Warp& w);
void finish_tensor_stores(Warp& w);

}  // namespace isobit::ptx
