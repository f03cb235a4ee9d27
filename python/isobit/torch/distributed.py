"""linear_logp over a vocabulary that is split among the ranks of a process group."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch
import torch.distributed as dist

from .._abi import LinearLogpArgs, LinearLogpState
from .._library import check, library
from .._linear_logp import LinearLogp
from . import _linear_logp as _ops
from ._call import add_workspace, put, refuse_distributed, run

_WANTED = ("logp", "lse", "entropy")


def _args(inputs, options, outputs) -> LinearLogpArgs:
    args = LinearLogpArgs.from_buffer_copy(_ops._FORWARD)
    _ops._fill(args, args, 0, inputs, options)
    for name, tensor in zip(_WANTED, outputs):
        if tensor is not None:
            put(args, _ops._AT[name], name, tensor)
    return args


def _state_bytes(args: LinearLogpArgs, first_id: int, rows: int) -> int:
    """Size of the state of a shard with that many weight rows; a multiple of 16."""
    like = LinearLogpArgs.from_buffer_copy(args)
    like.first_id, like.weight.shape[0] = first_id, rows
    if like.bias.dtype:
        like.bias.shape[0] = rows
    size = ctypes.c_size_t()
    check(library.isobit_linear_logp_state_bytes(ctypes.byref(like), ctypes.byref(size)))
    return (size.value + 15) // 16 * 16


def _all_shards(first_id: int, rows: int, group, device) -> list[tuple[int, int]]:
    mine = torch.tensor([first_id, rows], dtype=torch.int64, device=device)
    everyone = [torch.empty_like(mine) for _ in range(dist.get_world_size(group))]
    dist.all_gather(everyone, mine, group=group)
    return [tuple(pair.tolist()) for pair in everyone]


def linear_logp_sharded(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    target: torch.Tensor,
    *,
    group=None,
    first_id: int,
    vocab_size: int,
    shards: Sequence[tuple[int, int]] | None = None,
    bias: torch.Tensor | None = None,
    temperature: float | torch.Tensor = 1.0,
    softcap: float = 0.0,
    ignore_index: int | None = -100,
    want: Sequence[str] = ("logp", "lse"),
) -> LinearLogp:
    """linear_logp with the vocabulary split among the ranks of group, at any borders: the bits of one rank with it all.

    Every rank calls it with the same hidden, target and options, and gets the same result. Scoring only: ValueError if
    a gradient could be asked for.

    Args:
        hidden: [N, H] bfloat16 or float16.
        weight: [Vw, H]: the rows of the ids first_id, first_id + 1, ...
        target: [N] or [N, K], global ids.
        group: process group; None: the default one. Its backend must take tensors of hidden's device.
        first_id: global id of weight's first row.
        vocab_size: number of ids of all ranks together.
        shards: (first_id, Vw) of every rank, in the group's order. None: the ranks tell each other, which synchronises.
        bias: [Vw].
        temperature: as in linear_logp, like the arguments after it.
        softcap: as in linear_logp.
        ignore_index: as in linear_logp.
        want: names out of logp, lse, entropy.
    """
    refuse_distributed("linear_logp_sharded", hidden=hidden, weight=weight, bias=bias)
    if unknown := set(want) - set(_WANTED):
        raise ValueError(f"want: expected names out of {', '.join(_WANTED)}, got {sorted(unknown)[0]!r}")
    if torch.is_grad_enabled() and (hidden.requires_grad or weight.requires_grad):
        raise ValueError("linear_logp_sharded is for scoring: call it under torch.no_grad()")
    per_row = temperature if isinstance(temperature, torch.Tensor) else None
    options = (1.0 if per_row is not None else temperature, softcap, ignore_index, vocab_size)
    outputs = tuple(t if name in want else None for name, t in zip(_WANTED, _ops._outputs(target, hidden, True)))
    args = _args((hidden, weight, target, bias, per_row), options, outputs)
    args.first_id = first_id
    if shards is None:
        shards = _all_shards(first_id, weight.shape[0], group, hidden.device)
    sizes = [_state_bytes(args, first, rows) for first, rows in shards]
    mine = torch.zeros(max(*sizes, 16), dtype=torch.uint8, device=hidden.device)
    keep = add_workspace(library.isobit_linear_logp_workspace, args, hidden.device)
    run(library.isobit_linear_logp_shard, args, hidden.device, ctypes.c_void_p(mine.data_ptr()))
    del keep
    args.workspace, args.workspace_bytes = None, 0  # a merge needs none
    everyone = [torch.empty_like(mine) for _ in shards]
    dist.all_gather(everyone, mine, group=group)
    counts = [max(min(rows, vocab_size - first), 0) for first, rows in shards]
    found = [LinearLogpState(first, count, state.data_ptr())
             for (first, _), count, state in zip(shards, counts, everyone)]  # fmt: skip
    states = (LinearLogpState * len(found))(*found)
    run(library.isobit_linear_logp_merge, args, hidden.device, states, ctypes.c_int32(len(found)))
    return LinearLogp(**{name: tensor for name, tensor in zip(_WANTED, outputs) if tensor is not None})
