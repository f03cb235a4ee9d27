"""linear_logp over a vocabulary that is split among the ranks of a process group."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch.autograd.function import once_differentiable

from .._abi import LinearLogpArgs, LinearLogpBackwardArgs, LinearLogpState
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


class _Shards(NamedTuple):
    """Where the vocabulary is."""

    group: dist.ProcessGroup | None
    borders: list[tuple[int, int]]  # first id and weight rows of every rank
    first_id: int  # of this rank
    vocab_size: int

    def gather(self, mine: torch.Tensor) -> tuple[ctypes.Array, list[torch.Tensor]]:
        """Every rank's bytes as the library wants them, and the tensors that hold them."""
        everyone = [torch.empty_like(mine) for _ in self.borders]
        dist.all_gather(everyone, mine, group=self.group)
        states = [
            LinearLogpState(first, max(min(rows, self.vocab_size - first), 0), state.data_ptr())
            for (first, rows), state in zip(self.borders, everyone)
        ]
        return (LinearLogpState * len(states))(*states), everyone


def _states(args: LinearLogpArgs, shards: _Shards, device: torch.device):
    """Runs this rank's shard and gathers the states of all."""
    sizes = [_state_bytes(args, first, rows) for first, rows in shards.borders]
    mine = torch.zeros(max(*sizes, 16), dtype=torch.uint8, device=device)
    keep = add_workspace(library.isobit_linear_logp_workspace, args, device)
    run(library.isobit_linear_logp_shard, args, device, ctypes.c_void_p(mine.data_ptr()))
    del keep
    args.workspace, args.workspace_bytes = None, 0  # a merge needs none
    return shards.gather(mine)


class _Train(torch.autograd.Function):
    """logp, lse and entropy of all ranks, with gradients of hidden and of this rank's weight and bias."""

    @staticmethod
    def forward(ctx, hidden, weight, target, bias, temperature, options, shards):
        hidden, weight = _ops._head(hidden), _ops._head(weight)
        inputs, device = (hidden, weight, target, bias, temperature), hidden.device
        outputs = _ops._outputs(target, hidden, True)[:3]
        args = _args(inputs, options, outputs)
        args.first_id = shards.first_id
        states, keep = _states(args, shards, device)
        both = _ops._backward_args(inputs, options)
        for name, tensor in zip(_WANTED, outputs):
            put(both, _ops._INSIDE + _ops._AT[name], name, tensor)
        both.forward.first_id = shards.first_id
        size = ctypes.c_size_t()
        check(library.isobit_linear_logp_saved_bytes(ctypes.byref(both), ctypes.byref(size)))
        saved = torch.zeros(size.value, dtype=torch.uint8, device=device)
        both.saved = saved.data_ptr()
        run(library.isobit_linear_logp_save_merge, both, device, states, ctypes.c_int32(len(states)))
        del keep
        ctx.save_for_backward(*inputs, saved)
        ctx.options, ctx.shards = options, shards
        ctx.set_materialize_grads(False)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx, *upstream):
        *inputs, saved = ctx.saved_tensors
        hidden, weight, _, bias, _ = inputs
        need_hidden, need_weight, _, need_bias = ctx.needs_input_grad[:4]
        args = _ops._backward_args(inputs, ctx.options)
        args.forward.first_id, args.saved = ctx.shards.first_id, saved.data_ptr()
        gradients = _ops._new_gradients(hidden, weight, bias, False, need_weight, need_bias)
        for name, tensor in zip(_ops._GRADIENTS, (*upstream, *gradients)):
            if tensor is not None and tensor.numel():
                put(args, _ops._BACKWARD_AT[name], name, tensor)
        part = None
        if need_hidden:
            sizes = [_part_bytes(args, first, rows) for first, rows in ctx.shards.borders]
            part = torch.zeros(max(*sizes, 16), dtype=torch.uint8, device=hidden.device)
        keep = _ops._add_backward_workspace(args, hidden.device)
        pointer = ctypes.c_void_p(part.data_ptr() if need_hidden else None)
        run(library.isobit_linear_logp_backward_shard, args, hidden.device, pointer)
        del keep
        d_hidden = _merge_parts(args, ctx.shards, part, hidden) if need_hidden else None
        d_weight, d_bias = gradients[1] if need_weight else None, gradients[2] if need_bias else None
        return d_hidden, d_weight, None, d_bias, None, None, None


def _part_bytes(args: LinearLogpBackwardArgs, first_id: int, rows: int) -> int:
    """Size of a shard's share of d_hidden."""
    like = LinearLogpBackwardArgs.from_buffer_copy(args)
    like.forward.first_id, like.forward.weight.shape[0] = first_id, rows
    for tensor in (like.forward.bias, like.d_weight, like.d_bias):
        if tensor.dtype:
            tensor.shape[0] = rows
    size = ctypes.c_size_t()
    check(library.isobit_linear_logp_part_bytes(ctypes.byref(like), ctypes.byref(size)))
    return size.value


def _merge_parts(args: LinearLogpBackwardArgs, shards: _Shards, part: torch.Tensor, hidden: torch.Tensor):
    parts, keep = shards.gather(part)
    d_hidden = torch.empty(hidden.shape, dtype=hidden.dtype, device=hidden.device)
    put(args, _ops._BACKWARD_AT["d_hidden"], "d_hidden", d_hidden)
    run(library.isobit_linear_logp_backward_merge, args, hidden.device, parts, ctypes.c_int32(len(parts)))
    del keep
    return d_hidden


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

    Every rank calls it with the same hidden, target and options, and gets the same result. Differentiable once: every
    rank calls backward with the same upstream gradients, and gets d_hidden of the whole vocabulary, in the same bits as
    one rank would, and the gradients of its own weight and bias. d_hidden needs borders at multiples of
    ceil(vocab_size / 16), as 2, 4, 8 or 16 equal shards have.

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
    per_row = temperature if isinstance(temperature, torch.Tensor) else None
    options = (1.0 if per_row is not None else temperature, softcap, ignore_index, vocab_size)
    if shards is None:
        shards = _all_shards(first_id, weight.shape[0], group, hidden.device)
    where = _Shards(group, list(shards), first_id, vocab_size)
    inputs = (hidden, weight, target, bias, per_row)
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (hidden, weight, bias)):
        found = dict(zip(_WANTED, _Train.apply(*inputs, options, where)))
        return LinearLogp(**{name: found[name] for name in want})
    outputs = tuple(t if name in want else None for name, t in zip(_WANTED, _ops._outputs(target, hidden, True)))
    args = _args(inputs, options, outputs)
    args.first_id = first_id
    states, keep = _states(args, where, hidden.device)
    run(library.isobit_linear_logp_merge, args, hidden.device, states, ctypes.c_int32(len(states)))
    del keep
    return LinearLogp(**{name: tensor for name, tensor in zip(_WANTED, outputs) if tensor is not None})
