// isobit emulate: a kernel of a PTX file in the interpreter, with arguments from the command line and from files.
#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "command.h"
#include "ptx/arithmetic/mma_arithmetic.h"
#include "ptx/runtime/emulated_runtime.h"
#include "terminal.h"

namespace isobit::cli {
namespace {

struct Options {
  std::string file, kernel, schedule = "eager", arithmetic = "hopper";
  std::string grid = "1", block = "32", cluster = "1";
  uint32_t shared = 0;
  uint64_t seed = 1;
  bool no_races = false, approximate = false, json = false;
  std::vector<std::string> arguments;
};

std::vector<char> read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::invalid_argument("cannot read \"" + path + "\"");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

template <class T>
std::vector<char> number_bytes(const std::string& text) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size())
    throw std::invalid_argument("not a number of this type: \"" + text + "\"");
  std::vector<char> bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::vector<char> scalar_bytes(const std::string& type, const std::string& text) {
  if (type == "u8") return number_bytes<uint8_t>(text);
  if (type == "u16") return number_bytes<uint16_t>(text);
  if (type == "u32") return number_bytes<uint32_t>(text);
  if (type == "s32") return number_bytes<int32_t>(text);
  if (type == "u64") return number_bytes<uint64_t>(text);
  if (type == "s64") return number_bytes<int64_t>(text);
  if (type == "f32") return number_bytes<float>(text);
  if (type == "f64") return number_bytes<double>(text);
  if (type == "bytes") return read_bytes(text);
  throw std::invalid_argument("unknown kind of argument \"" + type + "\"");
}

// One kernel argument: its bytes, and the buffer that it points to, if any.
struct Argument {
  std::vector<char> bytes;
  std::unique_ptr<ptx::DeviceBuffer> buffer;
  std::string result_path;  // where the buffer goes after the launch
};

Argument buffer_argument(ptx::Machine& machine, const std::vector<char>& content, size_t size, bool initialised) {
  Argument a;
  a.buffer = std::make_unique<ptx::DeviceBuffer>(machine, size, initialised);
  if (!content.empty()) std::memcpy(a.buffer->data(), content.data(), content.size());
  if (initialised && content.empty()) std::memset(a.buffer->data(), 0, size);
  void* address = a.buffer->data();
  a.bytes.resize(sizeof address);
  std::memcpy(a.bytes.data(), &address, sizeof address);
  return a;
}

// KIND:VALUE, where a buffer's result may follow as =PATH.
Argument parse_argument(ptx::Machine& machine, const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) throw std::invalid_argument("expected KIND:VALUE, got \"" + text + "\"");
  const std::string kind = text.substr(0, colon);
  std::string value = text.substr(colon + 1), path;
  const bool from_file = kind == "in", zero = kind == "zero", unwritten = kind == "out";
  if (!from_file && !zero && !unwritten) {
    Argument a;
    a.bytes = scalar_bytes(kind, value);
    return a;
  }
  if (const size_t equals = value.find('='); equals != std::string::npos) {
    path = value.substr(equals + 1);
    value.resize(equals);
  }
  const std::vector<char> content = from_file ? read_bytes(value) : std::vector<char>();
  size_t size = content.size();
  if (!from_file) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, number_bytes<uint64_t>(value).data(), sizeof bytes);
    size = bytes;
  }
  Argument a = buffer_argument(machine, content, size, !unwritten);
  a.result_path = path;
  return a;
}

// "x", "x,y" or "x,y,z".
ptx::Extent extent(const std::string& text) {
  uint32_t values[3] = {1, 1, 1};
  size_t begin = 0, count = 0;
  while (begin <= text.size() && count < 3) {
    const size_t end = std::min(text.find(',', begin), text.size());
    std::memcpy(&values[count++], number_bytes<uint32_t>(text.substr(begin, end - begin)).data(), sizeof(uint32_t));
    begin = end + 1;
  }
  if (begin <= text.size()) throw std::invalid_argument("more than three dimensions: \"" + text + "\"");
  return {values[0], values[1], values[2]};
}

ptx::MachineOptions machine_options(const Options& o) {
  ptx::MachineOptions m;
  m.schedule = o.schedule == "lazy"     ? ptx::Schedule::kLazy
               : o.schedule == "random" ? ptx::Schedule::kRandom
                                        : ptx::Schedule::kEager;
  m.seed = o.seed;
  m.check_races = !o.no_races;
  m.allow_approximate = o.approximate;
  m.arithmetic = o.arithmetic == "exact" ? &ptx::exact_arithmetic() : &ptx::hopper_arithmetic();
  return m;
}

void print_findings(const ptx::Report& report, bool json) {
  if (!json) {
    fmt::print("{}", report.text());
    return;
  }
  for (const ptx::Finding& f : report.findings) {
    const nlohmann::ordered_json line = {{"kind", ptx::name_of(f.kind)},
                                         {"line", f.line},
                                         {"instruction", f.instruction},
                                         {"message", f.message},
                                         {"warp", f.warp},
                                         {"cta", {f.cta[0], f.cta[1], f.cta[2]}},
                                         {"count", f.count}};
    fmt::print("{}\n", line.dump());
  }
}

