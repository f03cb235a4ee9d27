"""torch.ops.isobit.linear_logp forward: the bytes of the C call, however PyTorch reaches it."""

import pytest
import torch
from conftest import as_bits, needs_cuda, same_bits
from torch.autograd import forward_ad
from torch.distributed.tensor import DTensor

import isobit
import isobit.torch as it

EVERYTHING = ("logp", "lse", "entropy", "rank", "target_logit")


def make(device, rows=6, hidden_size=48, vocabulary=700, dtype=torch.bfloat16):
    hidden = torch.randn(rows, hidden_size).to(device, dtype)
    weight = (torch.randn(vocabulary, hidden_size) / hidden_size**0.5).to(device, dtype)
    return hidden, weight, torch.randint(vocabulary, (rows,), device=device)


def same(a: isobit.LinearLogp, b: isobit.LinearLogp) -> bool:
    return all((x is None and y is None) or same_bits(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    "options", [{}, {"softcap": 3.0, "temperature": 0.7}, {"ignore_index": None, "vocab_size": 650}]
)
def test_scores_have_the_bytes_of_the_numpy_call(device, dtype, options):
    hidden, weight, target = make(device, dtype=dtype)
    target[2] = 3 if "vocab_size" in options else -100
    target.clamp_(max=600)
    bias = torch.randn(len(weight)).to(device)
    got = it.linear_logp(hidden, weight, target, bias=bias, want=EVERYTHING, **options)
    arrays = [as_bits(t) for t in (hidden, weight, target)]
    expected = isobit.linear_logp(*arrays, bias=as_bits(bias), want=EVERYTHING, **options)
    for name in EVERYTHING:
        assert as_bits(getattr(got, name)).tobytes() == getattr(expected, name).tobytes(), name


def test_values_are_those_of_log_softmax(device):
    hidden, weight, target = make(device)
    got = it.linear_logp(hidden, weight, target, want=("logp", "lse", "entropy"))
    logits = hidden.double() @ weight.double().T
    wanted = torch.log_softmax(logits, -1)
    torch.testing.assert_close(got.logp.double(), wanted.gather(1, target[:, None])[:, 0], atol=2e-5, rtol=0)
    torch.testing.assert_close(got.lse.double(), logits.logsumexp(-1), atol=2e-5, rtol=0)
    torch.testing.assert_close(got.entropy.double(), -(wanted.exp() * wanted).sum(-1), atol=5e-5, rtol=0)


def test_a_row_alone_in_a_batch_and_shuffled_is_one_and_the_same(device):
    hidden, weight, target = make(device, rows=37)
    whole = it.linear_logp(hidden, weight, target, want=EVERYTHING)
    order = torch.randperm(37, device=device)
    shuffled = it.linear_logp(hidden[order], weight, target[order], want=EVERYTHING)
    assert same(isobit.LinearLogp(*(x if x is None else x[order] for x in whole)), shuffled)
    alone = it.linear_logp(hidden[5:6], weight, target[5:6], want=EVERYTHING)
    assert same(isobit.LinearLogp(*(x if x is None else x[5:6] for x in whole)), alone)


def test_leading_dimensions_several_ids_and_strides(device):
    hidden, weight, _ = make(device, rows=6)
    target = torch.randint(700, (6, 3), device=device)
    flat = it.linear_logp(hidden, weight, target, want=("logp", "lse", "rank"))
    shaped = it.linear_logp(hidden.view(2, 3, 48), weight, target.view(2, 3, 3), want=("logp", "lse", "rank"))
    assert shaped.logp.shape == (2, 3, 3)
    assert shaped.lse.shape == (2, 3)
    assert same_bits(shaped.logp.view(6, 3), flat.logp)
    assert same_bits(shaped.rank.view(6, 3), flat.rank)
    wide = torch.randn(12, 60).to(hidden)
    wide[::2, 7:55] = hidden
    assert same_bits(it.linear_logp(wide[::2, 7:55], weight, target).logp, flat.logp)
    assert same_bits(it.linear_logp(hidden.T.contiguous().T, weight, target).logp, flat.logp)
    one = it.linear_logp(hidden[0], weight, target[0, 0])
    assert one.logp.shape == ()
    assert same_bits(one.logp, flat.logp[0, 0])


def test_temperature_per_row(device):
    hidden, weight, target = make(device, rows=4)
    each = torch.tensor([0.5, 1.0, 2.0, 0.7], device=device)
    got = it.linear_logp(hidden, weight, target, temperature=each).logp
    for row, value in enumerate((0.5, 1.0, 2.0)):
        alone = it.linear_logp(hidden[row : row + 1], weight, target[row : row + 1], temperature=value).logp
        assert same_bits(got[row : row + 1], alone)
    assert same_bits(it.linear_logp(hidden, weight, target, temperature=each[:, None]).logp, got)


def test_the_operator_and_the_short_way_agree(device):
    hidden, weight, target = make(device)
    logp, lse, entropy = torch.ops.isobit.linear_logp(hidden, weight, target, None, None, 1.0, 0.0, -100, 0, True)
    short = it.linear_logp(hidden, weight, target, want=("logp", "lse", "entropy"))
    assert same(short, isobit.LinearLogp(logp, lse, entropy))
    # under a graph of gradients the operator is taken
    through = it.linear_logp(hidden.requires_grad_(), weight, target, want=("logp", "lse", "entropy"))
    assert through.logp.requires_grad
    assert same(short, through)


def test_opcheck_of_the_scorer(device):
    hidden, weight, target = make(device)
    arguments = (hidden, weight, target, None, None, 1.0, 0.0, -100, 0, True, True, True, 2 if device == "cpu" else 0)
    torch.library.opcheck(torch.ops.isobit.linear_logp_score.default, arguments)


def test_compile_takes_the_whole_graph_with_dynamic_shapes(device):
    def score(hidden, weight, target):
        return it.linear_logp(hidden * 2, weight, target, want=("logp", "entropy"))

    compiled = torch.compile(score, fullgraph=True, dynamic=True, backend="aot_eager")
    for rows in (3, 8, 1):
        hidden, weight, target = make(device, rows=rows)
        with torch.no_grad():
            assert same(compiled(hidden, weight, target), score(hidden, weight, target))


def test_autocast_casts_like_a_linear_layer(device):
    hidden, weight, target = make(device, dtype=torch.float32)
    with torch.autocast(device, torch.bfloat16):
        got = it.linear_logp(hidden, weight, target).logp
    assert same_bits(got, it.linear_logp(hidden.bfloat16(), weight.bfloat16(), target).logp)


def test_validate_and_special_rows(device):
    hidden, weight, target = make(device)
    assert it.linear_logp_validate(hidden, weight, target) == -1
    target[1], target[3] = -100, 700
    hidden[1] = float("nan")
    assert it.linear_logp_validate(hidden, weight, target) == 3
    logp = it.linear_logp(hidden, weight, target).logp
    assert logp[1] == 0
    assert logp.isnan().tolist() == [False, False, False, True, False, False]


def test_refusals(device):
    hidden, weight, target = make(device)
    with pytest.raises(ValueError, match=r"weight.*48.*47"):
        it.linear_logp(hidden, weight[:, :47], target)
    with pytest.raises(ValueError, match="target: expected"):
        it.linear_logp(hidden, weight, target[:3])
    with pytest.raises(ValueError, match=r"want.*'nonsense'"):
        it.linear_logp(hidden, weight, target, want=("nonsense",))
    with pytest.raises(ValueError, match="weight"):
        it.linear_logp(hidden, weight.half(), target)
    with pytest.raises(TypeError, match="hidden: expected one of"):
        it.linear_logp(hidden.double(), weight, target)
    with pytest.raises(ValueError, match="scoring"):
        it.linear_logp(hidden.requires_grad_(), weight, target, want=("rank",))


def test_a_dtensor_is_refused_with_what_to_do(device, monkeypatch):
    hidden, weight, target = make(device)
    # Making a real one needs a process group; the refusal looks at the class alone.
    fake = weight.as_subclass(type("FakeDTensor", (torch.Tensor,), {}))
    monkeypatch.setattr(torch.distributed.tensor, "DTensor", type(fake))
    with pytest.raises(TypeError, match=r"weight: expected a plain tensor, got a DTensor; pass weight.to_local\(\)"):
        it.linear_logp(hidden, fake, target)
    assert DTensor is not type(fake)


@needs_cuda
def test_the_current_stream_is_used_and_captured_in_a_graph():
    hidden, weight, target = make("cuda", rows=130, hidden_size=256, vocabulary=5000)
    expected = it.linear_logp(hidden, weight, target).logp
    source, side, graph = torch.zeros_like(hidden), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)  # a call on another stream would read the zeros
        source.copy_(hidden)
        got = it.linear_logp(source, weight, target).logp
    side.synchronize()
    assert same_bits(got, expected)
    with torch.cuda.graph(graph):
        got = it.linear_logp(source, weight, target).logp
    for scale in (1, 0.5):
        source.copy_(hidden * scale)
        graph.replay()
        torch.cuda.synchronize()
        assert same_bits(got, it.linear_logp(hidden * scale, weight, target).logp)


