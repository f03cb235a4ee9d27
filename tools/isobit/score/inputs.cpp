#include "score/inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "arrays.h"

namespace isobit::cli::score {
namespace {

using checkpoint::Checkpoint;
using checkpoint::Dtype;
using checkpoint::TensorView;

constexpr std::string_view kHiddenNames[] = {"hidden_states", "hidden"};
constexpr std::string_view kTargetNames[] = {"targets", "target", "labels", "input_ids"};

template <class T>
T take(checkpoint::Result<T> result) {
  if (!result.ok()) throw std::invalid_argument(result.status().message);
  return std::move(*result);
}

std::string where(const TensorView& view) {
  return fmt::format("{}: tensor {}", view.file, checkpoint::in_quotes(view.name));
}

template <class... T>
[[noreturn]] void refuse(const std::string& subject, const char* rule, const std::string& expected,
                         fmt::format_string<T...> got, T&&... values) {
  throw std::invalid_argument(fmt::format("{}: {}: expected {}, got {}", subject, rule, expected,
                                          fmt::format(got, std::forward<T>(values)...)));
}

template <class T>
T element(const std::byte* data, size_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));  // files promise no alignment
  return value;
}

// bf16 as it lies in the file; anything else only on request.
void fill_bf16(const TensorView& view, bool convert, Matrix& matrix) {
  const bool convertible = view.dtype == Dtype::kF16 || view.dtype == Dtype::kF32;
  if (view.dtype != Dtype::kBF16 && !(convertible && convert)) {
    refuse(matrix.where, "dtype", convertible ? "BF16 (--convert-to-bf16 rounds to it)" : "BF16", "{}",
           checkpoint::dtype_name(view.dtype));
  }
  const std::byte* data = view.bytes.data();
  if (view.dtype == Dtype::kBF16 && reinterpret_cast<uintptr_t>(data) % alignof(uint16_t) == 0) {
    matrix.data = reinterpret_cast<const uint16_t*>(data);
    return;
  }
  matrix.owned.resize(static_cast<size_t>(matrix.rows * matrix.columns));
  for (size_t i = 0; i < matrix.owned.size(); ++i) {
    matrix.owned[i] = view.dtype == Dtype::kBF16  ? element<uint16_t>(data, i)
                      : view.dtype == Dtype::kF16 ? bf16_from_float(fp16_to_float(element<uint16_t>(data, i)))
                                                  : bf16_from_float(element<float>(data, i));
  }
  matrix.data = matrix.owned.data();
}

// All dimensions but the last are rows.
Matrix load_matrix(const TensorView& view, bool convert, size_t least_rank, size_t most_rank) {
  Matrix matrix;
  matrix.where = where(view);
  const size_t rank = view.shape.size();
  if (rank < least_rank || rank > most_rank) {
    refuse(matrix.where, "shape",
           least_rank == most_rank ? "2 dimensions" : fmt::format("{} to {} dimensions", least_rank, most_rank), "{}",
           view.shape);
  }
  // The sizes are those of bytes in a file, so their product fits; an empty tensor may still claim any size.
  matrix.columns = static_cast<int64_t>(view.shape.back());
  matrix.rows = 1;
  for (size_t i = 0; i + 1 < rank; ++i) {
    if (view.bytes.empty() && view.shape[i] >> 31 != 0)
      refuse(matrix.where, "shape", "sizes below 2^31", "{}", view.shape);
    matrix.rows *= static_cast<int64_t>(view.shape[i]);
    if (view.bytes.empty() && matrix.rows >> 31 != 0) {
      refuse(matrix.where, "shape", "fewer than 2^31 rows", "{}", view.shape);
    }
  }
  fill_bf16(view, convert, matrix);
  return matrix;
}

void load_targets(const TensorView& view, const std::vector<uint64_t>& rows, Inputs& inputs) {
  const std::string subject = where(view);
  if (view.dtype != Dtype::kI32 && view.dtype != Dtype::kI64) {
    refuse(subject, "dtype", "I32 or I64", "{}", checkpoint::dtype_name(view.dtype));
  }
  std::vector<uint64_t> with_k = rows;
  if (view.shape.size() == rows.size() + 1) with_k.push_back(view.shape.back());
  if (view.shape != with_k) {
    refuse(subject, "shape", fmt::format("{} (the rows of hidden), or that and K targets a row", rows), "{}",
           view.shape);
  }
  inputs.shape = with_k;
  inputs.row_shape = rows;
  inputs.targets_per_row = with_k.size() > rows.size() ? static_cast<int64_t>(with_k.back()) : 1;
  const bool wide = view.dtype == Dtype::kI64;
  inputs.targets.resize(view.bytes.size() / (wide ? 8 : 4));
  for (size_t i = 0; i < inputs.targets.size(); ++i) {
    inputs.targets[i] = wide ? element<int64_t>(view.bytes.data(), i) : element<int32_t>(view.bytes.data(), i);
  }
}

void check_ids(const std::string& subject, const Inputs& inputs, int64_t ignore_index) {
  for (size_t i = 0; i < inputs.targets.size(); ++i) {
    const int64_t id = inputs.targets[i];
    if (id == ignore_index || (id >= 0 && id < inputs.vocab_size)) continue;
    refuse(subject, "token id", fmt::format("0 to {} or --ignore-index {}", inputs.vocab_size - 1, ignore_index),
           "{} in row {}", id, i / static_cast<size_t>(inputs.targets_per_row));
  }
}

}  // namespace

Inputs load_inputs(const Options& options) {
  Inputs inputs;
  inputs.hidden_file = take(Checkpoint::open(options.hidden));
  inputs.head_file = take(Checkpoint::open(options.head));
  const TensorView hidden = take(inputs.hidden_file.find_one(options.hidden_tensor, kHiddenNames));
  inputs.hidden = load_matrix(hidden, options.convert, 2, 4);
  inputs.head = load_matrix(take(inputs.head_file.find_head(options.head_tensor)), options.convert, 2, 2);
  if (inputs.head.columns != inputs.hidden.columns) {
    refuse(inputs.head.where, "columns", fmt::format("{} as in {}", inputs.hidden.columns, inputs.hidden.where), "{}",
           inputs.head.columns);
  }
  inputs.vocab_size = options.vocab_size > 0 ? options.vocab_size : inputs.head.rows;
  if (inputs.vocab_size > inputs.head.rows) {
    refuse("--vocab-size", inputs.head.where.c_str(), fmt::format("at most its {} rows", inputs.head.rows), "{}",
           inputs.vocab_size);
  }
  Checkpoint targets_file = take(Checkpoint::open(options.targets));
  const TensorView targets = take(targets_file.find_one(options.targets_tensor, kTargetNames));
  load_targets(targets, {hidden.shape.begin(), hidden.shape.end() - 1}, inputs);
  check_ids(where(targets), inputs, options.ignore_index);
  return inputs;
}

}  // namespace isobit::cli::score
