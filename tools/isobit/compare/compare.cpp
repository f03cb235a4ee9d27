// isobit compare: two files of results, of log-probabilities, or of tensors.
#include "compare/compare.h"

#include <fstream>
#include <memory>
#include <stdexcept>

#include "command.h"
#include "terminal.h"

namespace isobit::cli {

bool is_result_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read \"" + path + "\"");
  char first = 0;
  file >> first;
  return first == '{';
}

namespace {

enum class Kind { kResults, kLogp, kTensors };

Kind kind_of(const std::string& path) {
  if (path.ends_with(".safetensors")) return Kind::kTensors;
  return is_result_file(path) ? Kind::kResults : Kind::kLogp;
}

}  // namespace

std::function<int()> set_up_compare(CLI::App& app) {
  const auto options = std::make_shared<CompareOptions>();
  app.add_option("first", options->first,
                 "JSON lines of `isobit bench`, log-probabilities (.npy or text), or .safetensors")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_option("second", options->second, "A file of the same kind")->required()->check(CLI::ExistingFile);
  app.add_option("--tolerance", options->tolerance,
                 "Log-probabilities and float32 tensors: largest difference that passes; 0: equal bits")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--max-slower", options->max_slower, "Results: fail if a case is slower by more per cent")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--json", options->json, "JSON on stdout");
  app.footer("Example: isobit compare rollout.npy trainer.npy");
  return [options] {
    try {
      const Kind kind = kind_of(options->first);
      if (kind != kind_of(options->second)) {
        complain("compare: expected two files of one kind: results, log-probabilities or .safetensors");
        return static_cast<int>(kUsage);
      }
      if (kind == Kind::kTensors) return compare_tensors(*options);
      return kind == Kind::kResults ? compare_results(*options) : compare_logp(*options);
    } catch (const std::runtime_error& error) {
      complain("{}", error.what());
      return static_cast<int>(kUsage);
    }
  };
}

}  // namespace isobit::cli
