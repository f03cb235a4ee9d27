"""Gemma 3 with isobit's GeGLU, scored without logits. A tiny random model; a real one goes the same way."""

import torch
import transformers

import isobit.transformers

torch.manual_seed(0)
config = transformers.Gemma3TextConfig(vocab_size=1000, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                                       num_attention_heads=4, num_key_value_heads=1, head_dim=16)  # fmt: skip
model = transformers.Gemma3ForCausalLM(config).to(torch.bfloat16).eval()
ids = torch.randint(1, 1000, (2, 12))

with torch.no_grad():
    print("MLPs patched:", isobit.transformers.patch(model))
    found = isobit.transformers.score(model, ids, want=("logp", "entropy"))
    print("log-probability of each token, first sequence:", *(f"{x:.3f}" for x in found.logp[0].tolist()))
    logits = model(ids).logits[:, :-1].float()
    usual = logits.log_softmax(-1).gather(-1, ids[:, 1:, None])[:, :, 0]
    print(f"largest difference from logits -> log_softmax -> gather: {(found.logp - usual).abs().max():.1e}")
    print("(the usual way rounds the logits to bfloat16; isobit does not)")
