#include "ptx/test/conformance/cases.h"

#include <fstream>
#include <iterator>

namespace isobit::ptx::conformance {
namespace {

constexpr uint32_t kSpecial[] = {0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000,
                                 0xBF800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC12345,
                                 0x7F812345, 0x4F000000, 0xCF000000, 0x4F800000, 0x5F000000, 0x3F000000, 0x40200000,
                                 0xC0600000, 0x43E00000, 0x43E80000, 0x477FE000, 0x477FF000, 0x7FFFFFFF, 0xFFFFFFFF,
                                 0x7BFF7C00, 0xFC007E00, 0x7F807FC0, 0xFF80FFC0};

uint32_t next(uint64_t& state) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return static_cast<uint32_t>(state >> 16);
}

// Patterns 3C00 to 437F with a sign: 2^-7 to 2^7 as bf16, 1 to 3.75 as fp16.
uint16_t half(uint32_t random) { return static_cast<uint16_t>((random & 0x8000) | (0x3C00 + random % 0x780)); }

std::vector<Case> make_cases() {
  const auto plain = [](const char* name, const char* file, uint32_t words_each) {
    return Case{name, file, name, 2, 128, 1, 1024, 256 * words_each, Data::kBits};
  };
  std::vector<Case> all = {
      plain("integer", "arithmetic.ptx", 41),
      plain("logic", "arithmetic.ptx", 39),
      plain("floating", "arithmetic.ptx", 44),
      plain("conversion", "arithmetic.ptx", 49),
      plain("halves", "arithmetic.ptx", 12),
      plain("collective", "threads.ptx", 27),
      plain("divergence", "threads.ptx", 2),
      plain("shared_memory", "threads.ptx", 4),
      {"mma_bf16", "matrix.ptx", "mma_bf16", 1, 32, 1, 512, 256, Data::kHalves},
      {"mma_fp16", "matrix.ptx", "mma_fp16", 1, 32, 1, 512, 256, Data::kHalves},
      {"wgmma_layouts", "wgmma.ptx", "wgmma_layouts", 1, 128, 1, 12288, 5120, Data::kHalves},
      {"wgmma_shapes", "wgmma.ptx", "wgmma_shapes", 1, 128, 1, 12288, 5120, Data::kHalves},
      {"bulk_copy", "copy_engine.ptx", "bulk_copy", 1, 128, 1, 2048, 512, Data::kBits},
  };
  // A tensor of 30 x 60 in rows of 144 bytes, boxes of 1 KB; the store goes to a second tensor behind the dump.
  constexpr const char* kNames[] = {"tensor_copy_plain", "tensor_copy_32", "tensor_copy_64", "tensor_copy_128"};
  constexpr uint32_t kColumns[] = {64, 16, 32, 64};
  for (uint32_t s = 0; s < 4; ++s) {
    Case c{kNames[s], "copy_engine.ptx", "tensor_copy", 1, 128, 1, 2048, 1024 + 1080, Data::kBits};
    c.map_a = {true, false, 0, 60, 30, 144, kColumns[s], 512 / kColumns[s], s};
    c.map_b = {true, true, 4096, 60, 30, 144, kColumns[s], 512 / kColumns[s], s};
    all.push_back(c);
  }
  Case pair{"cluster_pair", "copy_engine.ptx", "cluster_pair", 4, 128, 2, 2048, 2048, Data::kBits};
  pair.map_a = {true, false, 0, 60, 40, 144, 64, 8, 3};
  all.push_back(pair);
  return all;
}

}  // namespace

const std::vector<Case>& cases() {
  static const std::vector<Case> all = make_cases();
  return all;
}

std::vector<uint32_t> input_of(const Case& c) {
  std::vector<uint32_t> words(c.in_words);
  uint64_t state = 0x9E3779B97F4A7C15;
  for (size_t i = 0; i < words.size(); ++i) {
    const uint32_t random = next(state);
    if (c.data == Data::kHalves)
      words[i] = uint32_t{half(random >> 16)} << 16 | half(random & 0xFFFF);
    else
      words[i] = random % 3 == 0 ? kSpecial[next(state) % std::size(kSpecial)] : random;
  }
  return words;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace isobit::ptx::conformance
