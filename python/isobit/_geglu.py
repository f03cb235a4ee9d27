"""geglu of isobit/geglu.h on NumPy arrays."""

from __future__ import annotations

import ctypes

import numpy as np

from ._abi import GELU, GegluBackwardArgs, GegluForwardArgs, code, start
from ._library import check, library
from ._tensor import require_writeable, view


def make(kind, arrays: dict, gelu: str, *, round_gelu: bool, kernel: str | None = None, threads: int = 0, view=view):
    """The args struct of a call; `view` makes an isobit_tensor of a name and an array."""
    args = start(kind, kernel, threads)
    args.gelu, args.round_gelu = code(GELU, "gelu", gelu), int(round_gelu)
    for name, array in arrays.items():
        setattr(args, name, view(name, array))
    return args


def geglu(
    gate: np.ndarray,
    up: np.ndarray,
    *,
    gelu: str,
    round_gelu: bool = False,
    out: np.ndarray | None = None,
    kernel: str | None = None,
    threads: int = 0,
) -> np.ndarray:
    """gelu(gate) * up, element by element; fp32 inside, rounded once.

    Args:
        gate: [..., I], 1 to 4 dimensions, bfloat16 (uint16 bits), float16 or float32.
        up: shape and dtype of gate. The two are separate arrays, the halves of one [..., 2I] array, or the two columns
            of one [..., I, 2] array.
        gelu: "tanh" or "erf"; there is no default.
        round_gelu: round gelu(gate) to the dtype before it is multiplied, as PyTorch's eager mode does.
        out: where to write, shape and dtype of gate, overlapping neither; None: a new array.
        kernel: a row of ``kernels()``; None: the first that fits.
        threads: number of threads; 0: OpenMP's default. Never changes a bit.

    Returns:
        out.

    Raises:
        InvalidArgumentError (a ValueError), Error: the library's message. TypeError: not an array of a known dtype.
    """
    out = np.empty(gate.shape, gate.dtype) if out is None else out
    require_writeable(out=out)
    args = make(
        GegluForwardArgs,
        {"gate": gate, "up": up, "out": out},
        gelu,
        round_gelu=round_gelu,
        kernel=kernel,
        threads=threads,
    )
    check(library.isobit_geglu_forward(ctypes.byref(args), None))
    return out


def geglu_backward(
    d_out: np.ndarray,
    gate: np.ndarray,
    up: np.ndarray,
    *,
    gelu: str,
    round_gelu: bool = False,
    d_gate: np.ndarray | None = None,
    d_up: np.ndarray | None = None,
    in_place: bool = False,
    kernel: str | None = None,
    threads: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Gradients (d_gate, d_up) of geglu: d_out * up * gelu'(gate) and d_out * gelu(gate).

    Arguments as in geglu; d_out has the shape and dtype of gate. d_gate and d_up overlap nothing else, unless in_place
    is true: d_gate is then gate itself and d_up is up itself, whose values are lost.
    """
    if in_place:
        d_gate, d_up = gate, up
    d_gate = np.empty(gate.shape, gate.dtype) if d_gate is None else d_gate
    d_up = np.empty(gate.shape, gate.dtype) if d_up is None else d_up
    require_writeable(d_gate=d_gate, d_up=d_up)
    arrays = {"gate": gate, "up": up, "d_out": d_out, "d_gate": d_gate, "d_up": d_up}
    args = make(GegluBackwardArgs, arrays, gelu, round_gelu=round_gelu, kernel=kernel, threads=threads)
    args.in_place = int(in_place)
    check(library.isobit_geglu_backward(ctypes.byref(args), None))
    return d_gate, d_up
