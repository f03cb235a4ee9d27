"""One LM head split among the ranks of torch.distributed: every rank gets the bits of one device.

    torchrun --nproc-per-node 4 examples/torchrun/head_over_ranks.py [--cuda]

On the CPU by gloo; with --cuda a GPU a rank, by NCCL. The forward pass at odd borders; a training step at multiples of
ceil(V / 16), which d_hidden needs. Each rank checks its answer against a call over the whole head.
"""

import os
import sys

import torch
import torch.distributed as dist

import isobit.torch
from isobit.torch.distributed import linear_logp_sharded

ROWS, WIDTH, VOCAB = 32, 64, 5008
WANT = ("logp", "lse", "entropy")

on_gpus = "--cuda" in sys.argv
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpus else torch.device("cpu")
if on_gpus:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if on_gpus else "gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)  # the same operands on every rank, so that each can check its answer
hidden = torch.randn(ROWS, WIDTH).bfloat16().to(device)
weight = (torch.randn(VOCAB, WIDTH) / 8).bfloat16().to(device)
target = torch.randint(VOCAB, (ROWS,)).to(device)


def forward():
    borders = [VOCAB * r // ranks | (r > 0) for r in range(ranks)] + [VOCAB]
    first, last = borders[rank], borders[rank + 1]
    shared = linear_logp_sharded(hidden, weight[first:last], target, first_id=first, vocab_size=VOCAB, want=WANT)
    alone = isobit.torch.linear_logp(hidden, weight, target, want=WANT)
    return sum(not torch.equal(getattr(shared, name), getattr(alone, name)) for name in WANT), borders


def train():
    segment = -(-VOCAB // 16)
    borders = [min(VOCAB, segment * (16 * r // ranks)) for r in range(ranks + 1)]
    first, last = borders[rank], borders[rank + 1]

    def gradients(ids, call):
        inputs = hidden.clone().requires_grad_(), weight[ids].clone().requires_grad_()
        result = call(*inputs)
        (result.entropy.mean() - result.logp.mean()).backward()
        return [tensor.grad for tensor in inputs]

    d_hidden, d_weight = gradients(slice(0, VOCAB), lambda h, w: isobit.torch.linear_logp(h, w, target, want=WANT))
    mine = gradients(slice(first, last), lambda h, w: linear_logp_sharded(
        h, w, target, first_id=first, vocab_size=VOCAB, want=WANT))  # fmt: skip
    return sum(not torch.equal(a, b) for a, b in zip(mine, (d_hidden, d_weight[first:last]), strict=True)), borders


for what, (differ, borders) in (("outputs", forward()), ("gradients", train())):
    different = torch.tensor([differ], device=device)
    dist.all_reduce(different)
    if rank == 0:
        print(f"{ranks} ranks on {device.type}, borders {borders}: {int(different)} {what} differ from one device's")
    if int(different) != 0:
        raise SystemExit(1)
dist.destroy_process_group()
