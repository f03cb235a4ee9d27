"""torch.ops.isobit.geglu and its packed form: schemas, CPU and CUDA implementations, fake tensors, gradients."""

from __future__ import annotations

import torch

from .._abi import GELU, GegluBackwardArgs, GegluForwardArgs, code
from .._library import library
from ._call import offset, put, rows, run, shim, template

_FORWARD, _BACKWARD = template(GegluForwardArgs), template(GegluBackwardArgs)
_FORWARD_AT = {name: offset(GegluForwardArgs, name) for name in ("gate", "up", "out")}
_BACKWARD_AT = {name: offset(GegluBackwardArgs, name) for name in ("gate", "up", "d_out", "d_gate", "d_up")}
_FORMS = ("stacked", "interleaved")
by_shim = shim.geglu_forward if shim else None
_backward_by_shim = shim.geglu_backward if shim else None

_lib = torch.library.Library("isobit", "FRAGMENT")
_lib.define("geglu(Tensor gate, Tensor up, str gelu, bool round_gelu=False) -> Tensor")
_lib.define("geglu_backward(Tensor d_out, Tensor gate, Tensor up, str gelu, bool round_gelu=False) -> (Tensor, Tensor)")
_lib.define("geglu_packed(Tensor x, str gelu, str layout, bool round_gelu=False) -> Tensor")
_lib.define("geglu_packed_backward(Tensor d_out, Tensor x, str gelu, str layout, bool round_gelu=False) -> Tensor")
_lib.define("geglu_out(Tensor gate, Tensor up, str gelu, bool round_gelu=False, *, Tensor(a!) out) -> ()")


def _alternate(gate: torch.Tensor, up: torch.Tensor) -> bool:
    """Whether the two are the columns of one [..., I, 2] buffer, which the library takes as they are."""
    return (
        gate.stride() == up.stride()
        and gate.stride(-1) == 2
        and abs(gate.data_ptr() - up.data_ptr()) == gate.element_size()
    )


def _like(tensor: torch.Tensor) -> torch.Tensor:
    """A new contiguous tensor; of a contiguous one in half the time."""
    if tensor.is_contiguous():
        return torch.empty_like(tensor)
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """At most four dimensions, which is what an isobit_tensor holds."""
    return tensor if 0 < tensor.dim() <= 4 else tensor.reshape(-1, tensor.shape[-1] if tensor.dim() else 1)


