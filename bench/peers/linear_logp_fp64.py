"""linear_logp and its gradients in fp64 on the GPU, from the same bf16 operands: what the programs here are held to."""

from __future__ import annotations

import torch

CHUNK = 4096  # ids whose logits exist at a time


def chunks(hidden, weight):
    """Per chunk of ids: its first id, its part of weight and its logits, in fp64."""
    rows = hidden.double()
    for first in range(0, weight.shape[0], CHUNK):
        part = weight[first : first + CHUNK].double()
        yield first, part, rows @ part.t()


def in_chunk(target, first: int, logits):
    """The rows whose target lies in a chunk of logits, and its column there."""
    column = target - first
    rows = ((column >= 0) & (column < logits.shape[1])).nonzero()[:, 0]
    return rows, column[rows]


def state64(hidden, weight, target):
    """lse and the target's logit, fp64 [N]."""
    lse = torch.full_like(target, -torch.inf, dtype=torch.float64)
    chosen = torch.zeros_like(lse)
    for first, _, logits in chunks(hidden, weight):
        lse = torch.logaddexp(lse, logits.logsumexp(1))
        rows, columns = in_chunk(target, first, logits)
        chosen[rows] = logits[rows, columns]
    return lse, chosen


def logp64(hidden, weight, target):
    lse, chosen = state64(hidden, weight, target)
    return chosen - lse


def gradient_errors(hidden, weight, target, upstream, *candidates) -> list[list[float]]:
    """Relative L2 error of d_hidden and of d_weight, per pair of them, against fp64; upstream is d_logp."""
    lse, _ = state64(hidden, weight, target)
    rows64, scale = hidden.double(), upstream.double()[:, None]
    d_hidden = torch.zeros_like(rows64)
    squares, errors = 0.0, [0.0] * len(candidates)
    for first, part, logits in chunks(hidden, weight):
        rows, columns = in_chunk(target, first, logits)
        dz = -(logits - lse[:, None]).exp()
        dz[rows, columns] += 1
        dz *= scale
        d_hidden += dz @ part
        d_part = dz.t() @ rows64
        squares += float(d_part.square().sum())
        for i, (_, d_weight) in enumerate(candidates):
            errors[i] += float((d_weight[first : first + CHUNK].double() - d_part).square().sum())
    return [
        [float((theirs.double() - d_hidden).norm() / d_hidden.norm()), (error / squares) ** 0.5]
        for (theirs, _), error in zip(candidates, errors, strict=True)
    ]
