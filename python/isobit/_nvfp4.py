"""nvfp4_quantize, nvfp4_geglu and nvfp4_linear of isobit/nvfp4_*.h on NumPy arrays."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np

from . import _abi
from ._abi import GELU, LAYOUTS, code, start
from ._library import check, library
from ._tensor import aligned_bytes, view


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
                ctypes.c_int32(code(LAYOUTS, "layout", layout)),
                ctypes.c_int64(count),
                ctypes.c_int64(shape[-1]),
                ctypes.byref(rows),
                ctypes.byref(blocks),
            )
        )
        codes = np.empty((*shape[:-1], shape[-1] // 2), np.uint8)
        return cls(codes, np.empty((rows.value, blocks.value), np.uint8), layout)


def _matrix(name: str, matrix: Nvfp4Matrix) -> _abi.Nvfp4Matrix:
    return _abi.Nvfp4Matrix(
        view(f"{name}.codes", matrix.codes),
        view(f"{name}.scales", matrix.scales),
        code(LAYOUTS, "layout", matrix.layout),
    )


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
    args = start(_abi.Nvfp4QuantizeArgs, kernel, threads)
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
    args = start(_abi.Nvfp4LinearArgs, kernel, threads)
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
    form = code(GELU, "gelu", gelu)
    out = Nvfp4Matrix.empty((*x.codes.shape[:-1], weight.codes.shape[0] // 2), layout)
    args = start(_abi.Nvfp4GegluArgs, kernel, threads)
    args.x, args.weight = _matrix("x", x), _matrix("weight", weight)
    args.x_scale.value, args.gate_scale.value, args.up_scale.value = x_scale, gate_scale, up_scale
    args.out_scale.value = out_scale
    args.out = _matrix("out", out)
    args.gelu = form
    _run(args, "isobit_nvfp4_geglu")
    return out
