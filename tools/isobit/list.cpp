// isobit list: the table of kernels.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "kernels.h"
#include "terminal.h"

namespace isobit::cli {
namespace {

struct ListOptions {
  bool json = false;
  bool markdown = false;
};

std::string yes_no(bool value) { return value ? "yes" : "no"; }

void print_json(const std::vector<Kernel>& kernels) {
  for (const Kernel& kernel : kernels) {
    const nlohmann::ordered_json line = {
        {"op", kernel.op},        {"kernel", kernel.name},   {"architectures", kernel.architectures},
        {"built", kernel.built},  {"usable", kernel.usable}, {"contract", kernel.contract},
        {"reason", kernel.reason}};
    fmt::print("{}\n", line.dump());
  }
}

// Only what does not depend on the machine or the build, for the documentation.
void print_markdown(const std::vector<Kernel>& kernels) {
  fmt::print("| operator | kernel | architectures | contract |\n|---|---|---|---|\n");
  for (const Kernel& kernel : kernels) {
    fmt::print("| `{}` | `{}` | {} | `{}` |\n", kernel.op, kernel.name, kernel.architectures, kernel.contract);
  }
}

void print_table(const std::vector<Kernel>& kernels) {
  Table table({"operator", "kernel", "architectures", "built", "usable", "contract", "why not"});
  for (const Kernel& kernel : kernels) {
    table.add({kernel.op, kernel.name, kernel.architectures, yes_no(kernel.built), yes_no(kernel.usable),
               kernel.contract, kernel.reason});
  }
  fmt::print("{}", table.text());
}

int run(const ListOptions& options) {
  const std::vector<Kernel> kernels = all_kernels();
  if (options.json) {
    print_json(kernels);
  } else if (options.markdown) {
    print_markdown(kernels);
  } else {
    print_table(kernels);
  }
  return kOk;
}

}  // namespace

std::function<int()> set_up_list(CLI::App& app) {
  const auto options = std::make_shared<ListOptions>();
  app.add_flag("--json", options->json, "One JSON object per kernel");
  app.add_flag("--markdown", options->markdown, "The table of the documentation: same on every machine and build");
  return [options] { return run(*options); };
}

}  // namespace isobit::cli
