#include "ptx/engine/global_memory.h"

#include <algorithm>
#include <cstring>

namespace isobit::ptx {

bool GlobalMemory::add(std::byte* data, uint64_t size, Access access, bool initialised) {
  const uint64_t base = reinterpret_cast<uint64_t>(data);
  if (size == 0) return true;
  const auto next = regions_.lower_bound(base);
  if (next != regions_.end() && next->first - base < size) return false;
  if (next != regions_.begin() && base - std::prev(next)->first < std::prev(next)->second.size) return false;
  Region region{base, size, data, access, {}};
  if (!initialised) region.valid.assign(size, 0);
  regions_.emplace(base, std::move(region));
  last_ = nullptr;
  return true;
}

bool GlobalMemory::remove(uint64_t base) {
  last_ = nullptr;
  return regions_.erase(base) > 0;
}

Region* GlobalMemory::find(uint64_t address) {
  if (last_ && last_->contains(address, 1)) return last_;
  auto it = regions_.upper_bound(address);
  if (it == regions_.begin()) return nullptr;
  Region& region = std::prev(it)->second;
  if (!region.contains(address, 1)) return nullptr;
  last_ = &region;
  return last_;
}

const Region* GlobalMemory::find(uint64_t address) const { return const_cast<GlobalMemory*>(this)->find(address); }

std::byte* GlobalMemory::access(uint64_t address, uint64_t bytes, bool write, bool& uninitialised) {
  Region* region = find(address);
  if (!region || !region->contains(address, bytes)) {
    std::string where = " is in no registered buffer";
    if (region) {
      where = " passes the end of a buffer of " + std::to_string(region->size) + " bytes at offset " +
              std::to_string(address - region->base);
    }
    throw ExecutionFault{FindingKind::kOutOfBounds, std::string(write ? "write" : "read") + " of " +
                                                        std::to_string(bytes) + " bytes at " + hex(address) + where};
  }
  if (write && region->access == Access::kRead) {
    throw ExecutionFault{FindingKind::kAccessViolation,
                         "write to a read-only buffer at offset " + std::to_string(address - region->base)};
  }
  if (!region->valid.empty()) {
    uint8_t* valid = region->valid.data() + (address - region->base);
    if (write)
      std::memset(valid, 1, bytes);
    else if (std::find(valid, valid + bytes, 0) != valid + bytes)
      uninitialised = true;
  }
  return region->data + (address - region->base);
}

void GlobalMemory::mark_initialised(uint64_t address, uint64_t bytes) {
  Region* region = find(address);
  if (!region || region->valid.empty()) return;
  const uint64_t offset = address - region->base;
  std::fill_n(region->valid.begin() + static_cast<std::ptrdiff_t>(offset), std::min(bytes, region->size - offset), 1);
}

}  // namespace isobit::ptx
