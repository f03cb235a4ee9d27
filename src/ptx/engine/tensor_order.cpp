#include "ptx/engine/tensor_order.h"

#include "ptx/engine/engine.h"

namespace isobit::ptx {
namespace {

TensorAccessor next_access(Warp& w, int agent, uint32_t& epoch) {
  if (w.clock.empty()) return {.pc = w.pc};
  return {&w.clock.seen, &w.tensor.visible, agent, ++epoch, w.pc};
}

// What the warp waited for is ordered before all that it does next.
void finish(Warp& w, int agent, uint32_t epoch) {
  if (w.clock.empty()) return;
  w.clock.seen[static_cast<size_t>(agent)] = epoch;
  w.tensor.visible[static_cast<size_t>(agent)] = epoch;
}

}  // namespace

void TensorOrder::start(const RaceChecker& races, int warp_agent) {
  pipe = races.empty_clock();
  if (pipe.tensor.empty()) return;
  product_agent = races.tensor_agents(warp_agent);
  copy_agent = product_agent + 1;
  load_agent = product_agent + 2;
  store_agent = product_agent + 3;
  visible = pipe_visible = pipe.tensor;
}

void before_thread_sync(Warp& w) {
  if (w.clock.empty()) return;
  Clock::raise(w.clock.tensor, w.clock.seen);
  Clock::raise(w.released.tensor, w.clock.tensor);
}

void after_thread_sync(Warp& w) {
  if (w.clock.empty()) return;
  Clock::raise(w.clock.tensor, w.acquired.tensor);
  Clock::raise(w.tensor.visible, w.clock.tensor);
}

TensorAccessor next_tensor_load(Warp& w) { return next_access(w, w.tensor.load_agent, w.tensor.loads); }
TensorAccessor next_tensor_store(Warp& w) { return next_access(w, w.tensor.store_agent, w.tensor.stores); }
void finish_tensor_loads(Warp& w) { finish(w, w.tensor.load_agent, w.tensor.loads); }
void finish_tensor_stores(Warp& w) { finish(w, w.tensor.store_agent, w.tensor.stores); }

// Giving memory back needs an order, but no fence.
TensorAccessor tensor_release(Warp& w) {
  if (w.clock.empty()) return {.pc = w.pc};
  return {&w.clock.seen, &w.tensor.visible, w.agent, w.clock.seen[static_cast<size_t>(w.agent)], w.pc, false};
}

}  // namespace isobit::ptx
