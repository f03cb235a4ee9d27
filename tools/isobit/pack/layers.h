// Which gated MLPs a checkpoint holds, by the names of its tensors.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/status.h"
#include "pack/matrix.h"

namespace isobit::cli {

// One gated MLP. `name` is what its packed tensors are called after.
struct Layer {
  std::string name;
  MatrixName gate, up, down;
};

// Layers in the order of the names. Known spellings:
//   *.mlp.{gate,up,down}_proj                        Hugging Face Gemma 1 to 3, PaliGemma, openpi and lerobot in
//   PyTorch
//   *.DenseReluDense.{wi_0,wi_1,wo}                  T5 v1.1
//   *mlp*{/,.}gating_einsum [L, 2, H, I], *linear    openpi in JAX; needs the shapes, so it is split in expand_stacks
//   the same with [2, H, I] or [2, I, H]             Gemma in JAX, a layer each
// A projection's data is NAME.weight, or what ModelOpt and compressed-tensors put in its place.
// Nothing found is a refusal that names the plain MLPs or the first tensors that are there.
checkpoint::Result<std::vector<Layer>> find_layers(const std::vector<std::string>& names, const std::string& path);

// The form of GELU: what the caller asks for, checked against the config.json beside the weights. An architecture whose
// MLP is known not to be GeGLU is refused by its name; one that nobody knows needs `wanted`.
checkpoint::Result<std::string> gelu_form(const std::string& path, const std::vector<Layer>& layers,
                                          const std::string& wanted);

}  // namespace isobit::cli
