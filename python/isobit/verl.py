"""verl's fused head: ``LinearCrossEntropy.apply(hidden, weight, labels, temperature, reduction, group)``.

``isobit.verl.patch()`` before the models are built puts it in the place of verl's own.
"""

from __future__ import annotations

import importlib

import torch

from .torch import linear_logp

__all__ = ["LinearCrossEntropy", "linear_cross_entropy", "patch"]


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
    results are differentiable. ValueError: a reduction other than "none"; NotImplementedError: a process group of more
    than one rank, whose weight would be a vocabulary shard.
    """
    if (reduction or "none").lower() != "none":
        raise ValueError(f"reduction: expected 'none', got {reduction!r}; reduce the log-probabilities yourself")
    if dist_process_group is not None and torch.distributed.get_world_size(dist_process_group) > 1:
        raise NotImplementedError("isobit.verl: a sharded vocabulary is not supported; gather the weight")
    rows = hidden.reshape(-1, hidden.shape[-1])
    if isinstance(temperature, torch.Tensor) and temperature.numel() > 1:
        temperature = temperature.reshape(-1).float()
    elif isinstance(temperature, torch.Tensor):
        temperature = temperature.reshape(1).float().expand(len(rows))
    found = linear_logp(rows, weight, labels.reshape(-1), temperature=1.0 if temperature is None else temperature,
                        ignore_index=None, want=("logp", "entropy"))  # fmt: skip
    return found.logp, found.entropy


class LinearCrossEntropy:
    """verl's class: only ``apply`` of it is called."""

    apply = staticmethod(linear_cross_entropy)


def patch() -> None:
    """Makes verl call this function. Modules that took verl's by name before keep what they have."""
    module = importlib.import_module("verl.utils.kernel.linear_cross_entropy")
    module.LinearCrossEntropy, module.linear_cross_entropy = LinearCrossEntropy, linear_cross_entropy
