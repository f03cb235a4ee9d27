"""Microseconds that a call of isobit.torch costs in eager mode, beside PyTorch's own operations, as JSON lines.

  scripts/torch_overhead.py [--device cuda]

The operands are tiny, so that a GPU finishes before the next call: what is timed is Python, the C interface and the
launch. Processor time of the calling thread is what counts; a machine that is busy otherwise does not disturb it.
"""

import argparse
import json
import time

import torch
import torch.nn.functional as F

import isobit
import isobit.torch as it
from isobit import _abi
from isobit._library import library
from isobit.torch import _call


def microseconds(call, repeats: int = 7, count: int = 2000) -> float:
    """Median over repeats of the mean over count calls."""
    for _ in range(50):
        call()
    means = []
    for _ in range(repeats):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        begin = time.thread_time_ns()
        for _ in range(count):
            call()
        means.append((time.thread_time_ns() - begin) / count / 1e3)
    return sorted(means)[repeats // 2]


def geglu_in_c(gate, up):
    """The foreign call with its args ready: the library's checks and the launch."""
    out = torch.empty_like(gate)
    args = _abi.start(_abi.GegluForwardArgs)
    args.gelu = 1
    for name, tensor in (("gate", gate), ("up", up), ("out", out)):
        _call.put(args, _call.offset(_abi.GegluForwardArgs, name), name, tensor)
    return lambda: _call.run(library.isobit_geglu_forward, args, out.device)


def calls(device: str):
    gate, up = (torch.randn(8, 64).to(device, torch.bfloat16) for _ in range(2))
    a, b = (t.clone().requires_grad_() for t in (gate, up))
    x, layout = torch.randn(8, 64).to(device, torch.bfloat16), "128x4"
    hidden, weight = (torch.randn(n, 64).to(device, torch.bfloat16) for n in (1, 128))
    target = torch.zeros(1, dtype=torch.int64, device=device)
    yield "geglu, the C call alone", geglu_in_c(gate, up)
    yield "geglu", lambda: it.geglu(gate, up, gelu="tanh")
    yield "geglu, gradient wanted", lambda: it.geglu(a, b, gelu="tanh")
    yield "geglu, through the dispatcher", lambda: torch.ops.isobit.geglu(gate, up, "tanh")
    yield "geglu_out, through the dispatcher", lambda: torch.ops.isobit.geglu_out(gate, up, "tanh", out=x)
    yield "PyTorch gelu * up", lambda: F.gelu(gate, approximate="tanh") * up
    yield "PyTorch gelu * up, gradient wanted", lambda: F.gelu(a, approximate="tanh") * b
    yield "linear_logp", lambda: it.linear_logp(hidden, weight, target, want=("logp",))
    yield "nvfp4_quantize", lambda: it.nvfp4_quantize(x, layout=layout)
    yield "PyTorch empty_like", lambda: torch.empty_like(gate)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    device = parser.parse_args().device
    torch.set_num_threads(1)
    about = {"device": torch.cuda.get_device_name() if device == "cuda" else "cpu", "torch": torch.__version__,
             "build": isobit.build_info()}  # fmt: skip
    for name, call in calls(device):
        print(json.dumps({"call": name, "microseconds": round(microseconds(call), 2), **about}), flush=True)


if __name__ == "__main__":
    main()
