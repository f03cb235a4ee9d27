#include "ptx/runtime/ptx_library.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

namespace isobit::ptx {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool holds_entry(const std::string& text, std::string_view kernel) {
  const std::string needle = ".entry " + std::string(kernel);
  for (size_t at = text.find(needle); at != std::string::npos; at = text.find(needle, at + 1)) {
    const size_t end = at + needle.size();
    if (end == text.size() || text[end] == '(' || text[end] == ' ' || text[end] == '\n') return true;
  }
  return false;
}

// Parses a text once in the life of the process. A module with variables that kernels write is never shared.
std::variant<std::shared_ptr<Module>, Error> parse_once(const std::string& text) {
  static std::mutex mutex;
  static std::map<std::pair<size_t, size_t>, std::shared_ptr<Module>> parsed;
  const std::lock_guard lock(mutex);
  const std::pair key{std::hash<std::string>{}(text), text.size()};
  if (const auto it = parsed.find(key); it != parsed.end()) return it->second;
  auto result = Module::parse(text);
  if (const Error* error = std::get_if<Error>(&result)) return *error;
  auto module = std::make_shared<Module>(std::move(std::get<Module>(result)));
  const auto& symbols = module->symbols();
  if (std::none_of(symbols.begin(), symbols.end(), [](const auto& s) { return s->writable; }))
    parsed.emplace(key, module);
  return module;
}

}  // namespace

bool PtxLibrary::add_folder(const std::string& folder) {
  std::error_code error;
  bool any = false;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
    if (entry.path().extension() != ".ptx") continue;
    const std::string stem = entry.path().stem().string();
    const size_t dot = stem.rfind('.');
    if (dot == std::string::npos) continue;
    File file;
    file.path = entry.path().string();
    for (const char c : stem.substr(dot + 1)) {
      if (c >= '0' && c <= '9')
        file.architecture = 10 * file.architecture + (c - '0');
      else
        file.specific = true;
    }
    files_.push_back(std::move(file));
    any = true;
  }
  std::sort(files_.begin(), files_.end(), [](const File& a, const File& b) {
    return std::tuple(a.architecture, a.specific) > std::tuple(b.architecture, b.specific);
  });
  return any;
}

std::variant<Module*, Error> PtxLibrary::find(std::string_view kernel, int capability) {
  for (File& f : files_) {
    if (f.specific ? f.architecture != capability : f.architecture > capability) continue;
    if (f.text.empty()) f.text = read_text(f.path);
    if (!holds_entry(f.text, kernel)) continue;
    if (!f.module) {
      auto parsed = parse_once(f.text);
      if (const Error* error = std::get_if<Error>(&parsed)) {
        return Error{error->line, f.path + ":" + std::to_string(error->line) + ": " + error->message};
      }
      f.module = std::get<std::shared_ptr<Module>>(parsed);
    }
    return f.module.get();
  }
  return Error{0,
               "no PTX for compute capability " + std::to_string(capability) + " holds kernel " + std::string(kernel)};
}

}  // namespace isobit::ptx
