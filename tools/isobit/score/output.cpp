#include "score/output.h"

#include <fmt/format.h>
#include <isobit/linear_logp.h>

#include <cmath>
#include <cstdio>
#include <iterator>
#include <span>
#include <stdexcept>

#include "checkpoint/safetensors_writer.h"
#include "checkpoint/write_file.h"

namespace isobit::cli::score {
namespace {

using checkpoint::Dtype;
using checkpoint::OutputTensor;

bool to_stdout(const Options& options) { return options.output.empty() || options.output == "-"; }

// One thing written: its values, how many a row has, and whether it is a list even when that is one.
struct Column {
  const char* name;
  const float* floats;  // one of the three
  const int32_t* int32s;
  const int64_t* int64s;
  size_t per_row;
  bool list;
};

std::vector<Column> columns_of(const Scores& scores, const Inputs& inputs, const Options& options) {
  const auto targets = static_cast<size_t>(inputs.targets_per_row);
  const auto top = static_cast<size_t>(options.top_k);
  std::vector<Column> columns{{"target", nullptr, nullptr, inputs.targets.data(), targets, false},
                              {"logp", scores.logp.data(), nullptr, nullptr, targets, false}};
  if (options.lse) columns.push_back({"lse", scores.lse.data(), nullptr, nullptr, 1, false});
  if (options.entropy) columns.push_back({"entropy", scores.entropy.data(), nullptr, nullptr, 1, false});
  if (options.rank) columns.push_back({"rank", nullptr, scores.rank.data(), nullptr, targets, false});
  if (top > 0) {
    columns.push_back({"top_id", nullptr, scores.top_id.data(), nullptr, top, true});
    columns.push_back({"top_logp", scores.top_logp.data(), nullptr, nullptr, top, true});
  }
  return columns;
}

void append_number(std::string& text, const Column& column, size_t index, bool json) {
  const auto end = std::back_inserter(text);
  if (column.int32s != nullptr) {
    fmt::format_to(end, "{}", column.int32s[index]);
  } else if (column.int64s != nullptr) {
    fmt::format_to(end, "{}", column.int64s[index]);
  } else {
    // The sign of a NaN is the contract's bit pattern, not a fact about the row.
    const float value = std::isnan(column.floats[index]) ? NAN : column.floats[index];
    const char* quote = json && !std::isfinite(value) ? "\"" : "";
    fmt::format_to(end, "{}{}{}", quote, value, quote);
  }
}

std::string csv(const std::vector<Column>& columns, size_t rows) {
  std::string text = "row";
  for (const Column& column : columns) {
    for (size_t k = 0; k < column.per_row; ++k) {
      text +=
          column.list || column.per_row > 1 ? fmt::format(",{}_{}", column.name, k) : fmt::format(",{}", column.name);
    }
  }
  text += '\n';
  for (size_t row = 0; row < rows; ++row) {
    text += fmt::format("{}", row);
    for (const Column& column : columns) {
      for (size_t k = 0; k < column.per_row; ++k) {
        text += ',';
        append_number(text, column, row * column.per_row + k, false);
      }
    }
    text += '\n';
  }
  return text;
}

std::string json_lines(const std::vector<Column>& columns, size_t rows) {
  std::string text;
  for (size_t row = 0; row < rows; ++row) {
    text += fmt::format("{{\"row\":{}", row);
    for (const Column& column : columns) {
      const bool list = column.list || column.per_row != 1;
      text += fmt::format(",\"{}\":{}", column.name, list ? "[" : "");
      for (size_t k = 0; k < column.per_row; ++k) {
        if (k > 0) text += ',';
        append_number(text, column, row * column.per_row + k, true);
      }
      if (list) text += ']';
    }
    text += "}\n";
  }
  return text;
}

checkpoint::Status write_tensors(const Scores& scores, const Inputs& inputs, const Options& options) {
  std::vector<uint64_t> list_shape = inputs.row_shape;
  list_shape.push_back(static_cast<uint64_t>(options.top_k));
  std::vector<OutputTensor> tensors;
  const auto add = [&](const char* name, Dtype dtype, const std::vector<uint64_t>& shape, const auto& values,
                       bool wanted) {
    if (wanted) tensors.push_back({name, dtype, shape, std::as_bytes(std::span(values))});
  };
  add("logp", Dtype::kF32, inputs.shape, scores.logp, true);
  add("lse", Dtype::kF32, inputs.row_shape, scores.lse, options.lse);
  add("entropy", Dtype::kF32, inputs.row_shape, scores.entropy, options.entropy);
  add("rank", Dtype::kI32, inputs.shape, scores.rank, options.rank);
  add("top_id", Dtype::kI32, list_shape, scores.top_id, options.top_k > 0);
  add("top_logp", Dtype::kF32, list_shape, scores.top_logp, options.top_k > 0);
  return checkpoint::write_safetensors(options.output, tensors, {{"contract", isobit_linear_logp_contract()}});
}

}  // namespace

std::string choose_format(const Options& options) {
  std::string format = options.format;
  if (format.empty()) {
    format = options.output.ends_with(".safetensors") ? "safetensors"
             : options.output.ends_with(".jsonl")     ? "jsonl"
                                                      : "csv";
  }
  if (format == "safetensors" && to_stdout(options)) {
    throw std::invalid_argument("--format safetensors: expected a file given with --output, got stdout");
  }
  return format;
}

void write(const Scores& scores, const Inputs& inputs, const Options& options, const std::string& format) {
  if (format == "safetensors") {
    if (const auto status = write_tensors(scores, inputs, options); !status.ok())
      throw std::runtime_error(status.message);
    return;
  }
  const std::vector<Column> columns = columns_of(scores, inputs, options);
  const auto rows = static_cast<size_t>(inputs.hidden.rows);
  const std::string text = format == "csv" ? csv(columns, rows) : json_lines(columns, rows);
  if (to_stdout(options)) {
    const bool whole = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    if (!whole) throw std::runtime_error("stdout: could not be written whole");
    return;
  }
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(text))};
  if (const auto status = checkpoint::write_file(options.output, parts); !status.ok()) {
    throw std::runtime_error(status.message);
  }
}

}  // namespace isobit::cli::score
