#include "checkpoint/safetensors.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "checkpoint/json_walk.h"

namespace isobit::checkpoint {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMaxRank = 64;
// Root object, one tensor, one list: a header needs no more.
constexpr std::size_t kHeaderDepth = 3;
constexpr std::string_view kMetadata = "__metadata__";

std::string number(std::uint64_t value) { return std::to_string(value); }

// Bytes of a tensor, or nothing if they do not fit 64 bits or leave a fraction of a byte.
std::optional<std::uint64_t> tensor_bytes(const std::vector<std::uint64_t>& shape, Dtype dtype) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t bits = dtype_bits(dtype);
  // A zero anywhere makes the product zero, whatever the other sizes are.
  if (std::find(shape.begin(), shape.end(), 0u) != shape.end()) return 0;
  for (const std::uint64_t size : shape) {
    if (bits > kMax / size) return std::nullopt;
    bits *= size;
  }
  if (bits % 8 != 0) return std::nullopt;
  return bits / 8;
}

std::string shown_list(const std::vector<std::uint64_t>& numbers) {
  std::string text = "[";
  for (const std::uint64_t value : numbers) text += (text.size() > 1 ? ", " : "") + number(value);
  return text + "]";
}

// Collects the entries from the events of the header's JSON.
class HeaderBuilder {
 public:
  HeaderBuilder(const std::string& file, Header& header) : file_(file), header_(header) {}

  Status visit(const JsonEvent& event) {
    switch (event.path.size()) {
      case 0:
        return Status{};  // the header begins with `{`, so the root is an object
      case 1:
        return event.path[0] == kMetadata ? metadata_object(event) : tensor_object(event);
      case 2:
        return event.path[0] == kMetadata ? metadata_entry(event) : tensor_field(event);
      default:
        return list_element(event);
    }
  }

 private:
  Status metadata_object(const JsonEvent& event) {
    if (event.kind == JsonKind::kBeginObject || event.kind == JsonKind::kEndObject) return Status{};
    return refuse(file_, "", "__metadata__", "an object of strings", describe(event));
  }

  Status metadata_entry(const JsonEvent& event) {
    if (event.kind != JsonKind::kString) {
      return refuse(file_, "__metadata__ " + in_quotes(event.path[1]), "value", "a string", describe(event));
    }
    header_.metadata.emplace(event.path[1], event.text);
    return Status{};
  }

  Status tensor_object(const JsonEvent& event) {
    if (event.kind == JsonKind::kEndObject) return finish_tensor();
    if (event.kind != JsonKind::kBeginObject) {
      return refuse(file_, tensor(event), "entry", "an object with dtype, shape and data_offsets", describe(event));
    }
    current_ = TensorEntry{.name = event.path[0], .dtype = Dtype::kU8, .shape = {}, .begin = 0, .end = 0};
    has_dtype_ = has_shape_ = has_offsets_ = false;
    offsets_.clear();
    return Status{};
  }

  Status tensor_field(const JsonEvent& event) {
    const std::string& field = event.path[1];
    if (field == "dtype") return dtype_field(event);
    if (field != "shape" && field != "data_offsets") {
      return refuse(file_, tensor(event), "field of an entry", "dtype, shape or data_offsets", in_quotes(field));
    }
    if (event.kind != JsonKind::kBeginArray && event.kind != JsonKind::kEndArray) {
      return refuse(file_, tensor(event), field, "a list of non-negative integers", describe(event));
    }
    (field == "shape" ? has_shape_ : has_offsets_) = true;
    return Status{};
  }

  Status dtype_field(const JsonEvent& event) {
    const auto dtype = event.kind == JsonKind::kString ? dtype_from_name(event.text) : std::nullopt;
    if (!dtype) return refuse(file_, tensor(event), "dtype", "a type name of the format", describe(event));
    current_.dtype = *dtype;
    has_dtype_ = true;
    return Status{};
  }

  Status list_element(const JsonEvent& event) {
    if (event.kind != JsonKind::kUnsigned) {
      return refuse(file_, tensor(event), event.path[1], "a list of non-negative integers below 2^64", describe(event));
    }
    const bool is_shape = event.path[1] == "shape";
    auto& list = is_shape ? current_.shape : offsets_;
    const std::size_t limit = is_shape ? kMaxRank : 2;
    if (list.size() == limit) {
      return refuse(file_, tensor(event), event.path[1], "at most " + number(limit) + " numbers", "more");
    }
    list.push_back(event.number);
    return Status{};
  }

