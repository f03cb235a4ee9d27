"""verl's fused head: ``LinearCrossEntropy.apply(hidden, weight, labels, temperature, reduction, group)``.

``isobit.verl.patch()`` before the models are built puts it in the place of verl's own.
"""

from __future__ import annotations

import importlib

import torch

from .torch import linear_logp
from .torch.distributed import linear_logp_sharded

__all__ = ["LinearCrossEntropy", "linear_cross_entropy", "patch"]


class _OnFirstRank(torch.autograd.Function):
    """The identity, whose gradient is kept on the first rank and 0 on the others, so that a sum over ranks is exact."""

    @staticmethod
    def forward(ctx, hidden, rank):
        ctx.rank = rank
        return hidden.view_as(hidden)

    @staticmethod
    def backward(ctx, gradient):
        return gradient if ctx.rank == 0 else torch.zeros_like(gradient), None


def linear_cross_entropy(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    labels: torch.Tensor,
    temperature: float | torch.Tensor | None = 1.0,
    reduction: str | None = "none",
    dist_process_group=None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities of the labels and entropies, float32 [N], out of hidden [..., H] and weight [V, H].

    labels are token ids in the shape of hidden's leading dimensions, temperature one number or one for each row. Both
    results are differentiable. With a process group of several ranks weight is this rank's equal part of the head, in
    the group's order, and hidden's gradient has to be summed over the ranks, as verl's has and as the gather of
    Megatron's sequence parallelism does: the first rank holds all of it, the others 0. ValueError: a reduction other
    than "none".
    """
    if (reduction or "none").lower() != "none":
        raise ValueError(f"reduction: expected 'none', got {reduction!r}; reduce the log-probabilities yourself")
    rows = hidden.reshape(-1, hidden.shape[-1])
    if isinstance(temperature, torch.Tensor) and temperature.numel() > 1:
        temperature = temperature.reshape(-1).float()
    elif isinstance(temperature, torch.Tensor):
        temperature = temperature.reshape(1).float().expand(len(rows))
    options = {"temperature": 1.0 if temperature is None else temperature, "ignore_index": None,
               "want": ("logp", "entropy")}  # fmt: skip
    ranks = 1 if dist_process_group is None else torch.distributed.get_world_size(dist_process_group)
    if ranks > 1:
        rank, size = torch.distributed.get_rank(dist_process_group), len(weight)
        shards = [(i * size, size) for i in range(ranks)]
        where = {"group": dist_process_group, "shards": shards, "first_id": rank * size, "vocab_size": ranks * size}
        summed = _OnFirstRank.apply(rows, rank)
        found = linear_logp_sharded(summed, weight, labels.reshape(-1), **where, **options)
    else:
        found = linear_logp(rows, weight, labels.reshape(-1), **options)
    return found.logp, found.entropy


class LinearCrossEntropy:
    """verl's class: only ``apply`` of it is called."""

    apply = staticmethod(linear_cross_entropy)


def patch() -> None:
    """Makes verl call this function. Modules that took verl's by name before keep what they have."""
    module = importlib.import_module("verl.utils.kernel.linear_cross_entropy")
    module.LinearCrossEntropy, module.linear_cross_entropy = LinearCrossEntropy, linear_cross_entropy
