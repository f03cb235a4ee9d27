"""TRL's selected-token log-probabilities by isobit, beside TRL's own chunked function.

In a training script one line does it, before the trainer is made: ``isobit.trl.patch()``.
"""

import torch
from trl.kernels.chunked_logprob import ChunkedLogProbFunction

import isobit.trl

torch.manual_seed(0)
hidden = torch.randn(40, 64, dtype=torch.bfloat16)
weight = torch.randn(1000, 64, dtype=torch.bfloat16) / 8
targets = torch.randint(1000, (40,))
outputs = ("entropy", "is_top1")

trls = ChunkedLogProbFunction.apply(hidden, weight, None, targets, 0.8, 256, None, 1.0, outputs)
ours = isobit.trl.ChunkedLogProbFunction.apply(hidden, weight, None, targets, 0.8, 256, None, 1.0, outputs)
exact = (hidden.double() @ weight.double().T / 0.8).log_softmax(-1).gather(1, targets[:, None])[:, 0]
print(f"largest error against double precision: TRL {(trls[0] - exact).abs().max():.1e}, "
      f"isobit {(ours[0] - exact).abs().max():.1e}")  # fmt: skip

alone = isobit.trl.ChunkedLogProbFunction.apply(hidden[7:8], weight, None, targets[7:8], 0.8, 256, None, 1.0, outputs)
print(
    "row 7 alone and in the batch, isobit:", "equal bits" if torch.equal(alone[0], ours[0][7:8]) else "different bits"
)
