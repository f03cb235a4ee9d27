"""A training step with a fused GeGLU and a head without logits, under autocast and torch.compile."""

import torch
import torch.nn.functional as F

import isobit.torch

torch.manual_seed(0)


class Model(torch.nn.Module):
    def __init__(self, vocabulary=1000, width=64):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.gate_up = torch.nn.Linear(width, 4 * width, bias=False)
        self.down = torch.nn.Linear(2 * width, width, bias=False)
        self.head = torch.nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens, target):
        x = self.embedding(tokens)
        x = x + self.down(isobit.torch.geglu_packed(self.gate_up(x), gelu="tanh", layout="stacked"))
        return -isobit.torch.linear_logp(F.rms_norm(x, x.shape[-1:]), self.head.weight, target).logp.mean()


model = Model()
step = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")  # backend: leave it out on a GPU
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
tokens, target = torch.randint(1000, (256,)), torch.randint(1000, (256,))
for number in range(6):
    with torch.autocast("cpu", torch.bfloat16):
        loss = step(tokens, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {number}: loss {loss.item():.4f}")
