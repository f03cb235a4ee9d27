"""The benchmarks against other projects still find what they take from isobit: loading them needs no GPU."""

import importlib
import sys
from pathlib import Path

import pytest

PEERS = Path(__file__).resolve().parents[2] / "bench" / "peers"


@pytest.mark.parametrize("name", sorted(path.stem for path in PEERS.glob("*.py")))
def test_a_benchmark_loads(name, monkeypatch):
    monkeypatch.syspath_prepend(str(PEERS))
    monkeypatch.delitem(sys.modules, name, raising=False)
    module = importlib.import_module(name)
    is_program = '__name__ == "__main__"' in (PEERS / f"{name}.py").read_text()  # the others are parts of one
    assert not is_program or callable(module.main)
