// The two things that `isobit compare` compares.
#pragma once

#include <string>
#include <vector>

namespace isobit::cli {

// Values of a file of log-probabilities, row by row.
struct LogpFile {
  std::vector<float> values;
  size_t columns = 1;  // of a row
};

// Reads .npy (version 1 to 3, little-endian float32 or float64, one or two dimensions, C order) or text (numbers
// between white space; a row is a line). Throws std::runtime_error with the file's name.
LogpFile read_logp(const std::string& path);
bool is_result_file(const std::string& path);  // its first character is {

struct CompareOptions {
  std::string first, second;
  double tolerance = 0;    // log-probabilities, float32 tensors: largest |difference| that passes; 0: equal bits
  double max_slower = -1;  // results: per cent that the second may be slower; below 0: never a failure
  bool json = false;
};

int compare_logp(const CompareOptions& options);
int compare_results(const CompareOptions& options);
int compare_tensors(const CompareOptions& options);

}  // namespace isobit::cli
