#include "checkpoint/safetensors_writer.h"

#include "checkpoint/safetensors_stream.h"

namespace isobit::checkpoint {

Status write_safetensors(const std::string& path, std::span<const OutputTensor> tensors,
                         const std::map<std::string, std::string>& metadata) {
  std::vector<PlannedTensor> plan;
  for (const OutputTensor& tensor : tensors) {
    std::uint64_t bits = dtype_bits(tensor.dtype);
    for (const std::uint64_t size : tensor.shape) bits *= size;
    if (bits != 8 * tensor.bytes.size()) {
      return refuse(path, "tensor " + in_quotes(tensor.name), "size", std::to_string(bits / 8) + " bytes",
                    std::to_string(tensor.bytes.size()));
    }
    plan.push_back({tensor.name, tensor.dtype, tensor.shape});
  }
  auto stream = SafetensorsStream::open(path, plan, metadata);
  if (!stream.ok()) return stream.status();
  for (const OutputTensor& tensor : tensors) {
    if (Status status = stream->write(tensor.bytes); !status.ok()) return status;
  }
  return stream->finish();
}

}  // namespace isobit::checkpoint
