// isobit: the command line. stdout holds data only; everything else goes to stderr.
// Exit codes: 0 ok, 1 a check failed, 2 usage, 77 the device or kernel asked for is not here.
#include <isobit/isobit.h>

#include <fmt/format.h>
#include <exception>
#include <stdexcept>
#include <vector>

#include "command.h"
#include "terminal.h"

namespace isobit::cli {
namespace {

struct Row {
  const char* name;
  const char* summary;
  SetUp set_up;
};

constexpr Row kCommands[] = {
    {"info", "What to paste into a bug report: versions, build, devices, kernels", set_up_info},
    {"list", "Every kernel: operator, architecture, built, usable here, why not", set_up_list},
    {"check", "Run an operator's kernels against an oracle, or against themselves byte by byte", set_up_check},
    {"bench", "Time an operator; JSON lines, or a table on a terminal", set_up_bench},
    {"score", "Log-probabilities of tokens from safetensors files", set_up_score},
    {"selftest", "Bits, tensor-core rule and timings of this machine, as a report to send", set_up_selftest},
    {"compare", "Compare two result files, or two files of log-probabilities", set_up_compare},
    {"emulate", "Run a kernel of a PTX file without a GPU; report races, bad accesses, deadlocks", set_up_emulate},
    {"pack", "Gated MLPs of a checkpoint as interleaved, tagged NVFP4 weights, with their errors", set_up_pack},
};

// No command among the words: the help for a bare `isobit`, else what was taken for one.
int explain_missing_command(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining();
  if (words.empty()) {
    fmt::print(stderr, "{}", app.help());
  } else {
    complain("expected a command that `isobit --help` lists, got \"{}\"", words[0]);
  }
  return kUsage;
}

int run(int argc, char** argv) {
  CLI::App app("Fused kernels whose bits never depend on batching, tiling, scheduling or sharding.", "isobit");
  app.set_version_flag("--version", isobit_build_info());
  app.require_subcommand(1);
  app.footer("Exit codes: 0 ok, 1 a check failed, 2 usage, 77 no such device or kernel here.");
  std::vector<std::function<int()>> commands;
  std::vector<CLI::App*> parsed;
  for (const Row& row : kCommands) {
    parsed.push_back(app.add_subcommand(row.name, row.summary));
    commands.push_back(row.set_up(*parsed.back()));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool failed = error.get_exit_code() != 0;
    if (failed && app.get_subcommands().empty()) return explain_missing_command(app);
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  for (size_t i = 0; i < commands.size(); ++i) {
    if (parsed[i]->parsed()) return commands[i]();
  }
  return kUsage;
}

}  // namespace
}  // namespace isobit::cli

int main(int argc, char** argv) {
  try {
    return isobit::cli::run(argc, argv);
  } catch (const CLI::Error& error) {
    isobit::cli::complain("{}", error.what());
    return isobit::cli::kUsage;
  } catch (const std::invalid_argument& error) {  // an option's value, or a file named by one
    isobit::cli::complain("{}", error.what());
    return isobit::cli::kUsage;
  } catch (const std::exception& error) {
    isobit::cli::complain("{}", error.what());
    return isobit::cli::kFailed;
  }
}
