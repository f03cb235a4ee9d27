"""Gradients of isobit.torch.linear_logp against PyTorch in double precision, and what autograd does with them."""

import pytest
import torch
from conftest import needs_cuda, same_bits
from torch.utils.checkpoint import checkpoint

import isobit
import isobit.torch as it

WANT = ("logp", "lse", "entropy")


def make(device, rows=7, hidden_size=48, vocabulary=300, dtype=torch.bfloat16):
    hidden = torch.randn(rows, hidden_size).to(device, dtype)
    weight = (torch.randn(vocabulary, hidden_size) / hidden_size**0.5).to(device, dtype)
    return hidden, weight, torch.randint(vocabulary, (rows,), device=device)


def leaves(*tensors):
    return [t.detach().clone().requires_grad_() for t in tensors]


def loss(found, upstream):
    return sum((getattr(found, name) * d).sum() for name, d in zip(WANT, upstream))


def oracle(hidden, weight, target, bias, softcap=0.0, temperature=1.0):
    """logp, lse, entropy by PyTorch's own operations in double precision."""
    z = hidden @ weight.T + bias
    if softcap:
        z = softcap * torch.tanh(z / softcap)
    z = z / temperature
    log_p = z.log_softmax(-1)
    return log_p.gather(1, target[:, None])[:, 0], z.logsumexp(-1), -(log_p.exp() * log_p).sum(-1)


def close(got, wanted):
    """dz is rounded to bf16 once and the sums of it to bf16 at the end: 2^-8 of the largest gradient covers both."""
    torch.testing.assert_close(got.double(), wanted, rtol=2**-7, atol=2**-8 * wanted.abs().max().item())


@pytest.mark.parametrize("options", [{}, {"softcap": 3.0, "temperature": 0.7}])
def test_gradients_are_those_of_pytorch(device, options):
    hidden, weight, target = make(device)
    bias, upstream = torch.randn(300, device=device), [torch.randn(7, device=device) for _ in WANT]
    a, w, b = leaves(hidden, weight, bias)
    loss(it.linear_logp(a, w, target, bias=b, want=WANT, **options), upstream).backward()
    p, q, r = leaves(hidden.double(), weight.double(), bias.double())
    sum((x * d).sum() for x, d in zip(oracle(p, q, target, r, **options), upstream)).backward()
    assert (a.grad.dtype, w.grad.dtype, b.grad.dtype) == (torch.bfloat16, torch.bfloat16, torch.float32)
    close(a.grad, p.grad)
    close(w.grad, q.grad)
    close(b.grad, r.grad)


def test_a_row_of_d_hidden_does_not_depend_on_its_batch(device):
    hidden, weight, target = make(device, rows=33)
    d = torch.randn(33, device=device)

    def gradient(rows):
        (a,) = leaves(hidden[rows])
        (it.linear_logp(a, weight, target[rows]).logp * d[rows]).sum().backward()
        return a.grad

    whole, order = gradient(torch.arange(33)), torch.randperm(33)
    assert same_bits(whole[order.to(device)], gradient(order))
    assert same_bits(whole[5:6], gradient(torch.tensor([5])))


def test_ignored_rows_have_no_gradient_and_leave_no_trace(device):
    hidden, weight, target = make(device)
    target[2] = target[5] = -100
    hidden[2] = float("nan")
    a, w = leaves(hidden, weight)
    it.linear_logp(a, w, target).logp.sum().backward()
    assert (a.grad[[2, 5]] == 0).all()
    kept = [0, 1, 3, 4, 6]
    b, v = leaves(hidden[kept], weight)
    it.linear_logp(b, v, target[kept]).logp.sum().backward()
    assert same_bits(a.grad[kept], b.grad)
    assert same_bits(w.grad, v.grad)


def test_all_rows_ignored_gives_zeros_and_stays_connected(device):
    hidden, weight, target = make(device)
    a, w = leaves(hidden, weight)
    out = it.linear_logp(a, w, torch.full_like(target, -100)).logp.sum()
    out.backward()
    assert out.item() == 0
    assert (a.grad == 0).all()
    assert (w.grad == 0).all()


def test_no_rows(device):
    hidden, weight, target = make(device)
    a, w = leaves(hidden[:0], weight)
    it.linear_logp(a, w, target[:0]).logp.sum().backward()
    assert a.grad.shape == (0, 48)
    assert (w.grad == 0).all()
    (b,) = leaves(hidden[:0])
    it.linear_logp(b, weight, target[:0]).logp.sum().backward()
    assert b.grad.shape == (0, 48)


def test_only_what_is_needed_is_computed(device):
    hidden, weight, target = make(device)
    (a,) = leaves(hidden)
    it.linear_logp(a, weight, target).lse.sum().backward()
    b, w = leaves(hidden, weight)
    it.linear_logp(b, w, target).lse.sum().backward()
    assert same_bits(a.grad, b.grad)
    (v,) = leaves(weight)
    it.linear_logp(hidden, v, target).lse.sum().backward()
    assert same_bits(v.grad, w.grad)


def test_several_ids_leading_dimensions_and_expanded_gradients(device):
    hidden, weight, _ = make(device, rows=6)
    target = torch.randint(300, (2, 3, 2), device=device)
    a, w = leaves(hidden.view(2, 3, 48), weight)
    it.linear_logp(a, w, target).logp.mean().backward()
    p, q = leaves(hidden.double(), weight.double())
    (p @ q.T).log_softmax(-1).gather(1, target.view(6, 2)).mean().backward()
    close(a.grad.view(6, 48), p.grad)
    close(w.grad, q.grad)


