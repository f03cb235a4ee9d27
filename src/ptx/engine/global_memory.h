// Registered global buffers with bounds, access rights and an initialisation shadow.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "ptx/engine/machine.h"

namespace isobit::ptx {

struct Region {
  uint64_t base = 0;
  uint64_t size = 0;
  std::byte* data = nullptr;  // at base
  Access access = Access::kReadWrite;
  std::vector<uint8_t> valid;  // one flag a byte; empty when all of it is initialised

  bool contains(uint64_t address, uint64_t bytes) const {
    return address >= base && bytes <= size && address - base <= size - bytes;
  }
};

class GlobalMemory {
 public:
  bool add(std::byte* data, uint64_t size, Access access, bool initialised);
  bool remove(uint64_t base);
  Region* find(uint64_t address);  // the region that holds the byte, or null
  const Region* find(uint64_t address) const;
  // The bytes at `address`, checked; throws ExecutionFault. `uninitialised` is set if a read meets a byte never
  // written.
  std::byte* access(uint64_t address, uint64_t bytes, bool write, bool& uninitialised);
  void mark_initialised(uint64_t address, uint64_t bytes);

 private:
  std::map<uint64_t, Region> regions_;
  Region* last_ = nullptr;
};

}  // namespace isobit::ptx
