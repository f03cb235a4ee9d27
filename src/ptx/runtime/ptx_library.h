// The PTX texts of a build: finds the file that holds a kernel for an architecture and parses it once.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ptx/decode/module.h"

namespace isobit::ptx {

class PtxLibrary {
 public:
  // Every file NAME.ARCH.ptx below the folder, where ARCH is 80, 90a, 100f and the like. False if there is none.
  bool add_folder(const std::string& folder);

  // The module that holds the kernel, from the text with the highest architecture that a device of `capability` (90,
  // say) runs. The message of the error names the file.
  std::variant<Module*, Error> find(std::string_view kernel, int capability);

 private:
  struct File {
    std::string path;
    int architecture = 0;
    bool specific = false;  // 90a or 100f: for that capability (or family) alone
    std::string text;
    std::shared_ptr<Module> module;
  };

  std::vector<File> files_;
};

}  // namespace isobit::ptx