// The kernel asked for, or the only one.
std::string kernel_name(const ptx::Module& module, const std::string& asked) {
  if (!asked.empty()) {
    if (!module.find(asked)) throw std::invalid_argument("no kernel \"" + asked + "\" in the file");
    return asked;
  }
  if (module.kernels().size() == 1) return module.kernels()[0].name;
  std::string names;
  for (const ptx::Kernel& k : module.kernels()) names += "\n  " + k.name;
  throw std::invalid_argument("name one of the kernels with --kernel:" + names);
}

void check_sizes(const ptx::Kernel& kernel, const std::vector<Argument>& arguments) {
  if (arguments.size() != kernel.parameters.size()) {
    throw std::invalid_argument(
        fmt::format("the kernel has {} parameters, got {} arguments", kernel.parameters.size(), arguments.size()));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].bytes.size() != kernel.parameters[i].bytes) {
      throw std::invalid_argument(fmt::format("argument {}: expected {} bytes, got {}", i + 1,
                                              kernel.parameters[i].bytes, arguments[i].bytes.size()));
    }
  }
}

int run(const Options& o) {
  const std::vector<char> text = read_bytes(o.file);
  auto parsed = ptx::Module::parse({text.data(), text.size()});
  if (const auto* error = std::get_if<ptx::Error>(&parsed)) {
    complain("{}:{}: {}", o.file, error->line, error->message);
    return kFailed;
  }
  ptx::Module& module = std::get<ptx::Module>(parsed);
  const std::string name = kernel_name(module, o.kernel);
  ptx::Machine machine(machine_options(o));
  std::vector<Argument> arguments;
  for (const std::string& a : o.arguments) arguments.push_back(parse_argument(machine, a));
  check_sizes(*module.find(name), arguments);
  std::vector<const void*> pointers;
  for (const Argument& a : arguments) pointers.push_back(a.bytes.data());
  const ptx::Report report = machine.launch(
      module, name, {extent(o.grid), extent(o.block), extent(o.cluster), o.shared}, pointers.data(), pointers.size());
  print_findings(report, o.json);
  for (const Argument& a : arguments) {
    if (a.result_path.empty()) continue;
    std::ofstream file(a.result_path, std::ios::binary);
    file.write(a.buffer->as<char>(), static_cast<std::streamsize>(a.buffer->size()));
    if (!file) throw std::invalid_argument("cannot write \"" + a.result_path + "\"");
  }
  complain("{}: {} findings, {} warp instructions, {} matrix instructions, {} asynchronous operations", name,
           report.findings.size(), report.statistics.warp_instructions, report.statistics.mma,
           report.statistics.async_operations);
  return report.ok() ? kOk : kFailed;
}

}  // namespace

std::function<int()> set_up_emulate(CLI::App& app) {
  const auto o = std::make_shared<Options>();
  app.add_option("file", o->file, "PTX text")->required()->check(CLI::ExistingFile);
  app.add_option(
      "arguments", o->arguments,
      "One per parameter: in:FILE[=RESULT] a buffer with the file's bytes, zero:BYTES[=RESULT], out:BYTES[=RESULT] a "
      "buffer "
      "never written, u8 u16 u32 s32 u64 s64 f32 f64 followed by :VALUE, or bytes:FILE a structure by value");
  app.add_option("--kernel", o->kernel, "The kernel's name; not needed if there is one");
  app.add_option("--grid", o->grid, "Blocks: x[,y[,z]]")->capture_default_str();
  app.add_option("--block", o->block, "Threads: x[,y[,z]]")->capture_default_str();
  app.add_option("--cluster", o->cluster, "Blocks of a cluster: x[,y[,z]]")->capture_default_str();
  app.add_option("--shared", o->shared, "Bytes of dynamic shared memory")->capture_default_str();
  app.add_option("--schedule", o->schedule, "When asynchronous work happens")
      ->check(CLI::IsMember({"eager", "lazy", "random"}))
      ->capture_default_str();
  app.add_option("--seed", o->seed, "Of the random schedule")->capture_default_str();
  app.add_option("--arithmetic", o->arithmetic, "Of matrix instructions")
      ->check(CLI::IsMember({"hopper", "exact"}))
      ->capture_default_str();
  app.add_flag("--no-races", o->no_races, "Do not look for races and missing proxy fences");
  app.add_flag("--approximate", o->approximate, "Let approximate functions take libm's value instead of refusing them");
  app.add_flag("--json", o->json, "One JSON object per finding");
  app.footer("Example: isobit emulate saxpy.ptx --grid 8 --block 128 in:x.bin in:y.bin=result.bin f32:1.5 s32:1000");
  return [o] {
    try {
      return run(*o);
    } catch (const std::invalid_argument& error) {
      complain("emulate: {}", error.what());
      return static_cast<int>(kUsage);
    }
  };
}

}  // namespace isobit::cli
