// Vector clocks of the race checker. `seen` orders accesses as usual; `proxied` is the part that a proxy fence has made
// visible to the asynchronous proxy; `tensor` is what tcgen05.fence::before_thread_sync put before a synchronisation,
// kept only for kernels that use tensor memory. Without the checker all are empty and every operation is nothing.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace isobit::ptx {

struct Clock {
  std::vector<uint32_t> seen, proxied, tensor;

  bool empty() const { return seen.empty(); }
  void resize(size_t agents, bool with_tensor) {
    seen.assign(agents, 0);
    proxied.assign(agents, 0);
    if (with_tensor) tensor.assign(agents, 0);
  }
  void join(const Clock& other) {
    if (other.empty()) return;
    if (empty()) return void(*this = other);
    raise(seen, other.seen);
    raise(proxied, other.proxied);
    raise(tensor, other.tensor);
  }
  // What both know.
  void meet(const Clock& other) {
    for (size_t i = 0; i < seen.size(); ++i) seen[i] = std::min(seen[i], other.seen[i]);
    for (size_t i = 0; i < proxied.size(); ++i) proxied[i] = std::min(proxied[i], other.proxied[i]);
  }
  void proxy_fence() { raise(proxied, seen); }
  static void raise(std::vector<uint32_t>& to, const std::vector<uint32_t>& from) {
    for (size_t i = 0; i < to.size(); ++i) to[i] = std::max(to[i], from[i]);
  }
};

}  // namespace isobit::ptx