def test_opcheck(device):
    hidden, weight, target = make(device, rows=3)
    a, w = leaves(hidden, weight)
    bias = torch.randn(300, device=device, requires_grad=True)
    arguments = (a, w, target, bias, None, 1.0, 0.0, -100, 0, True)
    torch.library.opcheck(torch.ops.isobit.linear_logp_save.default, arguments)
    torch.library.opcheck(torch.ops.isobit.linear_logp.default, arguments, test_utils="test_autograd_registration")


def test_the_record_of_the_forward_pass_changes_no_bit(device):
    hidden, weight, target = make(device, rows=9)
    a, w, b, v = leaves(hidden, weight, hidden, weight)
    options = (None, None, 0.7, 4.0, -100, 0, True)
    with_record = torch.ops.isobit.linear_logp_save(a, w, target, *options)
    without = torch.ops.isobit.linear_logp(b, v, target, *options)
    assert all(same_bits(x, y) for x, y in zip(with_record, without))
    sum(x.sum() for x in with_record[:3]).backward()
    sum(x.sum() for x in without).backward()
    assert same_bits(a.grad, b.grad)
    assert same_bits(w.grad, v.grad)


def test_compile_and_checkpointing_give_the_same_bits(device):
    def step(hidden, weight, target):
        found = it.linear_logp(hidden * 2, weight, target, want=("logp", "entropy"))
        return found.logp.mean() + 0.1 * found.entropy.mean()

    compiled = torch.compile(step, fullgraph=True, dynamic=True, backend="aot_eager")
    for rows in (3, 8):
        hidden, weight, target = make(device, rows=rows)
        a, w, b, v, c, u = leaves(hidden, weight, hidden, weight, hidden, weight)
        step(a, w, target).backward()
        compiled(b, v, target).backward()
        checkpoint(step, c, u, target, use_reentrant=False).backward()
        assert same_bits(a.grad, b.grad)
        assert same_bits(w.grad, v.grad)
        assert same_bits(a.grad, c.grad)
        assert same_bits(w.grad, u.grad)


def test_autocast_gives_gradients_in_the_parameters_dtype(device):
    hidden, weight, target = make(device, dtype=torch.float32)
    a, w = leaves(hidden, weight)
    with torch.autocast(device, torch.bfloat16):
        out = it.linear_logp(a, w, target).logp.sum()
    out.backward()
    assert a.grad.dtype == w.grad.dtype == torch.float32
    b, v = leaves(hidden.bfloat16(), weight.bfloat16())
    it.linear_logp(b, v, target).logp.sum().backward()
    assert torch.equal(a.grad, b.grad.float())
    assert torch.equal(w.grad, v.grad.float())


def test_second_derivatives_and_fp16_gradients_are_refused(device):
    hidden, weight, target = make(device)
    a, w = leaves(hidden, weight)
    (first,) = torch.autograd.grad(it.linear_logp(a, w, target).logp.sum(), a, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivatives"):
        first.sum().backward()
    half, head = leaves(hidden.half(), weight.half())
    with pytest.raises(ValueError, match="bf16"):
        it.linear_logp(half, head, target).logp.sum().backward()


@needs_cuda
def test_a_training_step_is_captured_in_a_graph():
    hidden, weight, target = make("cuda", rows=64, hidden_size=128, vocabulary=1000)
    a, w = leaves(hidden, weight)

    def step():
        it.linear_logp(a, w, target, want=WANT).logp.sum().backward()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
        a.grad = w.grad = None
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    graph.replay()
    torch.cuda.synchronize()
    b, v = leaves(hidden, weight)
    it.linear_logp(b, v, target, want=WANT).logp.sum().backward()
    assert same_bits(a.grad, b.grad)
    assert same_bits(w.grad, v.grad)


def test_a_record_that_is_too_small_is_refused(device):
    hidden, weight, target = make(device, rows=5)
    options = (None, None, 1.0, 0.0, -100, 0)
    *_, saved = torch.ops.isobit.linear_logp_save(hidden, weight, target, *options, False)
    upstream = (torch.ones(5, device=device), None, None, hidden, weight, target)
    torch.ops.isobit.linear_logp_backward(*upstream, *options, saved, True, True, False)
    for wrong in (saved[:-1], saved.view(torch.float32), saved[::2]):
        with pytest.raises(ValueError, match="saved: expected"):
            torch.ops.isobit.linear_logp_backward(*upstream, *options, wrong, True, True, False)


def test_a_limit_of_the_workspace_changes_no_bit(device):
    hidden, weight, target = make(device, rows=40)

    def score():
        found = it.linear_logp(hidden, weight, target, want=("logp", "entropy"))
        return found.logp, found.entropy

    def train():
        a, w = leaves(hidden, weight)
        it.linear_logp(a, w, target).logp.sum().backward()
        return a.grad, w.grad

    def under_the_least_limit(call):
        """A step may be refused more than once: its backward pass may want more than its forward pass."""
        limit, refusals = 0, 0
        while True:
            it.set_workspace_limit(limit)
            try:
                return call(), refusals
            except isobit.Error as error:
                wanted = int(str(error).split("workspace_bytes: expected ")[1].split()[0])
                assert wanted > limit
                limit, refusals = wanted, refusals + 1

    try:
        for call in (score, train):
            it.set_workspace_limit(None)
            expected = call()
            results, refusals = under_the_least_limit(call)
            assert refusals > 0
            for one, other in zip(expected, results, strict=True):
                assert same_bits(one, other)
    finally:
        it.set_workspace_limit(None)
    with pytest.raises(ValueError, match="limit: expected"):
        it.set_workspace_limit(-1)
