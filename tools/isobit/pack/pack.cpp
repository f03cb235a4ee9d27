#include "pack/pack.h"

#include <algorithm>
#include <optional>
#include <span>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors_stream.h"
#include "numerics/scale_layout.h"
#include "pack/layers.h"
#include "pack/prescale.h"
#include "pack/tag.h"

namespace isobit::cli {
namespace {

using checkpoint::Dtype;
using checkpoint::PlannedTensor;
using checkpoint::refuse;
using checkpoint::Result;
using checkpoint::SafetensorsStream;
using checkpoint::Status;

// A layer's matrices, opened and found to fit each other.
struct OpenLayer {
  Layer layer;
  Matrix gate, up, down;
  int64_t width;  // I, padded
  Prescale prescale;
};

// Stacked layers one by one; others as they are.
Result<std::vector<Layer>> expand_stacks(checkpoint::Checkpoint* from, const std::vector<Layer>& layers) {
  std::vector<Layer> all;
  for (const Layer& layer : layers) {
    const auto count = layer.gate.stack == Stack::kNone ? Result<int64_t>(int64_t{0}) : stack_size(from, layer.gate);
    if (!count.ok()) return count.status();
    if (*count == 0) all.push_back(layer);
    for (int64_t i = 0; i < *count; ++i) {
      all.push_back(layer);
      all.back().name.append(".").append(std::to_string(i));
      for (MatrixName* const name : {&all.back().gate, &all.back().up, &all.back().down}) name->layer = i;
    }
  }
  return all;
}

std::string shape_text(const Matrix& m) {
  return std::string("[") + std::to_string(m.rows) + ", " + std::to_string(m.columns) + "]";
}

Result<OpenLayer> open_layer(checkpoint::Checkpoint* from, const Layer& layer, const std::string& path) {
  OpenLayer open = {layer, {}, {}, {}, 0, {}};
  const struct {
    const MatrixName& name;
    Matrix* to;
  } parts[] = {{layer.gate, &open.gate}, {layer.up, &open.up}, {layer.down, &open.down}};
  for (const auto& part : parts) {
    auto matrix = open_matrix(from, part.name);
    if (!matrix.ok()) return matrix.status();
    *part.to = *matrix;
  }
  const Matrix &gate = open.gate, &up = open.up, &down = open.down;
  if (gate.rows != up.rows || gate.columns != up.columns) {
    return refuse(path, checkpoint::in_quotes(up.name), "shape", shape_text(gate) + " like gate", shape_text(up));
  }
  if (down.rows != gate.columns || down.columns != gate.rows) {
    const std::string expected =
        std::string("[") + std::to_string(gate.columns) + ", " + std::to_string(gate.rows) + "]";
    return refuse(path, checkpoint::in_quotes(down.name), "shape", expected, shape_text(down));
  }
  if (gate.rows < 1 || gate.columns < 16 || gate.columns % 16 != 0) {
    return refuse(path, checkpoint::in_quotes(gate.name), "shape", "a hidden size that is a multiple of 16",
                  shape_text(gate));
  }
  open.width = numerics::round_up(gate.rows, 16);
  return open;
}

// Puts the factors of the layer's pre-scale to its matrices.
Status apply_prescale(checkpoint::Checkpoint* statistics, float alpha, const std::string& path, OpenLayer* open) {
  if (open->gate.packed || open->up.packed || open->down.packed) {
    return refuse(path, checkpoint::in_quotes(open->layer.name), "--activations", "weights that are not NVFP4 already",
                  "packed ones");
  }
  auto prescale = read_prescale(statistics, open->layer.name, open->gate.columns, open->gate.rows, alpha);
  if (!prescale.ok()) return prescale.status();
  open->prescale = std::move(*prescale);
  open->gate.column_factors = open->up.column_factors = open->prescale.input;
  open->down.column_factors = open->prescale.hidden;
  for (const float factor : open->prescale.hidden) open->up.row_factors.push_back(1.0f / factor);
  return Status{};
}

void plan_matrix(const std::string& name, int64_t rows, int64_t columns, isobit_nvfp4_layout layout,
                 std::vector<PlannedTensor>* plan) {
  int64_t padded_rows = 0, padded_blocks = 0;
  isobit_nvfp4_scales_shape(layout, rows, columns, &padded_rows, &padded_blocks);
  plan->push_back({name + ".codes", Dtype::kU8, {static_cast<uint64_t>(rows), static_cast<uint64_t>(columns / 2)}});
  plan->push_back(
      {name + ".scales", Dtype::kU8, {static_cast<uint64_t>(padded_rows), static_cast<uint64_t>(padded_blocks)}});
}

std::vector<PlannedTensor> plan_of(const std::vector<OpenLayer>& layers, isobit_nvfp4_layout layout) {
  std::vector<PlannedTensor> plan;
  for (const OpenLayer& open : layers) {
    const std::string& name = open.layer.name;
    plan_matrix(name + ".gate_up", 2 * open.width, open.gate.columns, layout, &plan);
    plan.push_back({name + ".gate_up.gate_scale", Dtype::kF32, {1}});
    plan.push_back({name + ".gate_up.up_scale", Dtype::kF32, {1}});
    if (open.prescale.present()) {
      plan.push_back({name + ".gate_up.input_scale", Dtype::kF32, {static_cast<uint64_t>(open.gate.columns)}});
    }
    plan_matrix(name + ".down", open.down.rows, open.width, layout, &plan);
    plan.push_back({name + ".down.scale", Dtype::kF32, {1}});
  }
  return plan;
}

class LayerWriter {
 public:
  LayerWriter(SafetensorsStream* stream, const PackOptions& options, const PackListener& listener)
      : stream_(stream), options_(options), listener_(listener) {}

