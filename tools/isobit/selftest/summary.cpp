#include "selftest/summary.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "arrays.h"
#include "shape.h"
#include "terminal.h"

namespace isobit::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string text_or(const Json& value, const char* otherwise) {
  return value.is_string() ? value.get<std::string>() : otherwise;
}

std::string machine_text(const Json& machine) {
  std::string out = fmt::format("{}\n{}, {} processors\n", machine["build"].get<std::string>(),
                                text_or(machine["processor"], "?"), machine["processors"].get<int>());
  if (machine["device"].is_null()) return out + "no CUDA device: the CPU backend alone\n";
  const Json& d = machine["device"];
  return out + fmt::format("{}, compute capability {}, {} multiprocessors, driver {} (CUDA {}), runtime CUDA {}\n",
                           d["name"].get<std::string>(), d["compute_capability"].get<std::string>(),
                           d["multiprocessors"].get<int>(), text_or(d["driver"], "?"),
                           d["driver_cuda"].get<std::string>(), d["runtime_cuda"].get<std::string>());
}

struct Counts {
  int equal = 0, no_promise = 0, unsupported = 0, failed = 0;
};

std::string bits_text(const std::vector<BitsResult>& results) {
  std::vector<std::pair<const Kernel*, Counts>> rows;
  std::string notes;
  std::set<std::string> reasons;
  for (const BitsResult& r : results) {
    auto row = rows.begin();
    while (row != rows.end() && (row->first->op != r.kernel.op || row->first->name != r.kernel.name ||
                                 row->first->contract != r.kernel.contract)) {
      ++row;
    }
    if (row == rows.end()) row = rows.insert(rows.end(), {&r.kernel, {}});
    Counts& c = row->second;
    c.equal += r.state == BitsState::kEqual;
    c.no_promise += r.state == BitsState::kNoPromise;
    c.unsupported += r.state == BitsState::kUnsupported;
    c.failed += r.state == BitsState::kFailed;
    const std::string where = fmt::format("{} {}", r.kernel.op, r.kernel.name);
    if (r.state == BitsState::kFailed) {
      notes +=
          paint(Colour::kRed, fmt::format("FAILED       {}, {}: {} of {} bytes differ, {} in pieces; {}{}\n", where,
                                          r.test->name, r.differing, r.bytes, r.apart_differing, r.first, r.reason));
    } else if (r.state == BitsState::kNoPromise && r.differing > 0) {
      notes += fmt::format("no promise   {}, {}: {} of {} bytes differ from the CPU's rule\n", where, r.test->name,
                           r.differing, r.bytes);
    } else if (r.state == BitsState::kUnsupported) {
      const std::string line = fmt::format("UNSUPPORTED  {} ({}): {}\n", where, r.kernel.contract, r.reason);
      if (reasons.insert(line).second) notes += line;
    }
  }
  Table table({"operator", "kernel", "contract", "equal", "no promise", "unsupported", "failed"});
  for (const auto& [kernel, c] : rows) {
    table.add({kernel->op, kernel->name, kernel->contract, std::to_string(c.equal), std::to_string(c.no_promise),
               std::to_string(c.unsupported), std::to_string(c.failed)});
  }
  return "\nBITS, against the CPU backend and the hashes of this version; whole calls and pieces of them\n" +
         table.text() + notes;
}

std::string chains_text(const Json& section) {
  std::string out = "\nTENSOR CORES, against sm90-k16-f25\n";
  for (const Json& form : section["forms"]) {
    const std::string where = fmt::format("{} {}", form["form"].get<std::string>(), form["dtype"].get<std::string>());
    if (form["state"] == "unsupported") {
      out += fmt::format("UNSUPPORTED  {}: {}\n", where, form["reason"].get<std::string>());
      continue;
    }
    out += fmt::format("{:<11}  {}: {} of {} outputs differ\n", form["state"].get<std::string>(), where,
                       form["differing"].get<int64_t>(), form["outputs"].get<int64_t>());
    for (const Json& fit : form["best_rules"]) {
      out += fmt::format("             {} differ from: {}\n", fit["differing"].get<int64_t>(),
                         fit["rule"].get<std::string>());
    }
  }
  return out;
}

std::string block_scaled_text(const Json& section) {
  if (section["state"] == "unsupported") {
    return fmt::format("UNSUPPORTED  tcgen05.mma kind::mxf4nvf4: {}\n", section["reason"].get<std::string>());
  }
  std::string out = "ran          tcgen05.mma kind::mxf4nvf4, K = 64\n";
  for (const Json& fit : section["cases"][0]["best_rules"]) {
    out += fmt::format("             {} of {} differ from: {}, {}\n", fit["differing"].get<int64_t>(),
                       section["rows"].get<int64_t>() * section["columns"].get<int64_t>(),
                       fit["terms"].get<std::string>(), fit["rule"].get<std::string>());
  }
  return out;
}

std::string timings_text(const Timings& timings) {
  Table table({"operator", "kernel", "shape", "median us", "GB/s", "of copy", "GFLOP/s"});
  std::string notes;
  for (const Timing& t : timings.kernels) {
    const BenchRecord& r = t.record;
    if (!t.reason.empty()) {
      notes += fmt::format("UNSUPPORTED  {} {}: {}\n", r.op, r.bench_case.kernel.name, t.reason);
      continue;
    }
    const double median = quantile(r.samples_us, 0.5);
    table.add({r.op, r.bench_case.kernel.name, shape_text(r.bench_case.shape, r.letters), fmt::format("{:.1f}", median),
               fmt::format("{:.1f}", r.bytes / median * 1e-3), fmt::format("{:.3f}", share_of_copy(timings.copy, r)),
               fmt::format("{:.0f}", r.flops / median * 1e-3)});
  }
  return fmt::format("\nTIMINGS; a plain copy reads and writes {:.1f} GB/s\n", timings.copy.bytes_per_us() * 1e-3) +
         table.text() + notes;
}

}  // namespace

std::string summary_of(const SelftestResult& result, const Json& report) {
  std::string out = machine_text(report["machine"]) + bits_text(result.bits) + chains_text(report["tensor_core"]) +
                    block_scaled_text(report["block_scaled"]);
  if (result.timings) out += timings_text(*result.timings);
  if (!result.device_ran()) out += paint(Colour::kRed, "\nFAILED       no kernel ran on the device\n");
  out += result.ok() ? paint(Colour::kGreen, "\nok: everything that a contract promises here held\n")
                     : paint(Colour::kRed, "\nFAILED: something that a contract promises did not hold\n");
  return out;
}

}  // namespace isobit::cli
