#include "ptx/test/conformance/run_case.h"

#include <cstring>
#include <stdexcept>

#include "ptx/memory/tensor_map.h"

namespace isobit::ptx::conformance {
namespace {

struct alignas(64) MapBytes {
  unsigned char bytes[128] = {};
};

MapBytes encode(const Map& map, const void* in, const void* out) {
  MapBytes bytes;
  if (!map.used) return bytes;
  TensorMapDescription d;
  d.address = reinterpret_cast<uint64_t>(map.over_output ? out : in) + map.byte_offset;
  d.shape[0] = map.columns;
  d.shape[1] = map.rows;
  d.stride_bytes[0] = map.row_bytes;
  d.box[0] = map.box_columns;
  d.box[1] = map.box_rows;
  d.swizzle = static_cast<Swizzle>(map.swizzle);
  if (const auto error = encode_tensor_map(d, &bytes)) throw std::invalid_argument(*error);
  return bytes;
}

}  // namespace

std::string source_folder() { return ISOBIT_SOURCE_DIR "/src/ptx/test/conformance/"; }

Result run_case(const Case& c, Module& module, const ScheduleCase& schedule) {
  MachineOptions options;
  options.schedule = schedule.schedule;
  options.seed = schedule.seed;
  options.check_races = true;
  Machine machine(options);
  const std::vector<uint32_t> input = input_of(c), initial = output_of(c);
  DeviceBuffer in(machine, input.size() * 4, true), out(machine, initial.size() * 4, true);
  std::memcpy(in.data(), input.data(), in.size());
  std::memcpy(out.data(), initial.data(), out.size());
  MapBytes map_a = encode(c.map_a, in.data(), out.data()), map_b = encode(c.map_b, in.data(), out.data());
  void *in_address = in.data(), *out_address = out.data();
  const void* parameters[] = {&map_a, &map_b, &in_address, &out_address};
  Report report =
      machine.launch(module, c.kernel, {{c.grid, 1, 1}, {c.block, 1, 1}, {c.cluster, 1, 1}, 0}, parameters, 4);
  return {{out.as<uint32_t>(), out.as<uint32_t>() + initial.size()}, std::move(report)};
}

}  // namespace isobit::ptx::conformance
