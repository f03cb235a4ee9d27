// isobit score: log-probabilities of tokens from files. stdout holds nothing but the scores.
#include <memory>
#include <stdexcept>

#include "command.h"
#include "score/inputs.h"
#include "score/options.h"
#include "score/output.h"
#include "score/run.h"
#include "terminal.h"

namespace isobit::cli {
namespace {

int run_score(const score::Options& options) {
  try {
    const std::string format = score::choose_format(options);
    const score::Inputs inputs = score::load_inputs(options);
    Progress progress(options.quiet);
    const score::Scores scores = score::run(inputs, options, [&](int64_t done) {
      progress.show("rows", static_cast<long>(done), static_cast<long>(inputs.hidden.rows));
    });
    progress.clear();
    score::write(scores, inputs, options, format);
    return kOk;
  } catch (const std::invalid_argument& error) {
    complain("score: {}", error.what());
    return kUsage;
  } catch (const score::Unavailable& error) {
    complain("score: {}", error.what());
    return kNoDevice;
  }
}

void add_files(CLI::App& app, score::Options& o) {
  app.add_option("--hidden", o.hidden, "Hidden states: safetensors file or checkpoint folder, [..., H]")->required();
  app.add_option("--hidden-tensor", o.hidden_tensor, "Its tensor; default: hidden_states, hidden, or the only one");
  app.add_option("--head", o.head, "LM head [V, H]: safetensors file or checkpoint folder (sharded ones too)")
      ->required();
  app.add_option("--head-tensor", o.head_tensor,
                 "Its tensor; default: lm_head.weight, or the embeddings if config.json says that they are tied");
  app.add_option("--targets", o.targets, "Token ids, shape of the rows [...], or [..., K]: safetensors file")
      ->required();
  app.add_option("--targets-tensor", o.targets_tensor,
                 "Its tensor; default: targets, target, labels, input_ids, or the only one");
  app.add_flag("--convert-to-bf16", o.convert, "Round fp16 and fp32 operands to bf16 instead of refusing them");
  app.add_option("--output", o.output, "File to write; default: stdout");
  app.add_option("--format", o.format, "safetensors, csv or jsonl; default: by the file's name, else csv")
      ->check(CLI::IsMember({"safetensors", "csv", "jsonl"}));
}

void add_scoring(CLI::App& app, score::Options& o) {
  app.add_flag("--lse", o.lse, "Also log-sum-exp of the logits");
  app.add_flag("--entropy", o.entropy, "Also the entropy in nats");
  app.add_flag("--rank", o.rank, "Also how many ids have a larger logit");
  app.add_option("--top-k", o.top_k, "Also the K ids of largest logit and their log-probabilities")
      ->check(CLI::Range(0, 64));
  app.add_option("--temperature", o.temperature, "Divides the logits")->capture_default_str();
  app.add_option("--softcap", o.softcap, "C > 0: every logit t becomes C tanh(t / C)")->capture_default_str();
  app.add_option("--ignore-index", o.ignore_index, "Target id whose entries are left out (+0)")->capture_default_str();
  app.add_option("--vocab-size", o.vocab_size, "Rows of the head that are ids; default: all")
      ->check(CLI::PositiveNumber);
  app.add_option("--device", o.device, "cpu or cuda")->capture_default_str()->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--device-id", o.device_id, "CUDA device")->capture_default_str()->check(CLI::NonNegativeNumber);
  app.add_option("--kernel", o.kernel, "One row of `isobit list`; default: the first that fits");
  app.add_option("--threads", o.threads, "CPU threads, 0 for the default; changes no bit")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--chunk-rows", o.chunk_rows, "Rows a call; changes no bit")->check(CLI::PositiveNumber);
  app.add_flag("--quiet", o.quiet, "No progress on stderr");
}

}  // namespace

std::function<int()> set_up_score(CLI::App& app) {
  const auto options = std::make_shared<score::Options>();
  add_files(app, *options);
  add_scoring(app, *options);
  app.footer(
      "Row n of the hidden states is scored against target n: to score a text, give the ids shifted by one.\n"
      "Example: isobit score --hidden h.safetensors --head checkpoint/ --targets ids.safetensors --entropy --output "
      "out.csv");
  return [options] { return run_score(*options); };
}

}  // namespace isobit::cli
