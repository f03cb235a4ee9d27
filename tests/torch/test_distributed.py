"""A vocabulary split over processes gives the bytes of one process with the whole of it."""

import itertools

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from conftest import same_bits

import isobit.rl_kernel
import isobit.torch as it
from isobit.torch.distributed import linear_logp_sharded

VOCABULARY = 700
WANT = ("logp", "lse", "entropy")


def operands():
    torch.manual_seed(7)
    hidden, weight = torch.randn(11, 48).bfloat16(), (torch.randn(VOCABULARY, 48) / 7).bfloat16()
    return hidden, weight, torch.randint(VOCABULARY, (11,)), torch.randn(VOCABULARY)


def compare(rank: int, edges: tuple[int, ...]) -> None:
    hidden, weight, target, bias = operands()
    mine = slice(edges[rank], edges[rank + 1])
    shard = {"first_id": edges[rank], "vocab_size": VOCABULARY, "bias": bias[mine], "want": WANT}
    whole = it.linear_logp(hidden, weight, target, bias=bias, want=WANT)
    for known in (None, [(a, b - a) for a, b in itertools.pairwise(edges)]):
        found = linear_logp_sharded(hidden, weight[mine], target, shards=known, **shard)
        assert all(same_bits(getattr(whole, name), getattr(found, name)) for name in WANT)
    logp = isobit.rl_kernel.linear_logp(hidden, weight[mine], target, bias[mine], tp_group=dist.group.WORLD,
                                        vocab_start_index=edges[rank], global_vocab_size=VOCABULARY)  # fmt: skip
    assert same_bits(logp, whole.logp)


def worker(rank: int, ranks: int, store: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    for edges in ((0, 350, 700), (0, 131, 700), (0, 0, 700)):
        compare(rank, edges)
    dist.destroy_process_group()


def test_two_ranks_give_the_bytes_of_one(tmp_path):
    mp.spawn(worker, (2, tmp_path / "store"), nprocs=2)


def test_a_call_that_could_want_a_gradient_is_refused():
    hidden, weight, target, _ = operands()
    with pytest.raises(ValueError, match="scoring"):
        linear_logp_sharded(hidden.requires_grad_(), weight, target, first_id=0, vocab_size=VOCABULARY)
    with pytest.raises(ValueError, match="want"):
        linear_logp_sharded(hidden, weight, target, first_id=0, vocab_size=VOCABULARY, want=("rank",))
