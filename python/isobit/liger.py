"""Liger Kernel's names for GeGLU: a line of an import changes, nothing else.

Values differ from Liger's in the last bits only, and in two respects on purpose: the backward pass leaves the saved
tensors as they are, where Liger writes the gradients over them, and the bits do not depend on the block size.
"""

from __future__ import annotations

import torch
from torch.autograd.function import once_differentiable

from .torch import _geglu

__all__ = ["LigerGELUMulFunction", "geglu_backward", "geglu_forward"]


def geglu_forward(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(a, b, gelu(a) * b), the tanh form; a and b [..., I] bfloat16, float16 or float32."""
    return a, b, torch.ops.isobit.geglu(a.detach(), b.detach(), "tanh")


def geglu_backward(a: torch.Tensor, b: torch.Tensor, dc: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of a and b as new tensors."""
    return torch.ops.isobit.geglu_backward(dc, a, b, "tanh")


class LigerGELUMulFunction(torch.autograd.Function):
    """``LigerGELUMulFunction.apply(a, b)``: gelu(a) * b, the tanh form."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return _geglu._forward(a, b, "tanh")

    @staticmethod
    @once_differentiable
    def backward(ctx, dc):
        return _geglu._backward(dc, *ctx.saved_tensors, "tanh")
