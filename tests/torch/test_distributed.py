"""A vocabulary split over processes gives the bytes of one process with the whole of it."""

import itertools

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from conftest import same_bits

import isobit.rl_kernel
import isobit.torch as it
import isobit.verl
from isobit.torch.distributed import linear_logp_sharded

VOCABULARY = 700
WANT = ("logp", "lse", "entropy")


def operands(device: str = "cpu"):
    torch.manual_seed(7)
    hidden, weight = torch.randn(11, 48).bfloat16(), (torch.randn(VOCABULARY, 48) / 7).bfloat16()
    return [t.to(device) for t in (hidden, weight, torch.randint(VOCABULARY, (11,)), torch.randn(VOCABULARY))]


def compare(rank: int, device: str, edges: tuple[int, ...]) -> None:
    hidden, weight, target, bias = operands(device)
    mine = slice(edges[rank], edges[rank + 1])
    shard = {"first_id": edges[rank], "vocab_size": VOCABULARY, "bias": bias[mine], "want": WANT}
    whole = it.linear_logp(hidden, weight, target, bias=bias, want=WANT)
    for known in (None, [(a, b - a) for a, b in itertools.pairwise(edges)]):
        found = linear_logp_sharded(hidden, weight[mine], target, shards=known, **shard)
        assert all(same_bits(getattr(whole, name), getattr(found, name)) for name in WANT)
    logp = isobit.rl_kernel.linear_logp(hidden, weight[mine], target, bias[mine], tp_group=dist.group.WORLD,
                                        vocab_start_index=edges[rank], global_vocab_size=VOCABULARY)  # fmt: skip
    assert same_bits(logp, whole.logp)


def gradients(hidden, weight, bias, call):
    """logp, d_hidden, d_weight and d_bias for upstream gradients that are the same on every rank."""
    a, w, b = (t.clone().requires_grad_() for t in (hidden, weight, bias))
    found = call(a, w, b)
    sum(
        (getattr(found, name) * torch.linspace(-1, k, 11, device=a.device)).sum() for k, name in enumerate(WANT, 1)
    ).backward()
    return found.logp.detach(), a.grad, w.grad, b.grad


def compare_gradients(rank: int, device: str) -> None:
    hidden, weight, target, bias = operands(device)
    weight, target, bias = weight[:640], target % 640, bias[:640]
    mine = slice(320 * rank, 320 * rank + 320)
    whole = gradients(hidden, weight, bias, lambda a, w, b: it.linear_logp(a, w, target, bias=b, want=WANT))
    split = gradients(hidden, weight[mine], bias[mine], lambda a, w, b: linear_logp_sharded(
        a, w, target, bias=b, want=WANT, first_id=320 * rank, vocab_size=640))  # fmt: skip
    assert same_bits(whole[0], split[0])
    assert same_bits(whole[1], split[1])
    assert same_bits(whole[2][mine], split[2])
    assert same_bits(whole[3][mine], split[3])
    verls(rank, hidden, weight, target, mine)


def verls(rank: int, hidden, weight, target, mine) -> None:
    """verl's call: the same values, and gradients of hidden that add up to that of one rank."""
    a, b = (hidden.clone().requires_grad_() for _ in range(2))
    logp, entropy = isobit.verl.linear_cross_entropy(a, weight[mine], target, 0.5, "none", dist.group.WORLD)
    one = it.linear_logp(b, weight, target, temperature=0.5, want=WANT)
    assert same_bits(logp, one.logp)
    assert same_bits(entropy, one.entropy)
    logp.sum().backward()
    one.logp.sum().backward()
    assert same_bits(a.grad, b.grad if rank == 0 else torch.zeros_like(b.grad))


def worker(rank: int, ranks: int, store: str, kind: str) -> None:
    """On a GPU a rank has one of its own, and NCCL carries the states."""
    device = "cpu" if kind == "cpu" else f"cuda:{rank}"
    if kind == "cuda":
        torch.cuda.set_device(rank)
    backend = "gloo" if kind == "cpu" else "nccl"
    dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=ranks)
    for edges in ((0, 350, 700), (0, 131, 700), (0, 0, 700)):
        compare(rank, device, edges)
    compare_gradients(rank, device)
    dist.destroy_process_group()


@pytest.mark.parametrize("kind", ["cpu"] + ["cuda"] * (torch.cuda.device_count() > 1))
def test_two_ranks_give_the_bytes_of_one(tmp_path, kind):
    mp.spawn(worker, (2, tmp_path / "store", kind), nprocs=2)


def test_refusals():
    hidden, weight, target, _ = operands()
    with pytest.raises(ValueError, match="want"):
        linear_logp_sharded(hidden, weight, target, first_id=0, vocab_size=VOCABULARY, want=("rank",))
