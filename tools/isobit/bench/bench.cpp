// isobit bench: one JSON object per case, or a table when stdout is a terminal.
#include "bench/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "arrays.h"
#include "bench/record.h"
#include "bench/report/page.h"
#include "command.h"
#include "terminal.h"

namespace isobit::cli {

namespace {

struct Request {
  std::string op;
  std::string kernel;
  std::vector<std::string> shape;
  bool figures = false;
  std::vector<std::string> dtypes = {"bfloat16"};
  TimingOptions timing;
  int threads = 0;
  int device = 0;
  uint64_t seed = 1;
  std::string output;             // append JSON lines here too
  std::vector<std::string> from;  // draw these files instead of a run
  std::string report, plots;
  bool json = false;
  bool quiet = false;
};

std::string command_of(const Request& request, const BenchOperator& row, const BenchCase& c) {
  std::string text = fmt::format("isobit bench {} --kernel {} --shape {} --dtype {} --samples {} --warmup {} --seed {}",
                                 row.name, c.kernel.name, shape_text(c.shape, row.letters), dtype_text(c.dtype),
                                 request.timing.samples, request.timing.warmup, request.seed);
  if (c.threads != 0) text += fmt::format(" --threads {}", c.threads);
  if (request.device != 0) text += fmt::format(" --device {}", request.device);
  if (request.timing.warm) text += " --warm";
  return text;
}

std::vector<Shape> shapes_of(const Request& request, const BenchOperator& row, const Kernel& kernel) {
  if (request.figures && row.figures != nullptr) return row.figures(kernel.place());
  return combine(parse_shapes(request.shape), row.letters, row.defaults);
}

std::vector<BenchCase> cases_of(const Request& request, const BenchOperator& row) {
  std::vector<BenchCase> cases;
  for (const Kernel& kernel : select_kernels(row.op, request.kernel)) {
    if (!kernel.usable) {
      complain("{} {}: not timed, {}", kernel.op, kernel.name, kernel.reason);
      continue;
    }
    for (const std::string& dtype : request.dtypes) {
      for (const Shape& shape : shapes_of(request, row, kernel)) {
        const Place place{kernel.place(), kernel.place() == ISOBIT_CPU ? 0 : request.device};
        cases.push_back({kernel, place, shape, parse_dtype(dtype), request.threads, request.seed});
      }
    }
  }
  return cases;
}

BenchRecord measure(const Request& request, const BenchOperator& row, const BenchCase& c) {
  const std::unique_ptr<Workload> workload = row.make(c);
  const std::vector<double> samples = time_runs(c.place, request.timing, [&](void* stream) { workload->run(stream); });
  return {row.name,
          c,
          row.letters,
          samples,
          workload->bytes(),
          workload->flops(),
          workload->peak_bytes(),
          request.timing.warm || c.place.type == ISOBIT_CPU,
          command_of(request, row, c)};
}

void draw(const Request& request, const ResultLines& results) {
  if (!request.report.empty()) write_page(request.report, results);
  if (!request.plots.empty()) write_plots(request.plots, results);
}

int draw_files(const Request& request) {
  if (request.report.empty() && request.plots.empty()) {
    throw std::invalid_argument("--from: expected --report FILE.html or --svg FOLDER beside it");
  }
  ResultLines results;
  for (const std::string& path : request.from) results.add_file(path);
  draw(request, results);
  return kOk;
}

int run(const Request& request) {
  if (!request.from.empty()) return draw_files(request);
  if (request.op.empty()) throw std::invalid_argument("op: expected an operator to time, or --from");
  const auto row = std::find_if(bench_operators().begin(), bench_operators().end(),
                                [&](const BenchOperator& candidate) { return request.op == candidate.name; });
  const std::vector<BenchCase> cases = cases_of(request, *row);
  if (cases.empty()) {
    complain("{}: no kernel to time here", request.op);
    return kNoDevice;
  }
  std::ofstream file;
  if (!request.output.empty()) {
    file.open(request.output, std::ios::app);
    if (!file) throw std::invalid_argument(fmt::format("--output: cannot write \"{}\"", request.output));
  }
  const bool table_wanted = stdout_is_terminal() && !request.json;
  Table table(table_header());
  Progress progress(request.quiet);
  ResultLines results;
  for (size_t i = 0; i < cases.size(); ++i) {
    progress.show(shape_text(cases[i].shape, row->letters), static_cast<long>(i), static_cast<long>(cases.size()));
    const BenchRecord record = measure(request, *row, cases[i]);
    progress.clear();
    const nlohmann::ordered_json object = to_json(record);
    const std::string line = object.dump();
    results.add("run", object);
    if (file.is_open()) file << line << '\n' << std::flush;
    if (table_wanted) {
      table.add(table_row(record));
      complain("repeat with: {}", record.command);
    } else {
      fmt::print("{}\n", line);
    }
  }
  if (table_wanted) fmt::print("{}", table.text());
  draw(request, results);
  return kOk;
}

}  // namespace

std::function<int()> set_up_bench(CLI::App& app) {
  const auto request = std::make_shared<Request>();
  std::vector<std::string> names;
  for (const BenchOperator& row : bench_operators()) names.emplace_back(row.name);
  app.add_option("op", request->op, "Operator to time")->check(CLI::IsMember(names));
  app.add_option("--kernel", request->kernel, "One row of `isobit list`, or all; every usable row by default");
  app.add_option("--shape", request->shape, "Sizes, for example N=1,64 H=4096 V=151936 or M=784:968:32");
  app.add_flag("--figures", request->figures, "The shapes of the operator's page instead of --shape");
  app.add_option("--dtype", request->dtypes, "bfloat16, float16, float32")->capture_default_str();
  app.add_option("--samples", request->timing.samples, "Timed runs")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--warmup", request->timing.warmup, "Runs before them")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--warm", request->timing.warm, "Leave data in a GPU's L2 cache between runs");
  app.add_option("--threads", request->threads, "CPU kernels: threads, 0 for the default")->capture_default_str();
  app.add_option("--device", request->device, "CUDA device")->capture_default_str();
  app.add_option("--seed", request->seed, "Seed of the random operands")->capture_default_str();
  app.add_option("--output", request->output, "Append JSON lines to this file as well");
  app.add_option("--report", request->report,
                 "Write a page with tables and plots of the lines: FILE.html, no requests");
  app.add_option("--svg", request->plots, "Write every plot as a file of its own into this folder");
  app.add_option("--from", request->from, "Draw these files of JSON lines instead of timing anything");
  app.add_flag("--json", request->json, "JSON lines on a terminal too");
  app.add_flag("--quiet", request->quiet, "No progress on stderr");
  app.footer("Example: isobit bench linear_logp_forward --kernel cpu --shape N=1,64 H=1024 V=8192 --output cpu.jsonl");
  return [request] { return run(*request); };
}

}  // namespace isobit::cli
