"""RL-Kernel's call of a fused head: ``linear_logp(hidden, lm_head_weight, target_ids, bias, tp_group=...)``."""

from __future__ import annotations

import torch

from .torch import linear_logp as _linear_logp
from .torch.distributed import linear_logp_sharded

__all__ = ["FusedLinearLogpOp", "linear_logp"]


def linear_logp(
    hidden: torch.Tensor,
    lm_head_weight: torch.Tensor,
    target_ids: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    tp_group=None,
    vocab_start_index: int = 0,
    global_vocab_size: int | None = None,
) -> torch.Tensor:
    """log_softmax(hidden @ lm_head_weight.T + bias)[target_ids] in float32, in the shape of target_ids.

    Args:
        hidden: [..., H] bfloat16 or float16.
        lm_head_weight: [V, H], or this rank's rows of it, global ids vocab_start_index and on.
        target_ids: [...], one global id for each row.
        bias: [V], or this rank's part of it.
        tp_group: process group over which the vocabulary is split; None: it is whole. The result has the bits of one
            rank with the whole vocabulary, for any split.
        vocab_start_index: global id of the first row.
        global_vocab_size: needed with tp_group.
    """
    split = vocab_start_index > 0 or (tp_group is not None and torch.distributed.get_world_size(tp_group) > 1)
    if not split:
        size = global_vocab_size or 0
        return _linear_logp(hidden, lm_head_weight, target_ids, bias=bias, vocab_size=size, want=("logp",)).logp
    if global_vocab_size is None:
        raise ValueError("global_vocab_size: expected the number of ids of all ranks together, got None")
    found = linear_logp_sharded(hidden.reshape(-1, hidden.shape[-1]), lm_head_weight, target_ids.reshape(-1), bias=bias,
                                group=tp_group, first_id=vocab_start_index, vocab_size=global_vocab_size)  # fmt: skip
    return found.logp.reshape(target_ids.shape)


class FusedLinearLogpOp:
    """RL-Kernel's callable operator object."""

    apply = staticmethod(linear_logp)
    __call__ = staticmethod(linear_logp)
