// Vector clocks of the race checker. `seen` orders accesses as usual; `proxied` is the part that a proxy fence has made
// visible to the asynchronous proxy. Without the checker both are empty and every operation is nothing.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace isobit::ptx {

struct Clock {
  std::vector<uint32_t> seen, proxied;

  bool empty() const { return seen.empty(); }
  void resize(size_t agents) {
    seen.assign(agents, 0);
    proxied.assign(agents, 0);
  }
  void join(const Clock& other) {
    if (other.empty()) return;
    if (empty()) return void(*this = other);
    for (size_t i = 0; i < seen.size(); ++i) seen[i] = std::max(seen[i], other.seen[i]);
    for (size_t i = 0; i < proxied.size(); ++i) proxied[i] = std::max(proxied[i], other.proxied[i]);
  }
  // What both know.
  void meet(const Clock& other) {
    for (size_t i = 0; i < seen.size(); ++i) seen[i] = std::min(seen[i], other.seen[i]);
    for (size_t i = 0; i < proxied.size(); ++i) proxied[i] = std::min(proxied[i], other.proxied[i]);
  }
  void proxy_fence() {
    for (size_t i = 0; i < seen.size(); ++i) proxied[i] = std::max(proxied[i], seen[i]);
  }
};

}  // namespace isobit::ptx
