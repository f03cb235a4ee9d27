#include "ptx/runtime/kernel_names.h"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <vector>

namespace isobit::ptx {
namespace {

struct LoadedObject {
  uint64_t address = 0;  // asked for
  uint64_t base = 0;
  std::string path;
  bool found = false;
};

int match_object(dl_phdr_info* info, size_t, void* data) {
  LoadedObject& object = *static_cast<LoadedObject*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    const uint64_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || object.address < begin || object.address >= begin + segment.p_memsz) continue;
    object.base = info->dlpi_addr;
    object.path = info->dlpi_name && *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
    object.found = true;
    return 1;
  }
  return 0;
}

template <class T>
std::vector<T> read_array(std::ifstream& file, uint64_t offset, uint64_t bytes) {
  std::vector<T> values(bytes / sizeof(T));
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  return values;
}

using SymbolTable = std::map<uint64_t, std::string>;  // functions by address in the file

SymbolTable read_symbols(const std::string& path) {
  SymbolTable symbols;
  std::ifstream file(path, std::ios::binary);
  const auto header = read_array<Elf64_Ehdr>(file, 0, sizeof(Elf64_Ehdr));
  if (!file || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0) return symbols;
  const auto sections =
      read_array<Elf64_Shdr>(file, header[0].e_shoff, uint64_t{header[0].e_shnum} * sizeof(Elf64_Shdr));
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB) continue;
    const Elf64_Shdr& names = sections[section.sh_link];
    auto text = read_array<char>(file, names.sh_offset, names.sh_size);
    text.push_back('\0');
    for (const Elf64_Sym& s : read_array<Elf64_Sym>(file, section.sh_offset, section.sh_size)) {
      if (ELF64_ST_TYPE(s.st_info) == STT_FUNC && s.st_name < text.size())
        symbols[s.st_value] = text.data() + s.st_name;
    }
  }
  return symbols;
}

}  // namespace

std::string symbol_at(const void* address) {
  LoadedObject object;
  object.address = reinterpret_cast<uint64_t>(address);
  dl_iterate_phdr(match_object, &object);
  if (!object.found) return {};
  static std::mutex mutex;
  static std::map<std::string, SymbolTable> tables;
  const std::lock_guard lock(mutex);
  const auto [table, inserted] = tables.try_emplace(object.path);
  if (inserted) table->second = read_symbols(object.path);
  const auto symbol = table->second.find(object.address - object.base);
  return symbol == table->second.end() ? std::string() : symbol->second;
}

}  // namespace isobit::ptx
