// Memory barriers as objects in shared memory.
#pragma once
#include "ptx/engine/memory_access.h"

namespace isobit::ptx {

// The initialised barrier at a shared address of the cluster; throws for anything else, or if `clock` does not follow
// its initialisation. `async` callers also need the barrier's initialisation to be fenced.
MemoryBarrier& find_memory_barrier(Cta& own, uint32_t address, const Clock& clock, bool async, int32_t pc);

void arrive_on(Engine& engine, MemoryBarrier& barrier, uint32_t count);
void expect_bytes(MemoryBarrier& barrier, uint32_t bytes);
// An asynchronous operation has delivered `bytes`.
void complete_bytes(Engine& engine, MemoryBarrier& barrier, uint32_t bytes, const Clock& clock);

}  // namespace isobit::ptx
