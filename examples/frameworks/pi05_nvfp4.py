"""The action expert's MLPs of a pi0.5-like policy in NVFP4. Tiny random Gemmas stand for the policy's two towers."""

import torch
import transformers

import isobit.pi05

torch.manual_seed(0)


def tower():
    config = transformers.GemmaConfig(vocab_size=500, hidden_size=128, intermediate_size=256, num_hidden_layers=3,
                                      num_attention_heads=4, num_key_value_heads=1, head_dim=32)  # fmt: skip
    return transformers.GemmaModel(config).to(torch.bfloat16).eval()


class Policy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.language_model, self.gemma_expert = tower(), tower()

    def forward(self, ids):
        return self.language_model(ids).last_hidden_state + self.gemma_expert(ids).last_hidden_state


policy, ids = Policy(), torch.randint(1, 500, (2, 10))
with torch.no_grad():
    before = policy(ids).float()
    count = isobit.pi05.quantize(policy, lambda: policy(ids))
    after = policy(ids).float()
print(f"{count} MLPs of the action expert run on NVFP4 weights and activations")
print(f"relative change of the output: {(after - before).norm() / before.norm():.4f}")
with torch.no_grad():
    alone = policy(ids[:1]).float()
print(
    f"largest change of sequence 0 when it runs alone: {(alone - after[:1]).abs().max():.1e} (attention is PyTorch's)"
)
