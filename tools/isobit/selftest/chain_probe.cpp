#include "selftest/chain_probe.h"

#include <fmt/format.h>

#include <stdexcept>

#include "arrays.h"
#include "device/mma_chains.h"
#include "selftest/chain_inputs.h"
#include "selftest/chain_kernels.h"
#include "selftest/hex.h"
#include "selftest/mma_rule.h"

namespace isobit::cli {
namespace {

using numerics::Bf16;
using numerics::Fp16;
using numerics::MmaTerm;

constexpr isobit_dtype kDtypes[] = {ISOBIT_BF16, ISOBIT_FP16};
constexpr ChainSet kSets[] = {ChainSet::kRandom, ChainSet::kBits};

struct Form {
  const char* name;
  const char* devices;
  bool (*takes)(int32_t capability);  // asked first: a launch without an image is an error of the runtime
  ChainKernel (*kernel)(isobit_dtype dtype);
};
constexpr Form kForms[] = {
    {"mma.sync.m16n8k16", "8.0 and newer", [](int32_t c) { return c >= 80; }, mma_sync_kernel},
    {"wgmma.m64n16k16", "9.0", [](int32_t c) { return c == 90; }, wgmma_kernel},
    {"tcgen05.mma.m128n16k16 kind::f16", "10.0, 10.3 and 11.0",
     [](int32_t c) { return c == 100 || c == 103 || c == 110; }, tensor_core_kernel},
};

size_t at(int row, int column) { return static_cast<size_t>(row * ChainInputs::kColumns + column); }

// Calls body(row, column, a, b, c) for every output.
template <class Body>
void for_each_output(const ChainInputs& x, const Body& body) {
  for (int row = 0; row < ChainInputs::kRows; ++row) {
    for (int column = 0; column < ChainInputs::kColumns; ++column) {
      body(row, column, x.a.data() + static_cast<ptrdiff_t>(row) * ChainInputs::kDepth,
           x.b.data() + static_cast<ptrdiff_t>(column) * ChainInputs::kDepth, x.c[at(row, column)]);
    }
  }
}

template <class Format>
int64_t count_differing(const ChainInputs& x, const std::vector<uint32_t>& outputs) {
  int64_t differing = 0;
  for_each_output(x, [&](int row, int column, const uint16_t* a, const uint16_t* b, float c) {
    differing += numerics::float_bits(numerics::hopper_mma_step<Format>(c, a, b)) != outputs[at(row, column)];
  });
  return differing;
}

// Finite outputs only: infinities and NaN say nothing of the alignment.
template <class Format>
void add_samples(const ChainInputs& x, const std::vector<uint32_t>& outputs, std::vector<RuleSample>* samples) {
  for_each_output(x, [&](int row, int column, const uint16_t* a, const uint16_t* b, float c) {
    float special;
    if (numerics::mma_special<Format>(c, a, b, &special)) return;
    RuleSample sample;
    sample.c = c;
    sample.output = outputs[at(row, column)];
    for (int i = 0; i < ChainInputs::kDepth; ++i) {
      const MmaTerm p = numerics::mma_term<Format>(a[i]), q = numerics::mma_term<Format>(b[i]);
      sample.terms.push_back(
          {p.significand * q.significand, p.exponent + q.exponent, p.fraction_bits + q.fraction_bits});
    }
    samples->push_back(std::move(sample));
  });
}

// False if the kernel has no image for the device.
bool run(Place place, const ChainKernel& kernel, const ChainInputs& x, std::vector<uint32_t>* outputs) {
  const Buffer a(place, x.a.size() * 2), b(place, x.b.size() * 2), c(place, x.c.size() * 4), d(place, x.c.size() * 4);
  a.upload(x.a.data(), a.bytes());
  b.upload(x.b.data(), b.bytes());
  c.upload(x.c.data(), c.bytes());
  d.fill(0xA5);
  device::MmaChains chains{static_cast<const uint16_t*>(a.data()),
                           static_cast<const uint16_t*>(b.data()),
                           static_cast<const float*>(c.data()),
                           static_cast<float*>(d.data()),
                           ChainInputs::kRows,
                           ChainInputs::kColumns,
                           ChainInputs::kDepth,
                           ChainInputs::kColumns,
                           1};
  void* arguments[] = {&chains};
  if (!launch_on_device(place.id, kernel.kernel, kernel.grid, arguments)) return false;
  outputs->resize(x.c.size());
  d.download(outputs->data(), d.bytes());
  return true;
}

// `capability` of the place's device, 0 for the CPU.
ChainProbe probe(Place place, int32_t capability, const Form& form, isobit_dtype dtype) {
  ChainProbe out;
  out.form = form.name;
  out.dtype = dtype;
  const ChainKernel kernel = form.kernel(dtype);
  if (place.type == ISOBIT_CPU) {
    out.reason = "no CUDA device";
  } else if (!form.takes(capability)) {
    out.reason = fmt::format("the instruction is one of compute capability {}", form.devices);
  } else if (kernel.kernel == nullptr) {
    out.reason = fmt::format("this build has no image of it (compute capability {})", form.devices);
  }
  if (!out.ran()) return out;
  try {
    for (const ChainSet set : kSets) {
      const ChainInputs x = chain_inputs(set, dtype);
      std::vector<uint32_t>& outputs = set == ChainSet::kRandom ? out.random : out.bits;
      if (!run(place, kernel, x, &outputs)) {
        out.reason = "this build has no image of it for this device";
        return out;
      }
      out.outputs += static_cast<int64_t>(outputs.size());
      out.differing += dtype == ISOBIT_BF16 ? count_differing<Bf16>(x, outputs) : count_differing<Fp16>(x, outputs);
    }
  } catch (const std::runtime_error& error) {
    out.reason = error.what();
  }
  return out;
}

std::vector<RuleFit> fits_of(const ChainProbe& probe) {
  std::vector<RuleSample> samples;
  for (const ChainSet set : kSets) {
    const ChainInputs x = chain_inputs(set, probe.dtype);
    const std::vector<uint32_t>& outputs = set == ChainSet::kRandom ? probe.random : probe.bits;
    probe.dtype == ISOBIT_BF16 ? add_samples<Bf16>(x, outputs, &samples) : add_samples<Fp16>(x, outputs, &samples);
  }
  constexpr int kGroups[] = {4, 8, 16};
  return fit_rules(samples, kGroups, 30, 4);
}

nlohmann::ordered_json inputs_json(isobit_dtype dtype) {
  nlohmann::ordered_json sets;
  for (const ChainSet set : kSets) {
    const ChainInputs x = chain_inputs(set, dtype);
    sets[set == ChainSet::kRandom ? "random" : "bits"] = {
        {"a", hex_of<uint16_t>(x.a)}, {"b", hex_of<uint16_t>(x.b)}, {"c", hex_of<float>(x.c)}};
  }
  return sets;
}

// The name of an earlier form that gave the same outputs stands for them.
nlohmann::ordered_json outputs_json(const ChainProbe& probe, const std::vector<ChainProbe>& probes) {
  for (const ChainProbe* earlier = probes.data(); earlier != &probe; ++earlier) {
    const bool same = earlier->ran() && earlier->dtype == probe.dtype && earlier->random == probe.random &&
                      earlier->bits == probe.bits;
    if (same) return earlier->form;
  }
  return {{"random", hex_of<uint32_t>(probe.random)}, {"bits", hex_of<uint32_t>(probe.bits)}};
}

}  // namespace

std::vector<ChainProbe> probe_chains(Place place) {
  const int32_t capability = place.type == ISOBIT_CPU ? 0 : device_facts(place.id).capability;
  std::vector<ChainProbe> probes;
  for (const Form& form : kForms) {
    for (const isobit_dtype dtype : kDtypes) probes.push_back(probe(place, capability, form, dtype));
  }
  return probes;
}

nlohmann::ordered_json describe_chains(const std::vector<ChainProbe>& probes) {
  nlohmann::ordered_json out = {{"rule", "sm90-k16-f25"},
                                {"inputs_version", ChainInputs::kVersion},
                                {"rows", ChainInputs::kRows},
                                {"columns", ChainInputs::kColumns},
                                {"depth", ChainInputs::kDepth},
                                {"inputs", nlohmann::ordered_json::object()},
                                {"forms", nlohmann::ordered_json::array()}};
  for (const ChainProbe& probe : probes) {
    nlohmann::ordered_json form = {{"form", probe.form}, {"dtype", dtype_text(probe.dtype)}};
    if (!probe.ran()) {
      form["state"] = "unsupported";
      form["reason"] = probe.reason;
    } else {
      form["state"] = probe.differing == 0 ? "follows" : "differs";
      form["outputs"] = probe.outputs;
      form["differing"] = probe.differing;
      out["inputs"][dtype_text(probe.dtype)] = inputs_json(probe.dtype);
      form["d"] = outputs_json(probe, probes);
      form["best_rules"] = nlohmann::ordered_json::array();
      for (const RuleFit& fit : fits_of(probe)) {
        form["best_rules"].push_back({{"rule", fit.rule.text()}, {"differing", fit.differing}});
      }
    }
    out["forms"].push_back(std::move(form));
  }
  return out;
}

}  // namespace isobit::cli
