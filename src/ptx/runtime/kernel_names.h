// From the address of a __global__ function's host stub to the name of its PTX entry.
#pragma once
#include <string>

namespace isobit::ptx {

// The symbol that starts at `address` in the program or shared library that holds it, from that file's own symbol
// table, so that hidden functions are found too. Empty if there is none (a stripped file).
std::string symbol_at(const void* address);

}  // namespace isobit::ptx