  Status write(const OpenLayer& open) {
    auto gate = packed(open, "gate", open.gate, open.width, open.gate.columns);
    if (!gate.ok()) return gate.status();
    auto up = packed(open, "up", open.up, open.width, open.up.columns);
    if (!up.ok()) return up.status();
    if (Status s = write(interleave(*gate, *up, options_.layout)); !s.ok()) return s;
    for (const float scale : {gate->decode_scale, up->decode_scale}) {
      if (Status s = stream_->write(std::as_bytes(std::span(&scale, 1))); !s.ok()) return s;
    }
    std::vector<float> input_scale;
    for (const float factor : open.prescale.input) input_scale.push_back(1.0f / factor);
    if (Status s = stream_->write(std::as_bytes(std::span(input_scale))); !s.ok()) return s;
    auto down = packed(open, "down", open.down, open.down.rows, open.width);
    if (!down.ok()) return down.status();
    if (Status s = write(arrange(*down, options_.layout)); !s.ok()) return s;
    return stream_->write(std::as_bytes(std::span(&down->decode_scale, 1)));
  }

 private:
  Result<PackedMatrix> packed(const OpenLayer& open, const char* part, const Matrix& matrix, int64_t rows,
                              int64_t columns) {
    const auto progress = [&](int64_t done, int64_t total) { listener_.progress(open.layer.name, done, total); };
    auto out = quantize(matrix, rows, columns, progress);
    if (out.ok()) listener_.done(open.layer.name, part, *out);
    return out;
  }
  Status write(const Arranged& arranged) {
    if (Status s = stream_->write(std::as_bytes(std::span(arranged.codes))); !s.ok()) return s;
    return stream_->write(std::as_bytes(std::span(arranged.scales)));
  }

  SafetensorsStream* stream_;
  const PackOptions& options_;
  const PackListener& listener_;
};

}  // namespace

Status pack(const PackOptions& options, const PackListener& listener) {
  auto from = checkpoint::Checkpoint::open(options.input);
  if (!from.ok()) return from.status();
  std::vector<std::string> names = from->names();
  std::sort(names.begin(), names.end());
  auto found = find_layers(names, options.input);
  if (!found.ok()) return found.status();
  const auto gelu = gelu_form(options.input, *found, options.gelu);
  if (!gelu.ok()) return gelu.status();
  auto layers = expand_stacks(&*from, *found);
  if (!layers.ok()) return layers.status();
  std::optional<checkpoint::Checkpoint> statistics;
  if (!options.activations.empty()) {
    auto opened = checkpoint::Checkpoint::open(options.activations);
    if (!opened.ok()) return opened.status();
    statistics = std::move(*opened);
  }
  std::vector<OpenLayer> open;
  for (const Layer& layer : *layers) {
    auto one = open_layer(&*from, layer, options.input);
    if (!one.ok()) return one.status();
    if (statistics) {
      if (Status s = apply_prescale(&*statistics, options.alpha, options.input, &*one); !s.ok()) return s;
    }
    open.push_back(std::move(*one));
  }
  const Tag tag = make_tag(options.layout, *gelu, statistics.has_value());
  auto stream = SafetensorsStream::open(options.output, plan_of(open, options.layout), tag);
  if (!stream.ok()) return stream.status();
  LayerWriter writer(&*stream, options, listener);
  for (const OpenLayer& one : open) {
    if (Status s = writer.write(one); !s.ok()) return s;
  }
  return stream->finish();
}

}  // namespace isobit::cli
