"""Prompt log-probabilities in vLLM's form: the prompt's token, the K most likely ones, and the token's rank."""

import torch

import isobit.vllm

torch.manual_seed(0)
hidden = torch.randn(6, 64, dtype=torch.bfloat16)
weight = torch.randn(1000, 64, dtype=torch.bfloat16) / 8
prompt = torch.randint(1000, (6,))

found = isobit.vllm.prompt_logprobs(hidden, weight, prompt, 3)
for ids, values, rank in zip(found.logprob_token_ids.tolist(), found.logprobs.tolist(), found.selected_token_ranks):
    best = ", ".join(f"{i} {v:.3f}" for i, v in zip(ids[1:], values[1:]))
    print(f"token {ids[0]:4d}  logp {values[0]:8.3f}  rank {rank:4d}   most likely: {best}")

one_by_one = [isobit.vllm.prompt_logprobs(hidden[i : i + 1], weight, prompt[i : i + 1]).logprobs for i in range(6)]
same = torch.equal(torch.cat(one_by_one), found.logprobs[:, :1])
print("token by token instead of in one prefill:", "equal bits" if same else "different bits")