  Status finish_tensor() {
    const std::string subject = "tensor " + in_quotes(current_.name);
    if (!has_dtype_ || !has_shape_ || !has_offsets_) {
      const std::string missing = !has_dtype_ ? "dtype" : !has_shape_ ? "shape" : "data_offsets";
      return refuse(file_, subject, "entry", "dtype, shape and data_offsets", "no " + missing);
    }
    if (offsets_.size() != 2) {
      return refuse(file_, subject, "data_offsets", "2 numbers", number(offsets_.size()));
    }
    current_.begin = offsets_[0];
    current_.end = offsets_[1];
    if (current_.begin > current_.end) {
      return refuse(file_, subject, "data_offsets", "begin <= end", shown_list(offsets_));
    }
    const auto bytes = tensor_bytes(current_.shape, current_.dtype);
    const std::string what = std::string(dtype_name(current_.dtype)) + " " + shown_list(current_.shape);
    if (!bytes) return refuse(file_, subject, "size of " + what, "a whole number of bytes below 2^61", "none");
    if (*bytes != current_.end - current_.begin) {
      return refuse(file_, subject, "size of " + what, number(*bytes) + " bytes",
                    number(current_.end - current_.begin) + " from data_offsets");
    }
    header_.tensors.push_back(std::move(current_));
    return Status{};
  }

  static std::string tensor(const JsonEvent& event) { return "tensor " + in_quotes(event.path[0]); }

  const std::string& file_;
  Header& header_;
  TensorEntry current_{};
  std::vector<std::uint64_t> offsets_;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
};

// Sorts the entries by their bytes and checks that they cover [0, data_bytes) exactly.
Status check_layout(Header& header, std::uint64_t data_bytes, const std::string& file) {
  std::sort(header.tensors.begin(), header.tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t covered = 0;
  for (const TensorEntry& entry : header.tensors) {
    const std::string subject = "tensor " + in_quotes(entry.name);
    if (entry.end > data_bytes) {
      return refuse(file, subject, "data_offsets", "end <= " + number(data_bytes) + " (bytes of data in the file)",
                    number(entry.end));
    }
    if (entry.begin != covered) {
      return refuse(file, subject, entry.begin < covered ? "overlap of tensors" : "hole between tensors",
                    "begin = " + number(covered), number(entry.begin));
    }
    covered = entry.end;
  }
  if (covered != data_bytes) {
    return refuse(file, "", "bytes after the last tensor", "none", number(data_bytes - covered));
  }
  return Status{};
}

std::uint64_t read_length(std::span<const std::byte> bytes) {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  return length;
}

// The header's JSON without the spaces that pad it.
Result<std::span<const std::byte>> header_text(std::span<const std::byte> bytes, const std::string& file) {
  if (bytes.size() < kLengthBytes) {
    return refuse(file, "", "file size", "at least 8 bytes for the header's length", number(bytes.size()));
  }
  const std::uint64_t length = read_length(bytes);
  if (length < 2 || length > kMaxHeaderBytes) {
    return refuse(file, "", "header length", "2 to " + number(kMaxHeaderBytes) + " bytes", number(length));
  }
  if (length > bytes.size() - kLengthBytes) {
    return refuse(file, "", "header length", "at most " + number(bytes.size() - kLengthBytes) + " (rest of the file)",
                  number(length));
  }
  auto text = bytes.subspan(kLengthBytes, length);
  if (text.front() != std::byte{'{'}) {
    return refuse(file, "", "first byte of the header", "{", "byte " + number(std::to_integer<unsigned>(text.front())));
  }
  while (text.back() == std::byte{' '}) text = text.first(text.size() - 1);
  if (text.back() != std::byte{'}'}) {
    return refuse(file, "", "last byte of the header", "} and then only spaces",
                  "byte " + number(std::to_integer<unsigned>(text.back())));
  }
  return text;
}

}  // namespace

const TensorEntry* Header::find(std::string_view name) const {
  for (const TensorEntry& entry : tensors) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

Result<Header> parse_safetensors(std::span<const std::byte> bytes, const std::string& file) {
  const auto text = header_text(bytes, file);
  if (!text.ok()) return text.status();
  Header header;
  HeaderBuilder builder(file, header);
  Status status = walk_json(*text, file, kHeaderDepth, [&](const JsonEvent& event) { return builder.visit(event); });
  if (!status.ok()) return status;
  // Not the end of the text: that was cut where the padding begins.
  header.data_start = kLengthBytes + read_length(bytes);
  status = check_layout(header, bytes.size() - header.data_start, file);
  if (!status.ok()) return status;
  return header;
}

}  // namespace isobit::checkpoint
