// isobit pack: a checkpoint's gated MLPs as NVFP4, and the check of such a file's tag.
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "pack/pack.h"
#include "pack/tag.h"
#include "terminal.h"

namespace isobit::cli {
namespace {

struct Options : PackOptions {
  std::string layout_text = "128x4";
  bool quiet = false;
  bool check = false;
};

void print_report(const std::string& layer, const char* matrix, const PackedMatrix& packed) {
  nlohmann::ordered_json line = {
      {"layer", layer}, {"matrix", matrix}, {"rows", packed.rows}, {"columns", packed.columns}};
  line["decode_scale"] = packed.decode_scale;
  if (packed.taken_over) {
    line["taken_over"] = true;
  } else {
    line["relative_l2"] = packed.report.relative_l2;
    line["cosine"] = packed.report.cosine;
    line["saturated"] = packed.report.saturated;
    line["flushed"] = packed.report.flushed;
  }
  fmt::print("{}\n", line.dump());
}

int refused(const checkpoint::Status& status) {
  complain("{}", status.message);
  return kUsage;
}

int check_file(const std::string& path) {
  const auto tag = read_tag(path);
  if (!tag.ok()) return refused(tag.status());
  fmt::print("{}\n", nlohmann::ordered_json(*tag).dump());
  return kOk;
}

int run(Options* options) {
  if (options->check) return check_file(options->input);
  if (options->output.empty()) return refused({"--output: expected a path, got none"});
  options->layout = options->layout_text == "linear"  ? ISOBIT_NVFP4_LINEAR
                    : options->layout_text == "128x4" ? ISOBIT_NVFP4_128X4
                                                      : ISOBIT_NVFP4_8X4;
  Progress line(options->quiet);
  const PackListener listener = {[&](const std::string& layer, const char* matrix, const PackedMatrix& packed) {
                                   line.clear();
                                   print_report(layer, matrix, packed);
                                 },
                                 [&](const std::string& layer, int64_t row, int64_t rows) {
                                   line.show(layer, static_cast<long>(row), static_cast<long>(rows));
                                 }};
  const checkpoint::Status status = pack(*options, listener);
  line.clear();
  return status.ok() ? kOk : refused(status);
}

}  // namespace

std::function<int()> set_up_pack(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("input", options->input, "safetensors file or Hugging Face folder; with --check a packed file")
      ->required();
  app.add_option("-o,--output", options->output, "Packed safetensors file to write");
  app.add_option("--layout", options->layout_text, "Layout of the block scales")
      ->check(CLI::IsMember({"linear", "128x4", "8x4"}))
      ->capture_default_str();
  app.add_option("--gelu", options->gelu, "Form of GELU, for an architecture that is not known")
      ->check(CLI::IsMember({"tanh", "erf"}));
  app.add_option("--activations", options->activations,
                 "Pre-scale by these statistics: safetensors with LAYER.input [H] and LAYER.hidden [I], F32");
  app.add_option("--alpha", options->alpha, "Power of the pre-scale")
      ->check(CLI::Range(0.0f, 1.0f))
      ->capture_default_str();
  app.add_flag("--check", options->check, "Print the tag of a packed file, or say why it cannot be used");
  app.add_flag("-q,--quiet", options->quiet, "No progress line");
  app.footer("One JSON line per matrix: relative L2 error, cosine, shares of saturated and of flushed blocks.");
  return [options] { return run(options.get()); };
}

}  // namespace isobit::cli
