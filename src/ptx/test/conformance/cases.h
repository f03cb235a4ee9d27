// Kernels in PTX text whose outputs the GPU and the interpreter must agree on, byte for byte. Used by the test and by
// the program that records the GPU's outputs.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace isobit::ptx::conformance {

enum class Data : uint8_t { kBits, kHalves };  // any 32-bit patterns with special values; moderate bf16 and fp16 pairs

// A two-dimensional tensor of 16-bit elements over the input or the output.
struct Map {
  bool used = false;
  bool over_output = false;
  uint64_t byte_offset = 0;
  uint64_t columns = 0, rows = 0, row_bytes = 0;
  uint32_t box_columns = 0, box_rows = 0;
  uint32_t swizzle = 0;  // the driver's enumerators: none, 32, 64, 128 bytes
};

struct Case {
  const char* name;    // of the golden file
  const char* file;    // beside this header
  const char* kernel;  // k(map_a, map_b, const u32* in, u32* out)
  uint32_t grid, block, cluster;
  uint32_t in_words, out_words;
  Data data;
  Map map_a = {}, map_b = {};
};

const std::vector<Case>& cases();

// The input of a case, and what the output holds before the launch.
std::vector<uint32_t> input_of(const Case& c);
inline std::vector<uint32_t> output_of(const Case& c) { return std::vector<uint32_t>(c.out_words, 0); }

std::string read_file(const std::string& path);

}  // namespace isobit::ptx::conformance
