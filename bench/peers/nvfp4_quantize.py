"""nvfp4_quantize against a device copy of the same bytes and torchao's recipe, as it is (eager) and through
torch.compile, in one process.

isobit and the peer take turns, each after a flush of the L2; the ratio is the median of the pairs' ratios. bf16 to
codes and linear scales with a ready global scale; outputs are allocated in the call, but for the copy. Prints one JSON
line per peer and shape (docs/results); what could not be run is named on stderr.

    python bench/peers/nvfp4_quantize.py > nvfp4_quantize.jsonl
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import sys

import torch
from linear_logp import Timer, measured, parser_of, peak_bytes, run_all, torch_version

import isobit.torch as ops

SHAPES = ("784,2048", "1024,16384", "8192,4096", "8192,16384")
ENCODE = 512.0  # a power of two, about 2688 over the largest of normal values


def isobit(x):
    return ops.nvfp4_quantize(x, global_scale=ENCODE, layout="linear")[:2]


def copy_of(x):
    """A copy that reads and writes as many bytes as the quantiser does."""
    source = torch.empty(traffic(x) // 2, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def torchao(x, scale):
    from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize  # noqa: PLC0415 (optional)

    return nvfp4_quantize(x, per_tensor_scale=scale)[::-1]


@functools.cache
def compiler():
    from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize  # noqa: PLC0415 (optional)

    return torch.compile(nvfp4_quantize, dynamic=False)


def torchao_of(x):
    scale = torch.tensor(1 / ENCODE, device="cuda")
    return lambda: torchao(x, scale)


def compiled_of(x):
    scale = torch.tensor(1 / ENCODE, device="cuda")
    return lambda: compiler()(x, per_tensor_scale=scale)[::-1]


def torchao_version() -> str:
    return f"{importlib.metadata.version('torchao')}, torch {torch_version()}"


PEERS = {
    "copy": (copy_of, torch_version),
    "torch.compile": (compiled_of, torchao_version),
    "eager": (torchao_of, torchao_version),
}


def traffic(x) -> int:
    return x.numel() * 2 + x.numel() // 2 + x.numel() // 16


def differing(theirs, ours) -> list[float]:
    """Shares of the bytes of codes and of scales that differ; torchao multiplies by a reciprocal that was rounded."""
    pairs = ((a.view(torch.uint8), b.view(torch.uint8)) for a, b in zip(theirs, ours, strict=True))
    return [float((a.flatten() != b.flatten()).float().mean()) for a, b in pairs]


def compare(name: str, text: str, samples: int, timer: Timer) -> None:
    make, version = PEERS[name]
    rows, columns = (int(n) for n in text.split(","))
    torch.manual_seed(1)
    x = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)
    calls = [lambda: isobit(x), make(x)]
    theirs = calls[1]()  # compiles
    errors = {} if name == "copy" else {"bytes_that_differ": differing(theirs, isobit(x))}
    del theirs
    peaks = [peak_bytes(call) for call in calls]
    line = {
        "op": "nvfp4_quantize",
        "kernel": "chosen",
        "shape": {"rows": rows, "cols": columns},
        **measured(calls, samples, timer, warmups=3),
        "bytes": traffic(x),
        "flops": 0,
        "peer": name,
        "peer_version": version(),
        "peak_bytes": peaks[0],
        "peer_peak_bytes": peaks[1],
        **errors,
        "command": " ".join(["python bench/peers/nvfp4_quantize.py", *sys.argv[1:]]),
    }
    print(json.dumps(line), flush=True)


def main() -> None:
    options = parser_of(__doc__, PEERS, "rows,columns", 31).parse_args()
    timer = Timer()
    run_all(options.peer or PEERS, options.shape or SHAPES, lambda *of: compare(*of, options.samples, timer))


if __name__ == "__main__":
    main()
