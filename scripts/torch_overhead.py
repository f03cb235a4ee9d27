"""Microseconds that a call of isobit.torch costs in eager mode, beside PyTorch's own operations, as JSON lines.

  scripts/torch_overhead.py [--device cuda]

The operands are tiny, so that a GPU finishes before the next call: what is timed is Python, the C interface and the
launch. A batch of 200 calls follows a synchronisation, so that a full queue never counts; the record holds the fastest
batch and the median, in processor time of the calling thread. `over_c` is what a call costs beyond the C call with its
arguments ready.
"""

import argparse
import ctypes
import json
import time

import torch
import torch.nn.functional as F

import isobit
import isobit.torch as it
from isobit import _abi
from isobit._library import library
from isobit.torch import _call, _geglu, _linear_logp


def microseconds(call, batches: int = 25, count: int = 200) -> tuple[float, float]:
    """(fastest, median) of the means over a batch."""
    for _ in range(50):
        call()
    means = []
    for _ in range(batches):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        begin = time.thread_time_ns()
        for _ in range(count):
            call()
        means.append((time.thread_time_ns() - begin) / count / 1e3)
    return min(means), sorted(means)[batches // 2]


def in_c(function, args, device, *keep):
    """The foreign call with its args ready: the library's checks, and the computation or the launches."""
    reference = ctypes.byref(args)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream if device == "cuda" else None)
    return lambda keep=keep: function(reference, stream)


def geglu_in_c(gate, up, device):
    out = torch.empty_like(gate)
    args = _abi.start(_abi.GegluForwardArgs)
    args.gelu = 1
    for name, tensor in (("gate", gate), ("up", up), ("out", out)):
        _call.put(args, _call.offset(_abi.GegluForwardArgs, name), name, tensor)
    return in_c(library.isobit_geglu_forward, args, device, out)


def linear_logp_in_c(hidden, weight, target, device):
    logp = torch.empty(target.shape, device=device)
    args = _abi.start(_abi.LinearLogpArgs)
    args.temperature_value = 1.0
    for name, tensor in (("hidden", hidden), ("weight", weight), ("target", target), ("logp", logp)):
        _call.put(args, _call.offset(_abi.LinearLogpArgs, name), name, tensor)
    memory = _call.add_workspace(library.isobit_linear_logp_workspace, args, hidden.device)
    return in_c(library.isobit_linear_logp, args, device, logp, memory)


def through_ctypes(module, call):
    """The same call as it goes without apache-tvm-ffi."""

    def run():
        kept, module.by_shim = module.by_shim, None
        call()
        module.by_shim = kept

    return run


def calls(device: str):
    """(name, call, name of the C call that it makes)."""
    gate, up = (torch.randn(8, 64).to(device, torch.bfloat16) for _ in range(2))
    a, b = (t.clone().requires_grad_() for t in (gate, up))
    hidden, weight = (torch.randn(n, 64).to(device, torch.bfloat16) for n in (1, 128))
    target = torch.zeros(1, dtype=torch.int64, device=device)
    geglu, logp = "geglu, the C call alone", "linear_logp, the C call alone"
    yield "PyTorch empty_like", lambda: torch.empty_like(gate), None
    yield geglu, geglu_in_c(gate, up, device), None
    yield "geglu", lambda: it.geglu(gate, up, gelu="tanh"), geglu
    yield "geglu, gradient wanted", lambda: it.geglu(a, b, gelu="tanh"), geglu
    yield "geglu, through the dispatcher", lambda: torch.ops.isobit.geglu(gate, up, "tanh"), geglu
    yield "geglu, through ctypes", through_ctypes(_geglu, lambda: it.geglu(gate, up, gelu="tanh")), geglu
    yield "PyTorch gelu * up", lambda: F.gelu(gate, approximate="tanh") * up, None
    yield "PyTorch gelu * up, gradient wanted", lambda: F.gelu(a, approximate="tanh") * b, None
    yield "PyTorch neg", lambda: torch.neg(gate), None
    yield logp, linear_logp_in_c(hidden, weight, target, device), None
    score = lambda: it.linear_logp(hidden, weight, target, want=("logp",))  # noqa: E731 - used twice
    yield "linear_logp", score, logp
    yield "linear_logp, through ctypes", through_ctypes(_linear_logp, score), logp


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    device = parser.parse_args().device
    torch.set_num_threads(1)
    about = {"device": torch.cuda.get_device_name() if device == "cuda" else "cpu", "torch": torch.__version__,
             "shim": _call.shim is not None, "build": isobit.build_info()}  # fmt: skip
    fastest = {}
    for name, call, base in calls(device):
        least, median = microseconds(call)
        fastest[name] = least
        over = {"over_c": round(least - fastest[base], 2)} if base else {}
        record = {"call": name, "microseconds": round(least, 2), "median": round(median, 2), **over, **about}
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
