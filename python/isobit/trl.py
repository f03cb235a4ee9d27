"""TRL's selected-token log-probabilities, the function behind its GRPO, SFT and DPO trainers' fused LM head.

``isobit.trl.patch()`` before the trainer is made puts it in the place of TRL's own.
"""

from __future__ import annotations

import importlib

import torch

from .torch import linear_logp

__all__ = ["ChunkedLogProbFunction", "chunked_logprob", "patch"]

_OUTPUTS = ("entropy", "log_sum_sq_probs", "mean_logits", "is_top1")


def chunked_logprob(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    targets: torch.Tensor,
    temperature: float,
    chunk_size: int,
    final_logit_softcapping: float | None = None,
    logit_scale: float = 1.0,
    outputs: tuple[str, ...] = _OUTPUTS,
) -> tuple[torch.Tensor | None, ...]:
    """(logp, entropy, None, None, is_top1) of hidden [N, H] bfloat16 against weight [V, H] and bias [V].

    targets [N] are token ids; chunk_size is not needed and not used. logp and entropy are float32 [N] and
    differentiable; is_top1 is bool [N]. NotImplementedError: log_sum_sq_probs, mean_logits, or a logit_scale other than
    1 beside a softcap: ask TRL for the outputs you use.
    """
    for name in ("log_sum_sq_probs", "mean_logits"):
        if name in outputs:
            raise NotImplementedError(
                f"isobit.trl: outputs: {name} is not computed; expected entropy and is_top1 alone"
            )
    if logit_scale != 1 and final_logit_softcapping is not None:
        raise NotImplementedError("isobit.trl: a logit_scale beside final_logit_softcapping is not supported")
    options = {"bias": bias, "softcap": final_logit_softcapping or 0.0, "temperature": temperature / logit_scale}
    want = ("logp", "entropy") if "entropy" in outputs else ("logp",)
    found = linear_logp(hidden, weight, targets, want=want, **options)
    is_top1 = None
    if "is_top1" in outputs:
        with torch.no_grad():
            is_top1 = linear_logp(hidden, weight, targets, want=("rank",), **options).rank == 0
    return found.logp, found.entropy, None, None, is_top1


class ChunkedLogProbFunction:
    """TRL's class: only ``apply`` of it is called."""

    apply = staticmethod(chunked_logprob)


def patch() -> None:
    """Makes TRL's fused forward call this function."""
    importlib.import_module("trl.trainer.utils")._ChunkedLogProbFunction = ChunkedLogProbFunction
