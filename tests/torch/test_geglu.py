"""torch.ops.isobit.geglu: the bytes of the C call, gradients, and everything that PyTorch does with an operator."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from conftest import as_bits, needs_cuda, same_bits
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

import isobit
import isobit.torch as it

DTYPES = [torch.bfloat16, torch.float16, torch.float32]


def make(device, dtype=torch.bfloat16, shape=(5, 24)):
    return [torch.randn(shape).to(device, dtype) for _ in range(3)]


def leaves(*tensors):
    return [t.detach().clone().requires_grad_() for t in tensors]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", ["tanh", "erf"])
def test_forward_and_backward_have_the_bytes_of_the_numpy_call(device, dtype, form):
    gate, up, d_out = make(device, dtype)
    a, b = leaves(gate, up)
    out = it.geglu(a, b, gelu=form)
    out.backward(d_out)
    expected = isobit.geglu(as_bits(gate), as_bits(up), gelu=form)
    d_gate, d_up = isobit.geglu_backward(as_bits(d_out), as_bits(gate), as_bits(up), gelu=form)
    assert as_bits(out).tobytes() == expected.tobytes()
    assert as_bits(a.grad).tobytes() == d_gate.tobytes()
    assert as_bits(b.grad).tobytes() == d_up.tobytes()


@pytest.mark.parametrize("form", ["tanh", "erf"])
def test_values_are_those_of_pytorch(device, form):
    gate, up, d_out = make(device, torch.float32)
    a, b, c, d = leaves(gate, up, gate, up)
    it.geglu(a, b, gelu=form).backward(d_out)
    (F.gelu(c, approximate="tanh" if form == "tanh" else "none") * d).backward(d_out)
    torch.testing.assert_close(a.grad, c.grad, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(b.grad, d.grad, rtol=1e-5, atol=1e-5)


def test_the_operator_and_the_short_way_agree(device):
    gate, up, d_out = make(device)
    a, b, c, d = leaves(gate, up, gate, up)
    out = it.geglu(a, b, gelu="tanh")
    op = torch.ops.isobit.geglu(c, d, "tanh")
    out.backward(d_out)
    op.backward(d_out)
    assert same_bits(out, op)
    assert same_bits(a.grad, c.grad)
    assert same_bits(b.grad, d.grad)
    into = torch.empty_like(gate)
    torch.ops.isobit.geglu_out(gate, up, "tanh", out=into)
    assert same_bits(into, out)


@pytest.mark.parametrize("layout", ["stacked", "interleaved"])
def test_packed_has_the_bytes_of_the_pair(device, layout):
    gate, up, d_out = make(device, shape=(2, 3, 24))
    a, b = leaves(gate, up)
    out = it.geglu(a, b, gelu="erf")
    out.backward(d_out)
    join = (
        (lambda p, q: torch.cat([p, q], -1))
        if layout == "stacked"
        else (lambda p, q: torch.stack([p, q], -1).flatten(-2))
    )
    (x,) = leaves(join(gate, up))
    packed = it.geglu_packed(x, gelu="erf", layout=layout)
    packed.backward(d_out)
    assert same_bits(packed, out)
    assert same_bits(x.grad, join(a.grad, b.grad))
    op = torch.ops.isobit.geglu_packed(x.detach(), "erf", layout)
    assert same_bits(op, out)


def variants(device):
    gate, up, _ = make(device, shape=(4, 6, 8))
    wide = torch.randn(4, 6, 19).to(device, torch.bfloat16)
    pairs = torch.randn(24, 8, 2).to(device, torch.bfloat16)
    return {
        "permuted": (gate.permute(1, 0, 2), up.permute(1, 0, 2)),
        "transposed": (gate.transpose(1, 2), up.transpose(1, 2)),
        "offset": (wide[:, :, 1:9], wide[:, :, 9:17]),
        "interleaved": (pairs[:, :, 0], pairs[:, :, 1]),
        "expanded": (gate[:1].expand(4, 6, 8), up),
        "empty": (gate[:0], up[:0]),
        "one row": (gate[0, 0], up[0, 0]),
        "five dimensions": (gate.view(2, 2, 3, 2, 8), up.view(2, 2, 3, 2, 8)),
    }


@pytest.mark.parametrize("name", ["permuted", "transposed", "offset", "interleaved", "expanded", "empty", "one row",
                                  "five dimensions"])  # fmt: skip
def test_strides_change_no_bit(device, name):
    gate, up = variants(device)[name]
    a, b, c, d = leaves(gate, up, gate.contiguous(), up.contiguous())
    a.data, b.data = gate, up
    one, two = it.geglu(a, b, gelu="tanh"), it.geglu(c, d, gelu="tanh")
    assert one.is_contiguous()
    assert same_bits(one, two)
    one.sum().backward()  # an expanded gradient
    two.sum().backward()
    assert same_bits(a.grad, c.grad)
    assert same_bits(b.grad, d.grad)


@pytest.mark.parametrize("name", ["permuted", "offset", "empty"])
def test_opcheck(device, name):
    gate, up = (t.detach().requires_grad_() for t in variants(device)[name])
    torch.library.opcheck(torch.ops.isobit.geglu.default, (gate, up, "tanh"))
    torch.library.opcheck(torch.ops.isobit.geglu_packed.default, (gate, "erf", "stacked"))
    torch.library.opcheck(torch.ops.isobit.geglu_packed.default, (gate, "erf", "interleaved"))
    out = torch.empty(gate.shape, dtype=gate.dtype, device=device)
    torch.library.opcheck(torch.ops.isobit.geglu_out.default, (gate.detach(), up.detach(), "tanh"), {"out": out})


def test_compile_takes_the_whole_graph_with_dynamic_shapes(device):
    def block(x, w):
        gate, up = F.linear(x, w).chunk(2, -1)
        return it.geglu(gate, up, gelu="tanh").float().square().sum()

    compiled = torch.compile(block, fullgraph=True, dynamic=True, backend="aot_eager")
    w = torch.randn(32, 8).to(device, torch.bfloat16)
    for rows in (3, 7, 1):
        x = torch.randn(rows, 8).to(device, torch.bfloat16)
        a, b, v, u = leaves(x, x, w, w)
        block(a, v).backward()
        compiled(b, u).backward()
        assert same_bits(a.grad, b.grad)
        assert same_bits(v.grad, u.grad)


def test_transforms_tracing_and_lazy_negation_reach_the_operator(device):
    gate, up, _ = make(device, torch.float32)
    expected = it.geglu(gate, up, gelu="tanh")
    with pytest.raises(RuntimeError, match="functorch"):
        torch.func.grad(lambda p: it.geglu(p, up, gelu="tanh").sum())(gate)
    assert same_bits(it.geglu(gate, torch._neg_view(up), gelu="tanh"), it.geglu(gate, -up, gelu="tanh"))
    traced = torch.jit.trace(lambda p: it.geglu(p, up, gelu="tanh"), (gate * 2,))
    assert same_bits(traced(gate), expected)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # vmap says that it goes row by row
        rows = torch.vmap(lambda p, q: it.geglu(p, q, gelu="tanh"))(gate, up)
    assert same_bits(rows, expected)


def test_checkpointing_recomputes_the_same_bits(device):
    gate, up, d_out = make(device)
    a, b, c, d = leaves(gate, up, gate, up)
    it.geglu(a, b, gelu="tanh").backward(d_out)
    checkpoint(lambda p, q: it.geglu(p, q, gelu="tanh"), c, d, use_reentrant=False).backward(d_out)
    assert same_bits(a.grad, c.grad)
    assert same_bits(b.grad, d.grad)


def test_autocast_promotes_two_dtypes(device):
    gate, up, _ = make(device)
    with torch.autocast(device, torch.bfloat16):
        out = it.geglu(gate, up.float(), gelu="tanh")
    assert same_bits(out, it.geglu(gate.float(), up.float(), gelu="tanh"))
    with pytest.raises(isobit.InvalidArgumentError, match="up"):
        it.geglu(gate, up.float(), gelu="tanh")


def test_deterministic_algorithms_and_repetition(device):
    gate, up, _ = make(device, shape=(64, 333))
    torch.use_deterministic_algorithms(True)
    try:
        first = it.geglu(gate, up, gelu="erf")
        assert all(same_bits(first, it.geglu(gate, up, gelu="erf")) for _ in range(3))
        assert same_bits(first[5:6], it.geglu(gate[5:6], up[5:6], gelu="erf"))
    finally:
        torch.use_deterministic_algorithms(False)


def test_refusals(device):
    gate, up, _ = make(device)
    with pytest.raises(ValueError, match="gelu: expected 'tanh' or 'erf'"):
        it.geglu(gate, up, gelu="silu")
    with pytest.raises(ValueError, match="up"):
        it.geglu(gate, up[:, :-1], gelu="tanh")
    with pytest.raises(TypeError, match="gate: expected one of bfloat16"):
        it.geglu(gate.double(), up.double(), gelu="tanh")
    assert it.geglu(gate.to("meta"), up.to("meta"), gelu="tanh").is_meta
    with pytest.raises(ValueError, match="layout"):
        it.geglu_packed(gate, gelu="tanh", layout="woven")
    a, b = leaves(gate, up)
    (first,) = torch.autograd.grad(torch.ops.isobit.geglu(a, b, "tanh").sum(), a, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivatives"):
        first.sum().backward()
    first = torch.autograd.grad(it.geglu(a, b, gelu="tanh").sum(), a, create_graph=True)[0]
    with pytest.raises(RuntimeError):
        first.sum().backward()


@needs_cuda
def test_the_current_stream_is_used_and_captured_in_a_graph():
    gate, up, _ = make("cuda", shape=(256, 512))
    expected = it.geglu(gate, up, gelu="tanh")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    a, b = torch.zeros_like(gate), torch.zeros_like(up)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)  # a call on another stream would read the zeros
        a.copy_(gate)
        b.copy_(up)
        out = it.geglu(a, b, gelu="tanh")
    side.synchronize()
    assert same_bits(out, expected)
    with torch.cuda.graph(graph):
        out = it.geglu(a, b, gelu="tanh")
    for scale in (1, 2):
        a.copy_(gate * scale)
        graph.replay()
        torch.cuda.synchronize()
        assert same_bits(out, it.geglu(gate * scale, up, gelu="tanh"))


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one CUDA device")
def test_the_tensors_device_is_used_not_the_current_one():
    gate, up, _ = make("cuda:1")
    assert torch.cuda.current_device() == 0
    assert same_bits(it.geglu(gate, up, gelu="tanh").cpu(), it.geglu(gate.cpu(), up.cpu(), gelu="tanh"))
    assert torch.cuda.current_device() == 0


def test_an_output_that_no_view_holds_is_refused_and_not_written_elsewhere(device):
    gate, up = (torch.randn(2, 2, 2, 3, 8, device=device) for _ in range(2))
    out = torch.zeros(2, 2, 2, 8, 3, device=device).transpose(3, 4)
    with pytest.raises(RuntimeError, match="view"):
        torch.ops.isobit.geglu_out(gate, up, "tanh", out=out)
    whole = torch.zeros_like(gate)
    torch.ops.isobit.geglu_out(gate, up, "tanh", out=whole)
    assert same_bits(whole, it.geglu(gate, up, gelu="tanh"))


def test_a_tangent_of_forward_mode_is_refused(device):
    x = torch.randn(3, 8, device=device)
    calls = (
        lambda a: it.geglu(a, x, gelu="tanh"),
        lambda a: it.geglu(x, a, gelu="tanh"),
        lambda a: it.geglu_packed(a, gelu="erf", layout="stacked"),
    )
    expected = calls[0](x)
    for enabled in (True, False):
        with torch.set_grad_enabled(enabled), forward_ad.dual_level():
            dual = forward_ad.make_dual(x, torch.ones_like(x))
            for call in calls:
                with pytest.raises(NotImplementedError, match="expected a tensor without a tangent"):
                    call(dual)
            assert same_bits(calls[0](x), expected)
    with pytest.raises(NotImplementedError, match="expected a tensor without a tangent"):
        torch.func.jvp(calls[0], (x,), (x,))
