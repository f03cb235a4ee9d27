// What a subcommand is. A new one is a file with a set-up function and one line in main.cpp's table.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace isobit::cli {

enum ExitCode : int { kOk = 0, kFailed = 1, kUsage = 2, kNoDevice = 77 };

// Adds the subcommand's options to `app` and returns what runs after parsing; that returns the exit code. Options live
// in the returned function (a shared pointer), since parsing writes them later.
using SetUp = std::function<int()> (*)(CLI::App& app);

std::function<int()> set_up_info(CLI::App& app);
std::function<int()> set_up_list(CLI::App& app);
std::function<int()> set_up_check(CLI::App& app);
std::function<int()> set_up_bench(CLI::App& app);
std::function<int()> set_up_compare(CLI::App& app);
std::function<int()> set_up_emulate(CLI::App& app);
std::function<int()> set_up_pack(CLI::App& app);
std::function<int()> set_up_score(CLI::App& app);
std::function<int()> set_up_selftest(CLI::App& app);

}  // namespace isobit::cli
