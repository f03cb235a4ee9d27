// isobit compare: two files of results, or two files of log-probabilities.
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

std::function<int()> set_up_compare(CLI::App& app) {
  const auto options = std::make_shared<CompareOptions>();
  app.add_option("first", options->first, "JSON lines of `isobit bench`, or log-probabilities (.npy or text)")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_option("second", options->second, "A file of the same kind")->required()->check(CLI::ExistingFile);
  app.add_option("--tolerance", options->tolerance, "Log-probabilities: largest difference that passes; 0: equal bits")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--max-slower", options->max_slower, "Results: fail if a case is slower by more per cent")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--json", options->json, "JSON on stdout");
  app.footer("Example: isobit compare rollout.npy trainer.npy");
  return [options] {
    try {
      const bool first = is_result_file(options->first);
      if (first != is_result_file(options->second)) {
        complain("compare: expected two result files or two files of log-probabilities, got one of each");
        return static_cast<int>(kUsage);
      }
      return first ? compare_results(*options) : compare_logp(*options);
    } catch (const std::runtime_error& error) {
      complain("{}", error.what());
      return static_cast<int>(kUsage);
    }
  };
}

}  // namespace isobit::cli
