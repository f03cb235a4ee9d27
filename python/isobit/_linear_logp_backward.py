"""The backward pass of linear_logp (isobit/linear_logp.h) on NumPy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ._abi import LinearLogpBackwardArgs, start
from ._library import check, library
from ._linear_logp import LinearLogp, fill, outputs_of
from ._tensor import address_of_bytes, aligned_bytes, require_writeable, view


class LinearLogpGradients(NamedTuple):
    """Gradients of linear_logp (N rows, H wide, V ids); None where one was not asked for."""

    hidden: np.ndarray | None = None  # [N, H]
    weight: np.ndarray | None = None  # [V, H]
    bias: np.ndarray | None = None  # [V]


_WANTED = LinearLogpGradients._fields


def _arguments(hidden, weight, target, outputs, *, kernel, threads, subtract_p, **options) -> LinearLogpBackwardArgs:
    args = start(LinearLogpBackwardArgs, kernel, threads)
    args.subtract_p = int(subtract_p)
    fill(args.forward, hidden, weight, target, outputs, **options)
    return args


def _run(name: str, args: LinearLogpBackwardArgs, limit: int | None) -> None:
    minimum, recommended = ctypes.c_size_t(), ctypes.c_size_t()
    sizes = (ctypes.byref(minimum), ctypes.byref(recommended))
    check(library.isobit_linear_logp_backward_workspace(ctypes.byref(args), *sizes))
    size = recommended.value if limit is None else min(recommended.value, limit)
    workspace = aligned_bytes(size)
    args.forward.workspace = workspace.ctypes.data
    args.forward.workspace_bytes = size
    check(getattr(library, name)(ctypes.byref(args), None))


def _saved_bytes(args: LinearLogpBackwardArgs) -> int:
    size = ctypes.c_size_t()
    check(library.isobit_linear_logp_saved_bytes(ctypes.byref(args), ctypes.byref(size)))
    return size.value


def linear_logp_save(
    hidden: np.ndarray,
    weight: np.ndarray,
    target: np.ndarray,
    *,
    bias: np.ndarray | None = None,
    temperature: float | np.ndarray = 1.0,
    softcap: float = 0.0,
    ignore_index: int | None = -100,
    vocab_size: int = 0,
    want: Sequence[str] = ("logp", "lse"),
    subtract_p: bool = False,
    kernel: str | None = None,
    threads: int = 0,
    workspace_limit: int | None = None,
) -> tuple[LinearLogp, np.ndarray]:
    """The forward pass of training: the outputs of linear_logp, and what linear_logp_backward needs of it.

    Arguments as in linear_logp; ``want`` is out of logp, lse, entropy. The second result, opaque bytes of a size that
    depends on N alone, spares the backward pass a pass over the vocabulary. subtract_p: see linear_logp_backward.
    """
    outputs = outputs_of(target, want, 0)
    args = _arguments(hidden, weight, target, outputs, bias=bias, temperature=temperature, softcap=softcap,
                      ignore_index=ignore_index, vocab_size=vocab_size, kernel=kernel, threads=threads,
                      subtract_p=subtract_p)  # fmt: skip
    saved = aligned_bytes(_saved_bytes(args))
    args.saved = saved.ctypes.data
    _run("isobit_linear_logp_save", args, workspace_limit)
    return outputs, saved


def linear_logp_backward(
    hidden: np.ndarray,
    weight: np.ndarray,
    target: np.ndarray,
    *,
    d_logp: np.ndarray | None = None,
    d_lse: np.ndarray | None = None,
    d_entropy: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    temperature: float | np.ndarray = 1.0,
    softcap: float = 0.0,
    ignore_index: int | None = -100,
    vocab_size: int = 0,
    want: Sequence[str] = ("hidden", "weight"),
    dtype: type[np.generic] = np.float32,
    accumulate: LinearLogpGradients | None = None,
    saved: np.ndarray | None = None,
    subtract_p: bool = False,
    kernel: str | None = None,
    threads: int = 0,
    workspace_limit: int | None = None,
) -> LinearLogpGradients:
    """Gradients of hidden, weight and bias from those of logp, lse and entropy; the logits are computed again.

    hidden and weight are bfloat16; they and the options as in linear_logp. d_logp is float32 of the shape of target,
    d_lse and d_entropy float32 [N], any strides, 0 too (np.broadcast_to). One that is absent is 0; at least one is
    there. ``want`` is out of hidden, weight, bias; ``dtype`` of the gradients np.float32, or np.uint16 for bfloat16
    bits. ``accumulate`` holds float32 weight and bias (either) to add to, in place and as the first addend; calls split
    at multiples of 8,192 valid rows then give the bits of one call. ``saved`` is what linear_logp_save returned for the
    same inputs; None: computed again. ``subtract_p`` belongs to the pass that saves. False: 1 - p of a row's likeliest
    target is the other ids' share of the sum, right however confident the row is; True: 1 - p in float32.

    Returns:
        LinearLogpGradients. An ignored row's gradient is +0 and its hidden state unused; a row with a target outside
        [0, V) or no temperature above 0 gets NaN and adds nothing to weight and bias.

    Raises:
        InvalidArgumentError (a ValueError), Error: the library's message. TypeError: not an array of a known dtype.
    """
    for name in want:
        if name not in _WANTED:
            raise ValueError(f"want: expected names out of {', '.join(_WANTED)}, got {name!r}")
    shapes = {"hidden": hidden.shape, "weight": weight.shape, "bias": weight.shape[:1]}
    made = {name: np.empty(shapes[name], dtype) for name in want}
    if accumulate is not None:
        sums = {name: array for name, array in accumulate._asdict().items() if array is not None}
        require_writeable(**sums)
        made.update(sums)
    gradients = LinearLogpGradients(**made)
    args = _arguments(hidden, weight, target, LinearLogp(), bias=bias, temperature=temperature, softcap=softcap,
                      ignore_index=ignore_index, vocab_size=vocab_size, kernel=kernel, threads=threads,
                      subtract_p=subtract_p)  # fmt: skip
    args.accumulate = int(accumulate is not None)
    for name, array in (("d_logp", d_logp), ("d_lse", d_lse), ("d_entropy", d_entropy)):
        setattr(args, name, view(name, array))
    for name, array in gradients._asdict().items():
        setattr(args, f"d_{name}", view(f"d_{name}", array))
    if saved is not None:
        args.saved = address_of_bytes("saved", saved, _saved_bytes(args))
    _run("isobit_linear_logp_backward", args, workspace_limit)
    return gradients
