"""Opt-in NVFP4 for the MLPs of a pi0.5 policy: the Gemma layers of its language model and of its action expert.

Works on any module tree that holds Transformers' Gemma MLPs (gate_proj, up_proj, down_proj), which is how LeRobot and
openpi's PyTorch port build the policy; their submodules are called language_model and gemma_expert.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence

import torch

from .torch import Nvfp4Mlp
from .transformers import _GEMMA, _form

__all__ = ["EXPERT", "LANGUAGE_MODEL", "quantize"]

EXPERT, LANGUAGE_MODEL = "gemma_expert", "language_model"


class _Largest:
    """Keeps the largest absolute values that an MLP's input and its hidden activation had."""

    def __init__(self, module: torch.nn.Module):
        self.input = self.hidden = 0.0
        self.handles = [
            module.register_forward_pre_hook(self._see_input),
            module.down_proj.register_forward_pre_hook(self._see_hidden),
        ]

    def _see_input(self, module, arguments):
        self.input = max(self.input, float(arguments[0].detach().abs().max()))

    def _see_hidden(self, module, arguments):
        self.hidden = max(self.hidden, float(arguments[0].detach().abs().max()))


def quantize(policy: torch.nn.Module, calibrate: Callable[[], object], names: Sequence[str] = (EXPERT,)) -> int:
    """Replaces the Gemma MLPs below submodules of these names by isobit.torch.Nvfp4Mlp. Inference only.

    calibrate() runs the policy on typical inputs; the largest activations that it shows become the fixed global scales.
    The attention and everything else keep their dtype.

    Returns:
        The number of MLPs that were replaced.

    Raises:
        ValueError: none was found, calibrate() did not run one of them, or its activation is not GELU.
    """
    found = {
        path: module
        for path, module in policy.named_modules()
        if type(module).__name__ in _GEMMA and set(names) & set(path.split("."))
    }
    if not found:
        raise ValueError(f"policy: expected Gemma MLPs below a submodule called {' or '.join(names)}, found none")
    largest = {path: _Largest(module) for path, module in found.items()}
    try:
        with torch.no_grad():
            calibrate()
    finally:
        for seen in largest.values():
            for handle in seen.handles:
                handle.remove()
    for path, seen in largest.items():
        if not (seen.input > 0 and seen.hidden > 0):
            raise ValueError(f"calibrate: expected it to run every MLP on values that are not 0; {path} saw none")
    for path, module in found.items():
        weights = [layer.weight.detach() for layer in (module.gate_proj, module.up_proj, module.down_proj)]
        packed = Nvfp4Mlp.from_weights(*weights, gelu=_form(module, module.act_fn), input_amax=largest[path].input,
                                       hidden_amax=largest[path].hidden)  # fmt: skip
        # LeRobot's and openpi's layers ask mlp.up_proj.weight.dtype to know what to cast the MLP's input to.
        packed.up_proj = types.SimpleNamespace(weight=torch.empty(0, dtype=weights[1].dtype))
        parent, _, name = path.rpartition(".")
        setattr(policy.get_submodule(parent), name, packed)
    return len(found)
