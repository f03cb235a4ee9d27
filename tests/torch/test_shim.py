"""Calls through TVM-FFI and through ctypes: the same bytes and the same refusals."""

import pytest
import torch
from conftest import same_bits

import isobit
import isobit.torch as it
from isobit.torch import _call, _geglu, _linear_logp, _nvfp4


def test_the_shim_is_used():
    assert _call.shim is not None


@pytest.fixture
def both_ways(monkeypatch):
    """A function that makes a call through the shim, then through ctypes, and returns the two results."""

    def run(call):
        with monkeypatch.context() as patch:
            by_shim = call()
            patch.setattr(_geglu, "by_shim", None)
            patch.setattr(_geglu, "_backward_by_shim", None)
            patch.setattr(_linear_logp, "by_shim", None)
            patch.setattr(_nvfp4, "by_shim", None)
            return by_shim, call()

    return run


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_geglu(device, both_ways, dtype):
    x = torch.randn(7, 3, 64).to(device, dtype)
    pairs = [(x[..., :32], x[..., 32:]), (x[..., ::2], x[..., 1::2]), (x[:, 0].clone(), x[:, 1].clone())]
    for gate, up in pairs:
        a, b = both_ways(lambda gate=gate, up=up: it.geglu(gate, up, gelu="erf"))
        assert same_bits(a, b)
        for a, b in zip(*both_ways(lambda gate=gate, up=up: _geglu._backward(gate, gate, up, "tanh", True))):
            assert same_bits(a, b)
    a, b = both_ways(lambda: it.geglu_packed(x, gelu="tanh", layout="interleaved"))
    assert same_bits(a, b)


@pytest.mark.parametrize("columns", [None, 2])
def test_linear_logp(device, both_ways, columns):
    hidden, weight = (torch.randn(rows, 64).to(device, torch.bfloat16) for rows in (9, 500))
    target = torch.randint(500, (9,) if columns is None else (9, columns)).to(device)
    target[4] = -7
    scales = torch.rand(9, device=device) + 0.5
    cases = [
        {},
        {"bias": torch.randn(500, device=device), "softcap": 5.0, "vocab_size": 499, "ignore_index": None},
        {
            "temperature": scales,
            "ignore_index": -7,
            "want": ("logp", "lse", "entropy", "rank", "target_logit"),
            "top": 4,
        },
    ]
    for options in cases:
        found, expected = both_ways(lambda options=options: it.linear_logp(hidden, weight, target, **options))
        for name, a, b in zip(found._fields, found, expected):
            assert a is b is None or same_bits(a, b), name
    lead, _ = both_ways(lambda: it.linear_logp(hidden.view(3, 3, 64), weight, target.view(3, 3, *target.shape[1:])))
    assert same_bits(lead.logp.flatten(0, 1), it.linear_logp(hidden, weight, target).logp)


def test_nvfp4(device, both_ways):
    x, weight = torch.randn(5, 64, device=device).bfloat16(), torch.randn(256, 64, device=device).bfloat16()
    encode = torch.tensor([300.0], device=device)

    def run():
        packed, heavy = it.nvfp4_quantize(x, global_scale=encode), it.nvfp4_quantize(weight, layout="8x4")
        hidden = it.nvfp4_geglu(packed, heavy, gelu="tanh", x_scale=1 / encode, up_scale=0.5, out_scale=2.0)
        return *packed[:2], *hidden[:2], it.nvfp4_linear(packed, heavy, weight_scale=0.25, dtype=torch.float32)

    for a, b in zip(*both_ways(run)):
        assert same_bits(a, b)


def test_refusals_have_the_same_class_and_text(device, both_ways):
    gate, up = torch.zeros(2, 4, device=device), torch.zeros(3, 4, device=device)
    hidden, weight = torch.zeros(2, 4, device=device, dtype=torch.bfloat16), torch.zeros(5, 3, device=device).bfloat16()
    target = torch.zeros(2, dtype=torch.int64, device=device)

    def error_of(call):
        def run():
            with pytest.raises(isobit.InvalidArgumentError) as caught:
                call()
            return caught.value.status, str(caught.value)

        return run

    for call in (lambda: it.geglu(gate, up, gelu="tanh"), lambda: it.linear_logp(hidden, weight, target)):
        first, second = both_ways(error_of(call))
        assert first == second


def test_memory_of_the_caller_is_checked(device):
    hidden, weight = (torch.randn(rows, 64).to(device, torch.bfloat16) for rows in (9, 500))
    target = torch.randint(500, (9,)).to(device)
    logp = torch.zeros(9, device=device)
    memory = torch.zeros(1 << 24, dtype=torch.uint8, device=device)
    options = (None, None, 1.0, 0.0, False, 0, 0, logp, None, None)

    def score(workspace):
        _call.shim.linear_logp(hidden, weight, target, *options, None, None, None, None, workspace)

    def save(saved, workspace=memory):
        _call.shim.linear_logp_save(hidden, weight, target, *options, saved, workspace)

    score(memory)
    save(memory[:288].clone())
    strided, floats = memory[::2], memory.view(torch.float32)
    for call in (score, save, lambda workspace: save(memory[:288].clone(), workspace)):
        name = "saved" if call is save else "workspace"
        with pytest.raises(TypeError, match=f"{name}: expected uint8, got float32"):
            call(floats)
        with pytest.raises(ValueError, match=f"{name}: expected dense memory, got strides"):
            call(strided)
        if device != "cpu":
            with pytest.raises(ValueError, match=f"{name}: expected memory on cuda:0, got cpu:0"):
                call(memory.cpu())
    with pytest.raises(ValueError, match="saved: expected at least 288 bytes, got 287"):
        save(memory[:287].clone())
