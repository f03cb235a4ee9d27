// The chain cases whose outputs an H200 computed, and the form of the files that hold them. See golden/README.md.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace isobit::numerics::golden {

constexpr int kRows = 256;
constexpr int kColumns = 64;

enum class Kind : int32_t { kPlain = 0, kSpecials = 1 };

// z[r][n] is the chain over k16 groups of A[r] and B[n] from C[r][n].
struct ChainCase {
  const char* name;
  bool fp16;
  Kind kind;
  int k;
  uint64_t seed;
};

constexpr ChainCase kCases[] = {
    {"chain_bf16_k640", false, Kind::kPlain, 640, 1},        {"chain_bf16_k4096", false, Kind::kPlain, 4096, 2},
    {"chain_bf16_specials", false, Kind::kSpecials, 640, 3}, {"chain_fp16_k640", true, Kind::kPlain, 640, 4},
    {"chain_fp16_k4096", true, Kind::kPlain, 4096, 5},       {"chain_fp16_specials", true, Kind::kSpecials, 640, 6},
};

// The instruction forms that a file's bytes came from: one bit each in its header.
constexpr const char* kForms[] = {
    "mma.sync.m16n8k16", "wgmma.m64n8k16",   "wgmma.m64n16k16",  "wgmma.m64n32k16",
    "wgmma.m64n64k16",   "wgmma.m64n192k16", "wgmma.m64n256k16", "wgmma.m64n64k16 (operands exchanged)",
};
constexpr int kFormCount = sizeof(kForms) / sizeof(kForms[0]);
constexpr uint32_t kAllForms = (1u << kFormCount) - 1;

// A file: this header, then uint32 z[kRows][kColumns]; little endian.
struct FileHeader {
  char magic[8];
  int32_t version;
  int32_t format;  // 0 bf16, 1 fp16
  int32_t kind;
  int32_t rows;
  int32_t columns;
  int32_t k;
  uint64_t seed;
  uint32_t forms;  // bit i: kForms[i] gave these bytes
  uint32_t reserved;
};
static_assert(sizeof(FileHeader) == 48);

inline FileHeader header_of(const ChainCase& chain, uint32_t forms) {
  FileHeader header{
      {}, 1, chain.fp16 ? 1 : 0, static_cast<int32_t>(chain.kind), kRows, kColumns, chain.k, chain.seed, forms, 0};
  std::memcpy(header.magic, "ISOBGOLD", 8);
  return header;
}

// The outputs of a case, or nothing if the file is missing or holds something else.
inline std::vector<uint32_t> read_outputs(const std::string& directory, const ChainCase& chain, FileHeader* header) {
  std::vector<uint32_t> z(static_cast<size_t>(kRows) * kColumns);
  std::FILE* file = std::fopen((directory + "/" + chain.name + ".bin").c_str(), "rb");
  if (file == nullptr) return {};
  const bool read = std::fread(header, sizeof(*header), 1, file) == 1 &&
                    std::fread(z.data(), sizeof(uint32_t), z.size(), file) == z.size() && std::fgetc(file) == EOF;
  std::fclose(file);
  const FileHeader expected = header_of(chain, header->forms);
  return read && std::memcmp(header, &expected, sizeof(expected)) == 0 ? z : std::vector<uint32_t>{};
}

}  // namespace isobit::numerics::golden
