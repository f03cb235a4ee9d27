// One result line, and how it is printed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/bench.h"

namespace isobit::cli {

struct BenchRecord {
  std::string op;
  BenchCase bench_case;
  std::vector<std::string> letters;
  std::vector<double> samples_us;
  double bytes = 0;
  double flops = 0;
  double peak_bytes = 0;
  bool warm = false;
  std::string command;  // repeats this line
};

double quantile(std::vector<double> values, double q);  // q in [0, 1], between neighbours linearly

nlohmann::ordered_json to_json(const BenchRecord& record);
std::vector<std::string> table_header();
std::vector<std::string> table_row(const BenchRecord& record);

}  // namespace isobit::cli
