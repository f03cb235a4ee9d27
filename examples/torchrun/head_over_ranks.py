"""One LM head split among the ranks of torch.distributed, at odd borders: every rank gets the bits of one device.

    torchrun --nproc-per-node 4 examples/torchrun/head_over_ranks.py [--cuda]

isobit's shard states travel in one all_gather of the process group: by gloo on the CPU, with --cuda by NCCL, one GPU a
rank.
"""

import os
import sys

import torch
import torch.distributed as dist

import isobit.torch
from isobit.torch.distributed import linear_logp_sharded

ROWS, WIDTH, VOCAB = 32, 64, 5000

cuda = "--cuda" in sys.argv
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
if cuda:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if cuda else "gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)  # the same operands on every rank, so that each can check its answer
hidden = torch.randn(ROWS, WIDTH).to(device, torch.bfloat16)
weight = (torch.randn(VOCAB, WIDTH) / 8).to(device, torch.bfloat16)
target = torch.randint(VOCAB, (ROWS,)).to(device)

borders = [VOCAB * r // ranks | (r > 0) for r in range(ranks)] + [VOCAB]
first, last = borders[rank], borders[rank + 1]
want = ("logp", "lse", "entropy")
shared = linear_logp_sharded(hidden, weight[first:last], target, first_id=first, vocab_size=VOCAB, want=want)
alone = isobit.torch.linear_logp(hidden, weight, target, want=want)

different = torch.tensor([sum(not torch.equal(getattr(shared, name), getattr(alone, name)) for name in want)])
different = different.to(device)
dist.all_reduce(different)
if rank == 0:
    print(f"{ranks} ranks, borders {borders}: {int(different)} outputs differ from one device's")
dist.destroy_process_group()
raise SystemExit(int(different) != 0)
