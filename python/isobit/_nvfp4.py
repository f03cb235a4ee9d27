"""nvfp4_quantize, nvfp4_geglu and nvfp4_linear of isobit/nvfp4_*.h on NumPy arrays."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np

from ._library import check, library
from ._tensor import Tensor, aligned_bytes, view

_LAYOUTS = {"linear": 0, "128x4": 1, "8x4": 2}
_GELU = {"tanh": 1, "erf": 2}


class _Matrix(ctypes.Structure):
    _fields_ = [("codes", Tensor), ("scales", Tensor), ("layout", ctypes.c_int32), ("reserved", ctypes.c_int32)]


class _Scale(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("value", ctypes.c_float), ("reserved", ctypes.c_int32)]


_HEAD = [("struct_size", ctypes.c_uint32), ("threads", ctypes.c_int32), ("kernel", ctypes.c_char_p)]
_WORKSPACE = [("workspace", ctypes.c_void_p), ("workspace_bytes", ctypes.c_size_t)]


class _QuantizeArgs(ctypes.Structure):
    _fields_ = [*_HEAD, ("x", Tensor), ("global_scale", _Scale), ("out", _Matrix)]


class _LinearArgs(ctypes.Structure):
    _fields_ = [
        *_HEAD,
        ("x", _Matrix),
        ("weight", _Matrix),
        ("x_scale", _Scale),
        ("weight_scale", _Scale),
        ("out", Tensor),
        *_WORKSPACE,
    ]


class _GegluArgs(ctypes.Structure):
    _fields_ = [
        *_HEAD,
        ("x", _Matrix),
        ("weight", _Matrix),
        ("x_scale", _Scale),
        ("gate_scale", _Scale),
        ("up_scale", _Scale),
        ("out_scale", _Scale),
        ("out", _Matrix),
        ("gelu", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        *_WORKSPACE,
    ]


@dataclass(frozen=True)
class Nvfp4Matrix:
    """A packed matrix [..., K]. ``layout``: "linear", "128x4" or "8x4"."""

    codes: np.ndarray  # [..., K/2] uint8, the even column in the low nibble
    scales: np.ndarray  # [padded rows, padded blocks] uint8, E4M3
    layout: str = "128x4"

    @classmethod
    def empty(cls, shape: tuple[int, ...], layout: str = "128x4") -> Nvfp4Matrix:
        """Unwritten memory for a matrix of this shape."""
        rows, blocks = ctypes.c_int64(), ctypes.c_int64()
        count = int(np.prod(shape[:-1], dtype=np.int64))
        check(
            library.isobit_nvfp4_scales_shape(
                ctypes.c_int32(_layout(layout)),
                ctypes.c_int64(count),
                ctypes.c_int64(shape[-1]),
                ctypes.byref(rows),
                ctypes.byref(blocks),
            )
        )
        codes = np.empty((*shape[:-1], shape[-1] // 2), np.uint8)
        return cls(codes, np.empty((rows.value, blocks.value), np.uint8), layout)


def _layout(name: str) -> int:
    if name not in _LAYOUTS:
        raise ValueError(f"layout: expected {' or '.join(map(repr, _LAYOUTS))}, got {name!r}")
    return _LAYOUTS[name]


def _matrix(name: str, matrix: Nvfp4Matrix) -> _Matrix:
    return _Matrix(view(f"{name}.codes", matrix.codes), view(f"{name}.scales", matrix.scales), _layout(matrix.layout))


def _start(kind, kernel: str | None, threads: int):
    args = kind(struct_size=ctypes.sizeof(kind), threads=threads)
    args.kernel = kernel.encode() if kernel is not None else None
    return args


def _run(args, name: str) -> None:
    """The call with a workspace of the recommended size."""
    size = ctypes.c_size_t()
    check(getattr(library, f"{name}_workspace")(ctypes.byref(args), None, ctypes.byref(size)))
    memory = aligned_bytes(size.value)
    args.workspace, args.workspace_bytes = memory.ctypes.data, size.value
    check(getattr(library, name)(ctypes.byref(args), None))


def nvfp4_quantize(
    x: np.ndarray,
    *,
    global_scale: float = 1.0,
    layout: str = "128x4",
    kernel: str | None = None,
    threads: int = 0,
) -> Nvfp4Matrix:
    """Packs x [..., K] (bfloat16 as uint16 bits, float16 or float32), K a positive multiple of 16.

    global_scale is an *encode* scale, usually 2688 / amax of the tensor; the decode scale is its reciprocal. Padding of
    the block scales is written as 0.
    """
    out = Nvfp4Matrix.empty(x.shape, layout)
    args = _start(_QuantizeArgs, kernel, threads)
    args.x = view("x", x)
    args.global_scale.value = global_scale
    args.out = _matrix("out", out)
    check(library.isobit_nvfp4_quantize(ctypes.byref(args), None))
    return out


def nvfp4_linear(
    x: Nvfp4Matrix,
    weight: Nvfp4Matrix,
    *,
    x_scale: float = 1.0,
    weight_scale: float = 1.0,
    dtype: type = np.float32,
    kernel: str | None = None,
    threads: int = 0,
) -> np.ndarray:
    """x [..., K] times weight [N, K], both packed: [..., N] in float32, or in bfloat16 bits for dtype uint16.

    x_scale and weight_scale are *decode* scales.
    """
    out = np.empty((*x.codes.shape[:-1], weight.codes.shape[0]), dtype)
    args = _start(_LinearArgs, kernel, threads)
    args.x, args.weight = _matrix("x", x), _matrix("weight", weight)
    args.x_scale.value, args.weight_scale.value = x_scale, weight_scale
    args.out = view("out", out)
    _run(args, "isobit_nvfp4_linear")
    return out


def nvfp4_geglu(
    x: Nvfp4Matrix,
    weight: Nvfp4Matrix,
    *,
    gelu: str,
    x_scale: float = 1.0,
    gate_scale: float = 1.0,
    up_scale: float = 1.0,
    out_scale: float = 1.0,
    layout: str = "128x4",
    kernel: str | None = None,
    threads: int = 0,
) -> Nvfp4Matrix:
    """gelu(x gate) * (x up), packed: x [..., K], weight [2I, K] with rows gate 0, up 0, gate 1, up 1, ...; [..., I].

    gelu is "tanh" or "erf", without a default. x_scale, gate_scale and up_scale are *decode* scales; out_scale is the
    *encode* scale of the output, and nvfp4_linear takes its reciprocal as x_scale.
    """
    if gelu not in _GELU:
        raise ValueError(f"gelu: expected {' or '.join(map(repr, _GELU))}, got {gelu!r}")
    out = Nvfp4Matrix.empty((*x.codes.shape[:-1], weight.codes.shape[0] // 2), layout)
    args = _start(_GegluArgs, kernel, threads)
    args.x, args.weight = _matrix("x", x), _matrix("weight", weight)
    args.x_scale.value, args.gate_scale.value, args.up_scale.value = x_scale, gate_scale, up_scale
    args.out_scale.value = out_scale
    args.out = _matrix("out", out)
    args.gelu = _GELU[gelu]
    _run(args, "isobit_nvfp4_geglu")
    return out