def _pair(gate: torch.Tensor, up: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    if gate.is_contiguous() and up.is_contiguous():
        return _flat(gate), _flat(up)
    gate, up = _flat(gate), _flat(up)
    if gate.dim() <= 2 and _alternate(gate, up):
        return gate, up
    return rows(gate), rows(up)


def _write(gate, up, out, gelu: str, round_gelu: bool) -> None:
    if by_shim is not None:
        by_shim(gate, up, out, code(GELU, "gelu", gelu), round_gelu)
        return
    args = GegluForwardArgs.from_buffer_copy(_FORWARD)
    args.gelu, args.round_gelu = code(GELU, "gelu", gelu), round_gelu
    put(args, _FORWARD_AT["gate"], "gate", gate)
    put(args, _FORWARD_AT["up"], "up", up)
    put(args, _FORWARD_AT["out"], "out", out)
    run(library.isobit_geglu_forward, args, gate.device)


def _write_gradients(d_out, gate, up, d_gate, d_up, gelu: str, round_gelu: bool) -> None:
    d_out = rows(d_out)  # a copy has to live until the call
    if _backward_by_shim is not None:
        _backward_by_shim(d_out, gate, up, d_gate, d_up, code(GELU, "gelu", gelu), round_gelu)
        return
    args = GegluBackwardArgs.from_buffer_copy(_BACKWARD)
    args.gelu, args.round_gelu = code(GELU, "gelu", gelu), round_gelu
    put(args, _BACKWARD_AT["gate"], "gate", gate)
    put(args, _BACKWARD_AT["up"], "up", up)
    put(args, _BACKWARD_AT["d_out"], "d_out", d_out)
    put(args, _BACKWARD_AT["d_gate"], "d_gate", d_gate)
    put(args, _BACKWARD_AT["d_up"], "d_up", d_up)
    run(library.isobit_geglu_backward, args, gate.device)


def _forward(gate, up, gelu: str, round_gelu: bool = False) -> torch.Tensor:
    out = _like(gate)
    gate, up = _pair(gate, up)
    _write(gate, up, _flat(out), gelu, round_gelu)
    return out


def _forward_out(gate, up, gelu: str, round_gelu: bool = False, *, out) -> None:
    gate, up = _pair(gate, up)
    # A view, never a copy: that would be written in the place of out.
    _write(gate, up, out if 0 < out.dim() <= 4 else out.view(-1, out.shape[-1] if out.dim() else 1), gelu, round_gelu)


def _backward(d_out, gate, up, gelu: str, round_gelu: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    d_gate, d_up = _like(gate), _like(gate)
    gate, up = _pair(gate, up)
    _write_gradients(_flat(d_out), gate, up, _flat(d_gate), _flat(d_up), gelu, round_gelu)
    return d_gate, d_up


def _halves(x: torch.Tensor, layout: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Views [R, I] of gate and up in a contiguous x [..., 2I]."""
    width = x.shape[-1] // 2
    if layout == "stacked":
        x = x.view(-1, 2 * width)
        return x[:, :width], x[:, width:]
    x = x.view(-1, width, 2)
    return x[:, :, 0], x[:, :, 1]


def _packed_shape(x: torch.Tensor, layout: str) -> list[int]:
    if layout not in _FORMS:
        raise ValueError(f"layout: expected {' or '.join(map(repr, _FORMS))}, got {layout!r}")
    if x.dim() == 0 or x.shape[-1] % 2:
        raise ValueError(f"x: expected an even last dimension [..., 2I], got the shape {list(x.shape)}")
    return [*x.shape[:-1], x.shape[-1] // 2]


def _packed(x, gelu: str, layout: str, round_gelu: bool = False) -> torch.Tensor:
    out = torch.empty(_packed_shape(x, layout), dtype=x.dtype, device=x.device)
    if out.numel():
        gate, up = _halves(x.contiguous(), layout)
        _write(gate, up, out.view(gate.shape), gelu, round_gelu)
    return out


def _packed_backward(d_out, x, gelu: str, layout: str, round_gelu: bool = False) -> torch.Tensor:
    d_x = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if d_x.numel():
        gate, up = _halves(x.contiguous(), layout)
        d_gate, d_up = _halves(d_x, layout)
        _write_gradients(d_out.reshape(gate.shape), gate, up, d_gate, d_up, gelu, round_gelu)
    return d_x


for _name, _function in (("geglu", _forward), ("geglu_backward", _backward), ("geglu_out", _forward_out),
                         ("geglu_packed", _packed), ("geglu_packed_backward", _packed_backward)):  # fmt: skip
    for _key in ("CPU", "CUDA"):
        _lib.impl(_name, _function, _key)


@torch.library.register_fake("isobit::geglu", lib=_lib)
def _(gate, up, gelu, round_gelu=False):
    code(GELU, "gelu", gelu)
    torch._check(gate.shape == up.shape, lambda: f"up: expected gate's shape {gate.shape}, got {up.shape}")
    return gate.new_empty(gate.shape)


@torch.library.register_fake("isobit::geglu_out", lib=_lib)
def _(gate, up, gelu, round_gelu=False, *, out):
    code(GELU, "gelu", gelu)


@torch.library.register_fake("isobit::geglu_backward", lib=_lib)
def _(d_out, gate, up, gelu, round_gelu=False):
    return gate.new_empty(gate.shape), gate.new_empty(gate.shape)


@torch.library.register_fake("isobit::geglu_packed", lib=_lib)
def _(x, gelu, layout, round_gelu=False):
    code(GELU, "gelu", gelu)
    return x.new_empty(_packed_shape(x, layout))


@torch.library.register_fake("isobit::geglu_packed_backward", lib=_lib)
def _(d_out, x, gelu, layout, round_gelu=False):
    return x.new_empty(x.shape)


def _save_pair(ctx, inputs, output):
    gate, up, ctx.gelu, ctx.round_gelu = inputs
    ctx.save_for_backward(gate, up)


def _pair_gradients(ctx, d_out):
    d_gate, d_up = torch.ops.isobit.geglu_backward(d_out, *ctx.saved_tensors, ctx.gelu, ctx.round_gelu)
    return d_gate, d_up, None, None


def _save_packed(ctx, inputs, output):
    x, ctx.gelu, ctx.layout, ctx.round_gelu = inputs
    ctx.save_for_backward(x)


def _packed_gradients(ctx, d_out):
    (x,) = ctx.saved_tensors
    return torch.ops.isobit.geglu_packed_backward(d_out, x, ctx.gelu, ctx.layout, ctx.round_gelu), None, None, None


def _no_second(ctx, *gradients):
    raise NotImplementedError("isobit.geglu has no second derivatives")


torch.library.register_autograd("isobit::geglu", _pair_gradients, setup_context=_save_pair, lib=_lib)
torch.library.register_autograd("isobit::geglu_packed", _packed_gradients, setup_context=_save_packed, lib=_lib)
torch.library.register_autograd("isobit::geglu_backward", _no_second, lib=_lib)
torch.library.register_autograd("isobit::geglu_packed_backward", _no_second, lib=_lib)
