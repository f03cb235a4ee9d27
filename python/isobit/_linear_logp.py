"""linear_logp of isobit/linear_logp.h on NumPy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ._abi import BF16, CPU, LinearLogpArgs, LinearLogpState, Tensor, start
from ._library import check, library
from ._tensor import address_of_bytes, aligned_bytes, view


class LinearLogp(NamedTuple):
    """Outputs of linear_logp (N rows, K targets a row, T ids of the top list); None where one was not asked for."""

    logp: np.ndarray | None = None  # float32, shape of target
    lse: np.ndarray | None = None  # float32 [N]
    entropy: np.ndarray | None = None  # float32 [N], in nats
    rank: np.ndarray | None = None  # int32, shape of target
    target_logit: np.ndarray | None = None  # float32, shape of target
    top_id: np.ndarray | None = None  # int32 [N, T]
    top_logp: np.ndarray | None = None  # float32 [N, T]


class Shard(NamedTuple):
    """State of one vocabulary shard: what linear_logp_merge needs of it."""

    first_id: int
    count: int  # ids of the shard
    data: np.ndarray  # uint8, opaque


_PER_TARGET = ("logp", "rank", "target_logit")
_WANTED = (*_PER_TARGET, "lse", "entropy")


def outputs_of(target, want: Sequence[str], top: int, empty=np.empty) -> LinearLogp:
    """New arrays for the outputs in `want`; `empty` makes one of a shape and a dtype."""
    for name in want:
        if name not in _WANTED:
            raise ValueError(f"want: expected names out of {', '.join(_WANTED)}, got {name!r}")
    rows = target.shape[0] if target.ndim else 0
    made: dict[str, np.ndarray] = {}
    for name in want:
        shape = target.shape if name in _PER_TARGET else (rows,)
        made[name] = empty(shape, np.int32 if name == "rank" else np.float32)
    if top:
        made["top_id"] = empty((rows, top), np.int32)
        made["top_logp"] = empty((rows, top), np.float32)
    return LinearLogp(**made)


def fill(args: LinearLogpArgs, hidden, weight, target, outputs, *, bias=None, temperature, softcap, ignore_index,
         vocab_size, first_id=0, view=view) -> None:  # fmt: skip
    """The arrays and options of a call; they must outlive it. `view` makes an isobit_tensor of a name and an array."""
    args.first_id, args.vocab_size = first_id, vocab_size
    args.softcap, args.temperature_value = softcap, 1.0
    args.hidden = view("hidden", hidden)
    args.weight = view("weight", weight)
    args.bias = view("bias", bias)
    args.target = view("target", target)
    if hasattr(temperature, "__len__"):
        args.temperature = view("temperature", temperature)
    else:
        args.temperature_value = temperature
    if ignore_index is not None:
        args.use_ignore_index = 1
        args.ignore_index = ignore_index
    for name in LinearLogp._fields:
        setattr(args, name, view(name, getattr(outputs, name)))


class _Call:
    """An argument struct and the arrays that it points to."""

    def __init__(self, *arrays, kernel=None, threads=0, **options):
        self.args = start(LinearLogpArgs, kernel, threads)
        fill(self.args, *arrays, **options)
        self.keep = (arrays, options)

    def add_workspace(self, limit: int | None) -> None:
        minimum, recommended = ctypes.c_size_t(), ctypes.c_size_t()
        sizes = (ctypes.byref(minimum), ctypes.byref(recommended))
        check(library.isobit_linear_logp_workspace(ctypes.byref(self.args), *sizes))
        size = recommended.value if limit is None else min(recommended.value, limit)
        self.workspace = aligned_bytes(size)
        self.args.workspace = self.workspace.ctypes.data
        self.args.workspace_bytes = size


def linear_logp(
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
    top: int = 0,
    kernel: str | None = None,
    threads: int = 0,
    workspace_limit: int | None = None,
) -> LinearLogp:
    """Log-probabilities of tokens from hidden states and the LM head, without the [N, V] logits.

    z = softcap(hidden @ weight.T + bias) / temperature; logp = z[target] - log(sum(exp(z))).

    Args:
        hidden: [N, H], bfloat16 (uint16 bits) or float16; any row stride >= 0, elements of a row adjacent.
        weight: [V, H], dtype of hidden; rows at any stride >= H.
        target: [N] or [N, K], int32 or int64: token ids.
        bias: [V] bfloat16, float16 or float32.
        temperature: one number > 0, or float32 [N].
        softcap: c > 0 replaces every logit t by c * tanh(t / c); 0: none.
        ignore_index: target id that makes an output +0; None: no id is special.
        vocab_size: number of weight rows that exist, for a padded weight; 0: all.
        want: names out of logp, lse, entropy, rank, target_logit.
        top: T > 0 also returns the T ids of highest logit and their log-probabilities.
        kernel: a row of ``kernels()``; None: the first that fits.
        threads: number of threads; 0: OpenMP's default. Never changes a bit.
        workspace_limit: bytes of scratch memory; None: as much as is useful. Never changes a bit.

    Returns:
        LinearLogp with new arrays. Rows that cannot be answered hold NaN (see isobit/linear_logp.h).

    Raises:
        InvalidArgumentError (a ValueError), Error: the library's message. TypeError: not an array of a known dtype.
    """
    outputs = outputs_of(target, want, top)
    call = _Call(hidden, weight, target, outputs, bias=bias, temperature=temperature, softcap=softcap,
                 ignore_index=ignore_index, vocab_size=vocab_size, kernel=kernel, threads=threads)  # fmt: skip
    call.add_workspace(workspace_limit)
    check(library.isobit_linear_logp(ctypes.byref(call.args), None))
    return outputs


def linear_logp_validate(
    hidden: np.ndarray,
    weight: np.ndarray,
    target: np.ndarray,
    *,
    temperature: float | np.ndarray = 1.0,
    ignore_index: int | None = -100,
    vocab_size: int = 0,
) -> int:
    """First row that linear_logp would answer with NaN because of its targets or its temperature; -1 if there is none.

    Arguments as in linear_logp; a target is bad outside [0, V), a temperature unless it is above 0.
    """
    outputs = outputs_of(target, ("logp",), 0)
    call = _Call(hidden, weight, target, outputs, temperature=temperature, softcap=0.0, ignore_index=ignore_index,
                 vocab_size=vocab_size)  # fmt: skip
    row = ctypes.c_int64()
    check(library.isobit_linear_logp_validate(ctypes.byref(call.args), ctypes.byref(row), None))
    return row.value


def linear_logp_shard(
    hidden: np.ndarray,
    weight: np.ndarray,
    target: np.ndarray,
    *,
    first_id: int,
    vocab_size: int,
    target_logit: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    temperature: float | np.ndarray = 1.0,
    softcap: float = 0.0,
    ignore_index: int | None = -100,
    want: Sequence[str] = ("logp", "lse"),
    kernel: str | None = None,
    threads: int = 0,
    workspace_limit: int | None = None,
) -> Shard:
    """State of the shard whose weight rows are the ids first_id, first_id + 1, ... of vocab_size.

    Arguments as in linear_logp; ``want`` says what the merge will be asked for. With "rank" in it, target_logit
    (float32, shape of target) holds the logit of every target, gathered from a first round without rank.
    """
    outputs = outputs_of(target, [name for name in want if name != "target_logit"], 0)._replace(
        target_logit=target_logit
    )
    call = _Call(hidden, weight, target, outputs, bias=bias, temperature=temperature, softcap=softcap,
                 ignore_index=ignore_index, vocab_size=vocab_size, first_id=first_id, kernel=kernel,
                 threads=threads)  # fmt: skip
    size = ctypes.c_size_t()
    check(library.isobit_linear_logp_state_bytes(ctypes.byref(call.args), ctypes.byref(size)))
    state = aligned_bytes(size.value)
    call.add_workspace(workspace_limit)
    check(library.isobit_linear_logp_shard(ctypes.byref(call.args), ctypes.c_void_p(state.ctypes.data), None))
    return Shard(first_id, max(min(weight.shape[0], vocab_size - first_id), 0), state)


def _state_bytes(merge: LinearLogpArgs, rows: int, shard: Shard) -> int:
    """Size of a shard's state for the outputs of a merge. The query looks at shapes alone."""
    args = LinearLogpArgs.from_buffer_copy(merge)
    args.first_id = shard.first_id
    for name, count in (("hidden", rows), ("weight", shard.count)):
        setattr(args, name, Tensor(None, BF16, CPU, 0, 2, (count, 1), (1, 1)))
    size = ctypes.c_size_t()
    check(library.isobit_linear_logp_state_bytes(ctypes.byref(args), ctypes.byref(size)))
    return size.value


def linear_logp_merge(
    target: np.ndarray,
    shards: Sequence[Shard],
    *,
    vocab_size: int,
    ignore_index: int | None = -100,
    temperature: float | np.ndarray = 1.0,
    softcap: float = 0.0,
    want: Sequence[str] = ("logp", "lse"),
) -> LinearLogp:
    """Outputs of the whole vocabulary from the states of all its shards, in any order: the bits of linear_logp.

    The shards must partition the ids [0, vocab_size); target, ignore_index, temperature, softcap and want as they were
    given to linear_logp_shard.
    """
    outputs = outputs_of(target, want, 0)
    call = _Call(None, None, target, outputs, temperature=temperature, softcap=softcap, ignore_index=ignore_index,
                 vocab_size=vocab_size)  # fmt: skip
    sizes = [_state_bytes(call.args, len(target), shard) for shard in shards]
    states = (LinearLogpState * len(shards))(
        *(LinearLogpState(s.first_id, s.count, address_of_bytes("shards", s.data, n)) for s, n in zip(shards, sizes))
    )
    check(library.isobit_linear_logp_merge(ctypes.byref(call.args), states, len(shards), None))
    return outputs
