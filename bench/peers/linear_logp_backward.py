"""linear_logp forward + backward against its peers in one process: cuBLAS products over stored logits, Liger, CCE.

isobit and the peer take turns, each after a flush of the L2, so that both meet the same clocks; the ratio is the median
of the pairs' ratios. Prints one JSON line per peer and shape (docs/results); what could not be run is named on stderr.

native   logits = hidden weight^T kept in bf16, log_softmax in fp32, autograd: three products and what lies between them
gemms    those three products alone, over a dz that is already there: nothing that ends in a loss is this fast

    python bench/peers/linear_logp_backward.py > linear_logp_backward_peers.jsonl
    python bench/peers/linear_logp_backward.py --peer native --shape 4096,2048,131072 --profile
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import json
import statistics
import sys

import torch
from linear_logp import (
    RL_KERNEL,
    Timer,
    liger,
    liger_cutedsl,
    measured,
    native,
    operands,
    parser_of,
    peak_bytes,
    rl_kernel,
    run_all,
    view,
)
from linear_logp_fp64 import gradient_errors

from isobit import _abi
from isobit._library import check, library

SHAPES = ("4096,2048,131072", "4096,4096,151936", "8192,4096,151936")


class Isobit:
    """The pass that saves and the backward pass, as a training step calls them; everything is allocated as there."""

    def __init__(self, hidden, weight, target, upstream, dtype=torch.bfloat16):
        self.logp = torch.empty(hidden.shape[0], device="cuda")
        self.d_hidden = torch.empty_like(hidden)
        self.d_weight = torch.empty_like(weight, dtype=dtype)
        args = _abi.start(_abi.LinearLogpBackwardArgs)
        args.forward = _abi.LinearLogpArgs(
            struct_size=ctypes.sizeof(_abi.LinearLogpArgs), temperature_value=1.0, hidden=view(hidden),
            weight=view(weight), target=view(target), logp=view(self.logp),
        )  # fmt: skip
        args.subtract_p = 1
        args.d_logp = view(upstream)
        args.d_hidden = view(self.d_hidden)
        args.d_weight = view(self.d_weight)
        size = ctypes.c_size_t()
        check(library.isobit_linear_logp_backward_workspace(ctypes.byref(args), None, ctypes.byref(size)))
        self.workspace = torch.empty(size.value, dtype=torch.uint8, device="cuda")
        args.forward.workspace = self.workspace.data_ptr()
        args.forward.workspace_bytes = size.value
        check(library.isobit_linear_logp_saved_bytes(ctypes.byref(args), ctypes.byref(size)))
        self.saved = torch.empty(size.value, dtype=torch.uint8, device="cuda")
        args.saved = self.saved.data_ptr()
        self.args = args

    def save(self):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.args.forward.logp = view(self.logp)
        check(library.isobit_linear_logp_save(ctypes.byref(self.args), stream))

    def backward(self):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.args.forward.logp = _abi.Tensor()
        check(library.isobit_linear_logp_backward(ctypes.byref(self.args), stream))

    def __call__(self):
        self.save()
        self.backward()
        return self.d_hidden, self.d_weight


def isobit(hidden, weight, target, upstream):
    return Isobit(hidden, weight, target, upstream)()


def with_autograd(logp_of):
    def step(hidden, weight, target, upstream):
        hidden, weight = (x.detach().requires_grad_() for x in (hidden, weight))
        logp_of(hidden, weight, target).backward(upstream)
        return hidden.grad, weight.grad

    return step


def gemms(hidden, weight, target, upstream):
    dz = torch.mm(hidden, weight.t())
    torch.mm(dz, weight)
    torch.mm(dz.t(), hidden)


def quack(hidden, weight, target, upstream):
    """QuACK's training step on Hopper. It takes one upstream gradient for the sum of losses: here upstream is -1. Rows
    go in chunks of 4,096, its default, or of 2,048 where H is 4,096, since it refuses as many rows as columns."""
    from quack.linear_cross_entropy import scaled_exp_linear_cross_entropy  # noqa: PLC0415 (optional)

    hidden, weight = (x.detach().requires_grad_() for x in (hidden, weight))
    chunk = 2048 if hidden.shape[1] == 4096 else 4096
    scaled_exp_linear_cross_entropy(hidden, weight, target, chunk_size=chunk, reduction="sum").backward()
    return hidden.grad, weight.grad


def cce(filter_eps):
    """Cut Cross-Entropy, with its filter of small gradients (its default) or, with None, without."""

    def logp_of(hidden, weight, target):
        from cut_cross_entropy import linear_cross_entropy  # noqa: PLC0415 (optional)

        return -linear_cross_entropy(hidden, weight, target, reduction="none", impl="cce", filter_eps=filter_eps)

    return logp_of


PEERS = {
    "native": (with_autograd(native), lambda: torch.__version__),
    "gemms": (gemms, lambda: torch.__version__ + ", CUDA " + torch.version.cuda),
    "liger-triton": (with_autograd(liger), lambda: importlib.metadata.version("liger-kernel")),
    "cce": (with_autograd(cce("high")), lambda: importlib.metadata.version("cut-cross-entropy")),
    "liger-cutedsl": (with_autograd(liger_cutedsl), lambda: importlib.metadata.version("liger-kernel")),
    "quack": (quack, lambda: importlib.metadata.version("quack-kernels")),
    "rl-kernel": (with_autograd(rl_kernel), lambda: RL_KERNEL),
    "cce-exact": (with_autograd(cce(None)), lambda: importlib.metadata.version("cut-cross-entropy")),
}


def relative_errors(theirs, ours) -> list[float]:
    """Relative L2 distance per gradient."""
    return [float((a.float() - b.float()).norm() / a.float().norm()) for a, b in zip(theirs, ours, strict=True)]


def upstream_of(name: str, rows: int):
    """d_logp: of the row's own, but for a peer that takes none."""
    return torch.full((rows,), -1.0, device="cuda") if name == "quack" else torch.rand(rows, device="cuda") - 0.5


