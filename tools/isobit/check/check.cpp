// isobit check: an operator's kernels against its oracle, or against themselves byte by byte (--invariance).
#include "check/check.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <stdexcept>

#include "command.h"

namespace isobit::cli {
namespace {

struct Row {
  const char* op;
  CheckFunction check;
};

constexpr Row kChecks[] = {
    {"linear_logp", check_linear_logp},
    {"linear_logp_backward", check_linear_logp_backward},
    {"geglu", check_geglu},
    {"nvfp4_geglu", check_nvfp4},
    {"nvfp4_linear", check_nvfp4},
    {"nvfp4_quantize", check_nvfp4},
};

struct Request {
  std::vector<std::string> ops;
  std::string kernel;
  std::vector<std::string> shape;
  CheckOptions options;
  bool json = false;
  bool quiet = false;
};

// Rows of the operator that the user wants and this machine can run; says why if there are none.
std::vector<Kernel> usable_kernels(const std::string& op, const std::string& wanted) {
  const std::vector<Kernel> rows = select_kernels(op, wanted);
  if (!wanted.empty() && wanted != "all" && rows.empty()) {
    throw std::invalid_argument(fmt::format("--kernel: expected a row of `isobit list`, got \"{}\"", wanted));
  }
  std::vector<Kernel> usable;
  for (const Kernel& row : rows) {
    if (row.usable) {
      usable.push_back(row);
    } else {
      complain("{} {}: not checked, {}", row.op, row.name, row.reason);
    }
  }
  return usable;
}

int run(Request request) {
  if (request.ops.empty()) {
    for (const Row& row : kChecks) request.ops.emplace_back(row.op);
  }
  CheckReport report(request.json, request.quiet);
  bool missing = false;
  for (const std::string& op : request.ops) {
    const auto* row = std::find_if(std::begin(kChecks), std::end(kChecks), [&](const Row& r) { return op == r.op; });
    CheckOptions options = request.options;
    options.shape = parse_shapes(request.shape);
    options.kernels = usable_kernels(op, request.kernel);
    if (options.kernels.empty()) {
      complain("{}: no kernel to check here", op);
      missing = true;
      continue;
    }
    row->check(options, report);
  }
  report.finish();
  if (report.failed() > 0) return kFailed;
  if (missing) return kNoDevice;
  return report.passed() > 0 ? kOk : kFailed;
}

}  // namespace

std::function<int()> set_up_check(CLI::App& app) {
  const auto request = std::make_shared<Request>();
  std::vector<std::string> names;
  for (const Row& row : kChecks) names.emplace_back(row.op);
  app.add_option("op", request->ops, "Operators to check; all of them if none is named")->check(CLI::IsMember(names));
  app.add_option("--kernel", request->kernel, "One row of `isobit list`; every usable row by default");
  app.add_option("--shape", request->shape, "Sizes, for example N=1,7,128 H=64 V=1000:1010:5");
  app.add_option("--dtype", request->options.dtypes, "bfloat16, float16, float32");
  app.add_option("--seed", request->options.seed, "Seed of the random operands")->capture_default_str();
  app.add_flag("--invariance", request->options.invariance,
               "Compare bytes over batch sizes, positions, strides, shards, threads and schedules");
  app.add_flag("--quick", request->options.quick, "A sample of the cases that takes seconds");
  app.add_flag("--plant-fault", request->options.plant_fault, "Spoil one result: the check must fail");
  app.add_flag("--json", request->json, "One JSON object per group");
  app.add_flag("--quiet", request->quiet, "No progress on stderr");
  app.footer("Example: isobit check linear_logp --invariance --shape V=50257");
  return [request] { return run(*request); };
}

}  // namespace isobit::cli
