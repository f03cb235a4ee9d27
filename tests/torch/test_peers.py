"""The benchmarks against other projects still find what they take from isobit: loading them needs no GPU."""

import importlib
import sys
from pathlib import Path

import pytest
import torch

PEERS = Path(__file__).resolve().parents[2] / "bench" / "peers"


@pytest.mark.parametrize("name", sorted(path.stem for path in PEERS.glob("*.py")))
def test_a_benchmark_loads(name, monkeypatch):
    monkeypatch.syspath_prepend(str(PEERS))
    monkeypatch.delitem(sys.modules, name, raising=False)
    module = importlib.import_module(name)
    is_program = '__name__ == "__main__"' in (PEERS / f"{name}.py").read_text()  # the others are parts of one
    assert not is_program or callable(module.main)


def test_the_fp64_values_are_those_of_autograd(monkeypatch):
    monkeypatch.syspath_prepend(str(PEERS))
    fp64 = importlib.import_module("linear_logp_fp64")
    monkeypatch.setattr(fp64, "CHUNK", 7)  # several chunks, the last one not whole
    torch.manual_seed(1)
    hidden, weight = torch.randn(5, 8), torch.randn(23, 8)
    target, upstream = torch.tensor([0, 6, 7, 22, 11]), torch.rand(5) - 0.5
    h, w = (x.double().requires_grad_() for x in (hidden, weight))
    logp = torch.log_softmax(h @ w.t(), -1).gather(1, target[:, None])[:, 0]
    logp.backward(upstream.double())
    assert torch.allclose(fp64.logp64(hidden, weight, target), logp, rtol=0, atol=1e-14)
    candidates = (h.grad, w.grad), (1.01 * h.grad, 0.98 * w.grad)
    exact, off = fp64.gradient_errors(hidden, weight, target, upstream, *candidates)
    assert exact == pytest.approx([0, 0], abs=1e-14)
    assert off == pytest.approx([0.01, 0.02], rel=1e-9)