def print_kernels(step: Isobit, timer: Timer) -> None:
    """Time by pass and by kernel on stderr."""
    step()
    for name, call in (("save", step.save), ("backward", step.backward)):
        print(f"{name}: {statistics.median(timer.once_us(call) for _ in range(5)):.1f} us", file=sys.stderr)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
        torch.cuda.synchronize()
    print(profile.key_averages().table(sort_by="cuda_time_total", row_limit=16, max_name_column_width=110),
          file=sys.stderr)  # fmt: skip


def compare(name: str, text: str, samples: int, timer: Timer) -> None:
    function, version = PEERS[name]
    rows, width, vocab = (int(n) for n in text.split(","))
    hidden, weight, target = operands(rows, width, vocab)
    data = (hidden, weight, target, upstream_of(name, rows))
    peaks = [peak_bytes(lambda f=f: f(*data)) for f in (isobit, function)]
    ours = Isobit(*data)
    calls = [ours, lambda: function(*data)]
    theirs = calls[1]()  # compiles and tunes
    errors = {}
    if theirs is not None:
        own, peers = gradient_errors(*data, ours(), theirs)
        errors = {"relative_difference": relative_errors(theirs, ours()), "relative_error": own,
                  "peer_relative_error": peers}  # fmt: skip
    del theirs
    line = {
        "op": "linear_logp_forward_backward",
        "kernel": "chosen",
        "outputs": "logp,d_hidden,d_weight",
        "shape": {"N": rows, "H": width, "V": vocab},
        **measured(calls, samples, timer, warmups=1),
        "bytes": 4 * (rows * width + vocab * width) + 16 * rows,
        "flops": 8 * rows * width * vocab,
        "peer": name,
        "peer_version": version(),
        "peak_bytes": peaks[0],
        "peer_peak_bytes": peaks[1],
        "upstream": "-1" if name == "quack" else "per row",
        **errors,
        "command": " ".join(["python bench/peers/linear_logp_backward.py", *sys.argv[1:]]),
    }
    print(json.dumps(line), flush=True)


def main() -> None:
    parser = parser_of(__doc__, PEERS, "N,H,V", 9)
    parser.add_argument("--profile", action="store_true", help="first, isobit's time by kernel, on stderr")
    options = parser.parse_args()
    timer = Timer()
    shapes = options.shape or SHAPES
    for shape in shapes if options.profile else ():
        rows, width, vocab = (int(n) for n in shape.split(","))
        step = Isobit(*operands(rows, width, vocab), torch.rand(rows, device="cuda") - 0.5)
        print_kernels(step, timer)
        del step
    run_all(options.peer or PEERS, shapes, lambda *of: compare(*of, options.samples, timer))


if __name__ == "__main__":
    main()
