"""torch.ops.isobit.nvfp4_*: schemas, CPU and CUDA implementations, fake tensors; and an MLP made of them."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import torch

from .._abi import GELU, LAYOUTS, Nvfp4GegluArgs, Nvfp4LinearArgs, Nvfp4Matrix, Nvfp4QuantizeArgs, Nvfp4Scale, code
from .._library import library
from . import _call
from ._call import add_workspace, direct, offset, put, refuse_distributed, run, shim, template

_KINDS = {kind: template(kind) for kind in (Nvfp4QuantizeArgs, Nvfp4LinearArgs, Nvfp4GegluArgs)}
_CODES, _SCALES = Nvfp4Matrix.codes.offset, Nvfp4Matrix.scales.offset
_TILE = {"linear": (1, 1), "128x4": (128, 4), "8x4": (8, 4)}  # rows and blocks that a scale buffer is padded to

by_shim = shim

_MATRIX = "Tensor {0}_codes, Tensor {0}_scales, str {0}_layout"
_SCALE = "float {0}, Tensor? {0}_tensor"
_lib = torch.library.Library("isobit", "FRAGMENT")
_lib.define(f"nvfp4_quantize(Tensor x, {_SCALE.format('global_scale')}, str layout) -> (Tensor, Tensor)")
_lib.define(
    f"nvfp4_linear({_MATRIX.format('x')}, {_MATRIX.format('weight')}, {_SCALE.format('x_scale')}, "
    f"{_SCALE.format('weight_scale')}, ScalarType dtype) -> Tensor"
)
_lib.define(
    f"nvfp4_geglu({_MATRIX.format('x')}, {_MATRIX.format('weight')}, {_SCALE.format('x_scale')}, "
    f"{_SCALE.format('gate_scale')}, {_SCALE.format('up_scale')}, {_SCALE.format('out_scale')}, str gelu, str layout) "
    "-> (Tensor, Tensor)"
)


def _scales_shape(rows, blocks, layout: str):
    code(LAYOUTS, "layout", layout)
    tile_rows, tile_blocks = _TILE[layout]
    return ((rows + tile_rows - 1) // tile_rows * tile_rows, (blocks + tile_blocks - 1) // tile_blocks * tile_blocks)


def _new_matrix(like: torch.Tensor, lead, columns, layout: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Memory for a packed matrix [*lead, columns]."""
    rows = 1
    for size in lead:
        rows = rows * size
    codes = like.new_empty((*lead, columns // 2), dtype=torch.uint8)
    return codes, like.new_empty(_scales_shape(rows, columns // 16, layout), dtype=torch.uint8)


def _put_matrix(args, name: str, codes, scales, layout: str) -> None:
    at = offset(type(args), name)
    put(args, at + _CODES, f"{name}.codes", codes)
    put(args, at + _SCALES, f"{name}.scales", scales)
    getattr(args, name).layout = code(LAYOUTS, f"{name}.layout", layout)


def _put_scale(args, name: str, value: float, tensor: torch.Tensor | None) -> None:
    getattr(args, name).value = value
    if tensor is not None:
        put(args, offset(type(args), name) + Nvfp4Scale.tensor.offset, name, tensor)


def _finish(args: ctypes.Structure, name: str, device: torch.device) -> None:
    keep = add_workspace(getattr(library, f"{name}_workspace"), args, device)
    run(getattr(library, name), args, device)
    del keep


def _quantize(x, global_scale: float, global_scale_tensor, layout: str):
    if x.stride(-1) != 1:
        x = x.contiguous()
    out = _new_matrix(x, x.shape[:-1], x.shape[-1], layout)
    if by_shim is not None:
        by_shim.nvfp4_quantize(x, global_scale, global_scale_tensor, *out, code(LAYOUTS, "layout", layout))
        return out
    args = Nvfp4QuantizeArgs.from_buffer_copy(_KINDS[Nvfp4QuantizeArgs])
    put(args, Nvfp4QuantizeArgs.x.offset, "x", x)
    _put_scale(args, "global_scale", global_scale, global_scale_tensor)
    _put_matrix(args, "out", *out, layout)
    run(library.isobit_nvfp4_quantize, args, x.device)
    return out


def _linear(x_codes, x_scales, x_layout: str, weight_codes, weight_scales, weight_layout: str, x_scale: float,
            x_scale_tensor, weight_scale: float, weight_scale_tensor, dtype):  # fmt: skip
    out = x_codes.new_empty((*x_codes.shape[:-1], weight_codes.shape[0]), dtype=dtype)
    if by_shim is not None and _call.most_workspace is None:
        layouts = code(LAYOUTS, "x.layout", x_layout), code(LAYOUTS, "weight.layout", weight_layout)
        by_shim.nvfp4_linear(x_codes, x_scales, layouts[0], weight_codes, weight_scales, layouts[1], x_scale,
                             x_scale_tensor, weight_scale, weight_scale_tensor, out, None)  # fmt: skip
        return out
    args = Nvfp4LinearArgs.from_buffer_copy(_KINDS[Nvfp4LinearArgs])
    _put_matrix(args, "x", x_codes, x_scales, x_layout)
    _put_matrix(args, "weight", weight_codes, weight_scales, weight_layout)
    _put_scale(args, "x_scale", x_scale, x_scale_tensor)
    _put_scale(args, "weight_scale", weight_scale, weight_scale_tensor)
    put(args, Nvfp4LinearArgs.out.offset, "out", out)
    _finish(args, "isobit_nvfp4_linear", x_codes.device)
    return out


def _geglu(x_codes, x_scales, x_layout: str, weight_codes, weight_scales, weight_layout: str, x_scale: float,
           x_scale_tensor, gate_scale: float, gate_scale_tensor, up_scale: float, up_scale_tensor, out_scale: float,
           out_scale_tensor, gelu: str, layout: str):  # fmt: skip
    out = _new_matrix(x_codes, x_codes.shape[:-1], weight_codes.shape[0] // 2, layout)
    if by_shim is not None and _call.most_workspace is None:
        layouts = code(LAYOUTS, "x.layout", x_layout), code(LAYOUTS, "weight.layout", weight_layout)
        by_shim.nvfp4_geglu(x_codes, x_scales, layouts[0], weight_codes, weight_scales, layouts[1], x_scale,
                            x_scale_tensor, gate_scale, gate_scale_tensor, up_scale, up_scale_tensor, out_scale,
                            out_scale_tensor, code(GELU, "gelu", gelu), *out, LAYOUTS[layout], None)  # fmt: skip
        return out
    args = Nvfp4GegluArgs.from_buffer_copy(_KINDS[Nvfp4GegluArgs])
    _put_matrix(args, "x", x_codes, x_scales, x_layout)
    _put_matrix(args, "weight", weight_codes, weight_scales, weight_layout)
    _put_scale(args, "x_scale", x_scale, x_scale_tensor)
    _put_scale(args, "gate_scale", gate_scale, gate_scale_tensor)
    _put_scale(args, "up_scale", up_scale, up_scale_tensor)
    _put_scale(args, "out_scale", out_scale, out_scale_tensor)
    _put_matrix(args, "out", *out, layout)
    args.gelu = code(GELU, "gelu", gelu)
    _finish(args, "isobit_nvfp4_geglu", x_codes.device)
    return out


for _name, _function in (("nvfp4_quantize", _quantize), ("nvfp4_linear", _linear), ("nvfp4_geglu", _geglu)):
    for _key in ("CPU", "CUDA"):
        _lib.impl(_name, _function, _key)


@torch.library.register_fake("isobit::nvfp4_quantize", lib=_lib)
def _(x, global_scale, global_scale_tensor, layout):
    return _new_matrix(x, x.shape[:-1], x.shape[-1], layout)


@torch.library.register_fake("isobit::nvfp4_linear", lib=_lib)
def _(x_codes, x_scales, x_layout, weight_codes, weight_scales, weight_layout, x_scale, x_scale_tensor, weight_scale,
      weight_scale_tensor, dtype):  # fmt: skip
    return x_codes.new_empty((*x_codes.shape[:-1], weight_codes.shape[0]), dtype=dtype)


@torch.library.register_fake("isobit::nvfp4_geglu", lib=_lib)
def _(x_codes, x_scales, x_layout, weight_codes, weight_scales, weight_layout, x_scale, x_scale_tensor, gate_scale,
      gate_scale_tensor, up_scale, up_scale_tensor, out_scale, out_scale_tensor, gelu, layout):  # fmt: skip
    return _new_matrix(x_codes, x_codes.shape[:-1], weight_codes.shape[0] // 2, layout)


Scale = float | torch.Tensor


def _both(scale: Scale) -> tuple[float, torch.Tensor | None]:
    return (1.0, scale) if isinstance(scale, torch.Tensor) else (float(scale), None)


class Matrix(NamedTuple):
    """A packed matrix [..., K] (isobit/nvfp4.h). ``layout`` of the block scales: "linear", "128x4" or "8x4"."""

    codes: torch.Tensor  # [..., K/2] uint8, the even column in the low nibble
    scales: torch.Tensor  # [padded rows, padded blocks] uint8, E4M3
    layout: str = "128x4"


def nvfp4_quantize(x: torch.Tensor, *, global_scale: Scale = 1.0, layout: str = "128x4") -> Matrix:
    """Packs x [..., K] (bfloat16, float16 or float32), K a positive multiple of 16. No gradient.

    global_scale is an *encode* scale, usually 2688 / amax of the tensor: a number, or a float32 tensor of one element
    on x's device, which is read when the kernel runs. A block's bytes depend on its 16 values and this scale alone.
    """
    refuse_distributed("nvfp4_quantize", x=x)
    call = _quantize if direct(x) else torch.ops.isobit.nvfp4_quantize
    return Matrix(*call(x.detach(), *_both(global_scale), layout), layout)


def nvfp4_linear(
    x: Matrix, weight: Matrix, *, x_scale: Scale = 1.0, weight_scale: Scale = 1.0, dtype: torch.dtype = torch.bfloat16
) -> torch.Tensor:
    """x [..., K] times weight [N, K], both packed: [..., N] in bfloat16 or float32. No gradient.

    x_scale and weight_scale are *decode* scales, numbers or float32 tensors of one element.
    """
    call = _linear if direct(x.codes, weight.codes) else torch.ops.isobit.nvfp4_linear
    return call(*x, *weight, *_both(x_scale), *_both(weight_scale), dtype)


def nvfp4_geglu(
    x: Matrix,
    weight: Matrix,
    *,
    gelu: str,
    x_scale: Scale = 1.0,
    gate_scale: Scale = 1.0,
    up_scale: Scale = 1.0,
    out_scale: Scale = 1.0,
    layout: str = "128x4",
) -> Matrix:
    """gelu(x gate) * (x up), packed: x [..., K], weight [2I, K] with rows gate 0, up 0, gate 1, up 1, ...; [..., I].

    gelu is "tanh" or "erf", without a default. x_scale, gate_scale and up_scale are *decode* scales; out_scale is the
    *encode* scale of the output, and nvfp4_linear takes its reciprocal as x_scale. No gradient.
    """
    scales = (*_both(x_scale), *_both(gate_scale), *_both(up_scale), *_both(out_scale))
    call = _geglu if direct(x.codes, weight.codes) else torch.ops.isobit.nvfp4_geglu
    return Matrix(*call(*x, *weight, *scales, gelu, layout), layout)
