"""geglu of isobit.torch: the calls as users make them, past PyTorch's dispatcher where that is allowed."""

from __future__ import annotations

import torch
from torch.autograd import forward_ad
from torch.autograd.function import once_differentiable

from .._abi import GELU
from . import _geglu as _ops
from ._call import PLAIN, direct, is_compiling, is_tracing, modes, refuse_distributed, refuse_tangents, transforms


class _Pair(torch.autograd.Function):
    """geglu past the dispatcher."""

    @staticmethod
    def forward(ctx, gate, up, gelu, round_gelu):
        ctx.save_for_backward(gate, up)
        ctx.gelu, ctx.round_gelu = gelu, round_gelu
        return _ops._forward(gate, up, gelu, round_gelu)

    @staticmethod
    @once_differentiable
    def backward(ctx, d_out):
        return *_ops._backward(d_out, *ctx.saved_tensors, ctx.gelu, ctx.round_gelu), None, None


class _Packed(torch.autograd.Function):
    """geglu_packed past the dispatcher."""

    @staticmethod
    def forward(ctx, x, gelu, layout, round_gelu):
        ctx.save_for_backward(x)
        ctx.options = gelu, layout, round_gelu
        return _ops._packed(x, gelu, layout, round_gelu)

    @staticmethod
    @once_differentiable
    def backward(ctx, d_out):
        return _ops._packed_backward(d_out, *ctx.saved_tensors, *ctx.options), None, None, None


def geglu(gate: torch.Tensor, up: torch.Tensor, *, gelu: str, round_gelu: bool = False) -> torch.Tensor:
    """gelu(gate) * up, element by element, in one kernel; fp32 inside, rounded once. Differentiable once.

    The result's bits depend on the two elements, the dtype and the options alone: the CPU and every GPU write the same.

    Args:
        gate: [..., I], bfloat16, float16 or float32, on the CPU or a CUDA device.
        up: shape, dtype and device of gate. Rows at any distance and the two columns of one [..., I, 2] tensor are
            taken as they are; other strides are copied first. Under autocast two dtypes are promoted to the wider.
        gelu: "tanh" or "erf"; there is no default.
        round_gelu: round gelu(gate) to the dtype before it is multiplied, as PyTorch's eager mode does.

    Returns:
        A new contiguous tensor with gate's shape and dtype.

    Raises:
        isobit.InvalidArgumentError (a ValueError): shapes, dtypes or devices that do not fit. TypeError: a DTensor.
        NotImplementedError: a dual tensor of forward mode.
    """
    # What direct() asks, written out and without gradients: every call into PyTorch is 0.05 us or more. What the shim
    # refuses goes the long way, which casts, copies or says what is wrong.
    if (
        _ops.by_shim is not None
        and not (is_compiling() or modes() or is_tracing())
        and transforms() is None
        and forward_ad._current_level < 0
        and type(gate) in PLAIN
        and type(up) in PLAIN
        and not (gate.requires_grad or up.requires_grad or gate.is_neg() or up.is_neg())
        and gate.is_contiguous()
    ):
        out = torch.empty_like(gate)
        try:
            _ops.by_shim(gate, up, out, GELU[gelu], round_gelu)
            return out
        except (KeyError, TypeError, ValueError, RuntimeError):
            pass
    if gate.dtype != up.dtype and torch.is_autocast_enabled(gate.device.type):
        wider = torch.promote_types(gate.dtype, up.dtype)
        gate, up = gate.to(wider), up.to(wider)
    if not direct(gate, up):
        refuse_distributed("geglu", gate=gate, up=up)
        refuse_tangents("geglu", gate=gate, up=up)
        return torch.ops.isobit.geglu(gate, up, gelu, round_gelu)
    if torch.is_grad_enabled() and (gate.requires_grad or up.requires_grad):
        return _Pair.apply(gate, up, gelu, round_gelu)
    return _ops._forward(gate, up, gelu, round_gelu)


def geglu_packed(x: torch.Tensor, *, gelu: str, layout: str, round_gelu: bool = False) -> torch.Tensor:
    """geglu of the two halves of one tensor; the gradient is written as one tensor too.

    Args:
        x: [..., 2I], bfloat16, float16 or float32; copied first if it is not contiguous.
        layout: "stacked": gate is x[..., :I] and up x[..., I:]; "interleaved": gate is x[..., 0::2], up x[..., 1::2].
        gelu: as in geglu.
        round_gelu: as in geglu.

    Returns:
        A new contiguous tensor [..., I].
    """
    if not direct(x):
        refuse_distributed("geglu_packed", x=x)
        refuse_tangents("geglu_packed", x=x)
        return torch.ops.isobit.geglu_packed(x, gelu, layout, round_gelu)
    if torch.is_grad_enabled() and x.requires_grad:
        return _Packed.apply(x, gelu, layout, round_gelu)
    return _ops._packed(x, gelu, layout, round_gelu)
