"""Prompt log-probabilities in vLLM's form: the prompt's own token, then the K most likely, and the token's rank."""

from __future__ import annotations

from typing import NamedTuple

import torch

from .torch import linear_logp

__all__ = ["Logprobs", "prompt_logprobs"]


class Logprobs(NamedTuple):
    """Fields and order of vLLM's LogprobsTensors."""

    logprob_token_ids: torch.Tensor  # int32 [N, K + 1]: the token itself, then the K most likely
    logprobs: torch.Tensor  # float32 [N, K + 1]
    selected_token_ranks: torch.Tensor  # int32 [N], 1 for the most likely


def prompt_logprobs(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    token_ids: torch.Tensor,
    num_logprobs: int = 0,
    *,
    bias: torch.Tensor | None = None,
    temperature: float = 1.0,
    softcap: float = 0.0,
) -> Logprobs:
    """Scores N prompt positions: hidden [N, H] bfloat16 or float16, weight [V, H], token_ids [N] int32 or int64.

    num_logprobs = K adds the K most likely ids, 0 to 64. Tokens of equal logit are ranked by id, where vLLM counts all
    of them. No gradient.
    """
    with torch.no_grad():
        found = linear_logp(hidden, weight, token_ids, bias=bias, temperature=temperature, softcap=softcap,
                            want=("logp", "rank"), top=num_logprobs)  # fmt: skip
    ids, values = token_ids.to(torch.int32)[:, None], found.logp[:, None]
    if num_logprobs:
        ids, values = torch.cat([ids, found.top_id], 1), torch.cat([values, found.top_logp], 1)
    return Logprobs(ids, values, found.rank + 1)