@needs_cuda
def test_a_gpu_has_the_bytes_of_the_host():
    hidden, weight, target = make("cuda", rows=67, hidden_size=320, vocabulary=3001)
    want = ("logp", "lse", "entropy")
    on_gpu = it.linear_logp(hidden, weight, target, want=want)
    on_cpu = it.linear_logp(hidden.cpu(), weight.cpu(), target.cpu(), want=want)
    for name in want:
        assert as_bits(getattr(on_gpu, name)).tobytes() == as_bits(getattr(on_cpu, name)).tobytes(), name


def test_a_tangent_of_forward_mode_is_refused(device):
    hidden, weight = (torch.randn(rows, 32).to(device, torch.bfloat16) for rows in (5, 40))
    target, scales = torch.randint(40, (5,), device=device), torch.ones(5, device=device)
    for enabled in (True, False):
        with torch.set_grad_enabled(enabled), forward_ad.dual_level():
            h, w, s = (forward_ad.make_dual(x, torch.ones_like(x)) for x in (hidden, weight, scales))
            for name, inputs, options in (
                ("hidden", (h, weight, target), {}),
                ("hidden", (h[None], weight, target[None]), {}),
                ("hidden", (h, weight, target), {"want": ("logp", "rank")}),
                ("weight", (hidden, w, target), {}),
                ("temperature", (hidden, weight, target), {"temperature": s}),
            ):
                with pytest.raises(NotImplementedError, match=f"{name}: expected a tensor without a tangent"):
                    it.linear_logp(*inputs, **options)
            assert it.linear_logp(hidden, weight, target).logp.shape == (5,)
