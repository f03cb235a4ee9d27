// A parsed and decoded PTX module.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ptx/decode/instruction.h"
#include "ptx/syntax/diagnostics.h"
#include "ptx/syntax/syntax.h"

namespace isobit::ptx {

// The triples come first.
enum class SpecialRegister : uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kClusteridX,
  kClusteridY,
  kClusteridZ,
  kNclusteridX,
  kNclusteridY,
  kNclusteridZ,
  kClusterCtaidX,
  kClusterCtaidY,
  kClusterCtaidZ,
  kClusterNctaidX,
  kClusterNctaidY,
  kClusterNctaidZ,
  kClusterCtarank,
  kClusterNctarank,
  kIsExplicitCluster,
  kLaneid,
  kWarpid,
  kNwarpid,
  kLanemaskEq,
  kLanemaskLe,
  kLanemaskLt,
  kLanemaskGe,
  kLanemaskGt,
  kSmid,
  kNsmid,
  kGridid,
  kDynamicSmemSize,
  kTotalSmemSize,
};

struct Kernel {
  std::string name;
  int line = 0;
  std::vector<Instruction> code;
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;
  uint32_t static_shared = 0;  // bytes of statically sized shared variables
  uint32_t dynamic_alignment = 16;
  uint32_t local_bytes = 0;
  bool uses_tensor_memory = false;
  uint32_t max_threads[3] = {0, 0, 0}, required_threads[3] = {0, 0, 0}, cluster[3] = {0, 0, 0};
  Slot words = 0;       // rows of 32 words a warp needs
  Slot predicates = 0;  // predicate masks a warp needs
  // What a row holds before the first instruction.
  struct Constant {
    Slot slot;
    uint64_t value;
    bool wide;
  };
  struct SharedAddress {
    Slot slot;
    uint32_t offset;
    bool dynamic;
    bool wide;
  };
  struct ParameterAddress {
    Slot slot;
    uint32_t offset;
  };
  struct SpecialRow {
    Slot slot;
    SpecialRegister which;
  };
  std::vector<Constant> constants;
  std::vector<Constant> constant_predicates;
  std::vector<SharedAddress> shared_addresses;
  std::vector<ParameterAddress> parameter_addresses;
  std::vector<SpecialRow> special_rows;
};

// Storage of a .global or .const variable; lives as long as the module.
struct Symbol {
  std::string name;
  std::vector<uint8_t> bytes;  // with room to align `data`
  uint8_t* data = nullptr;
  uint64_t size = 0;
  bool writable = true;
};

class Module {
 public:
  // Parses and decodes; anything the interpreter does not know is an error with the line where it stands.
  static std::variant<Module, Error> parse(std::string_view text);

  const Kernel* find(std::string_view name) const;
  const std::vector<Kernel>& kernels() const { return kernels_; }
  Symbol* find_symbol(std::string_view name);
  const std::vector<std::unique_ptr<Symbol>>& symbols() const { return symbols_; }
  const std::string& target() const { return target_; }

 private:
  std::unique_ptr<std::string> text_;  // instructions keep views into it
  std::vector<Kernel> kernels_;
  std::vector<std::unique_ptr<Symbol>> symbols_;
  std::string target_;
};

}  // namespace isobit::ptx
