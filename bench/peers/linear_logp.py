"""linear_logp forward against its peers in one process: cuBLAS's bare product, PyTorch, torch.compile, Liger, CCE,
QuACK, RL-Kernel.

isobit and the peer take turns, each after a flush of the L2, so that both meet the same clocks; the ratio is the median
of the pairs' ratios. Prints one JSON line per peer and shape (docs/results); what could not be run is named on stderr,
with the package that is absent.

    python bench/peers/linear_logp.py > linear_logp_peers.jsonl
    python bench/peers/linear_logp.py --peer cce --shape 4096,2048,131072
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import functools
import importlib.metadata
import json
import os
import statistics
import sys
import time

import torch
from linear_logp_fp64 import logp64

from isobit._abi import BF16, CUDA, FP32, INT64, LinearLogpArgs, Tensor, start
from isobit._library import check, library

SHAPES = ("4096,4096,151936", "4096,2048,131072", "512,4096,151936", "64,4096,151936")
DTYPES = {torch.bfloat16: BF16, torch.float32: FP32, torch.int64: INT64}
RL_KERNEL = "commit 202f0e30e567 (2026-07-01)"  # the tree that its adapter was written for; it has no releases
FLUSH_BYTES = 1 << 30  # takes longer than the host needs to queue a call


def view(tensor: torch.Tensor) -> Tensor:
    """A CUDA tensor as isobit_tensor."""
    t = Tensor(data=tensor.data_ptr(), dtype=DTYPES[tensor.dtype], device_type=CUDA, device_id=tensor.device.index,
               rank=tensor.dim())  # fmt: skip
    for i in range(tensor.dim()):
        t.shape[i] = tensor.shape[i]
        t.stride[i] = tensor.stride(i)
    return t


def isobit(hidden, weight, target):
    """logp [N]; lse is computed as well, since every peer does so on its way. Allocates what a user would allocate."""
    logp, lse = (torch.empty(hidden.shape[0], device="cuda") for _ in range(2))
    args = start(LinearLogpArgs)
    args.temperature_value = 1.0
    args.hidden, args.weight, args.target = view(hidden), view(weight), view(target)
    args.logp, args.lse = view(logp), view(lse)
    size = ctypes.c_size_t()
    check(library.isobit_linear_logp_workspace(ctypes.byref(args), None, ctypes.byref(size)))
    workspace = torch.empty(size.value, dtype=torch.uint8, device="cuda")
    args.workspace = workspace.data_ptr()
    args.workspace_bytes = size.value
    check(library.isobit_linear_logp(ctypes.byref(args), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)))
    return logp


def product(hidden, weight, target):
    """The bare product; no log-probabilities, so there is nothing to compare."""
    torch.mm(hidden, weight.t())


def native(hidden, weight, target):
    logits = torch.mm(hidden, weight.t()).float()
    return torch.log_softmax(logits, -1).gather(1, target[:, None])[:, 0]


@functools.cache
def compiler():
    return torch.compile(native, dynamic=False)


def compiled(hidden, weight, target):
    return compiler()(hidden, weight, target)


def liger(hidden, weight, target):
    from liger_kernel.ops.fused_linear_cross_entropy import (  # noqa: PLC0415 (optional)
        LigerFusedLinearCrossEntropyFunction,
    )

    loss = LigerFusedLinearCrossEntropyFunction.apply(hidden, weight, target, None, None, -100, 0.0, 0.0, "none")
    return -(loss[0] if isinstance(loss, tuple) else loss)


def cce(hidden, weight, target):
    from cut_cross_entropy import linear_cross_entropy  # noqa: PLC0415 (optional)

    return -linear_cross_entropy(hidden, weight, target, reduction="none", impl="cce")


def liger_cutedsl(hidden, weight, target):
    """Liger's CuTe-DSL kernel for Hopper; asked for by name, since Liger's own front end falls back in silence. Logits
    pass through fp16. Its check of targets waits for the GPU and is turned off."""
    os.environ["LIGER_SCALED_CE_SM90_VALIDATE_TARGETS"] = "0"
    from liger_kernel.ops.cutedsl.ops.fused_scaled_cross_entropy_sm90 import (  # noqa: PLC0415 (optional)
        LigerFusedScaledCrossEntropySM90Function,
    )

    return -LigerFusedScaledCrossEntropySM90Function.apply(hidden, weight, target)


def quack(hidden, weight, target):
    """What QuACK's linear_cross_entropy runs on Hopper where no gradient is asked for, before its sum over tokens:
    a product that keeps partial sums and the target's logit in fp32 and stores no logits. V a multiple of 128."""
    from quack.linear_cross_entropy import _scaled_exp_lce_loss_only  # noqa: PLC0415 (optional)

    return -_scaled_exp_lce_loss_only(hidden, weight, target, -100)


def quack_chunked(hidden, weight, target):
    """QuACK's way for every GPU: chunks of 4,096 rows of bf16 logits from cuBLAS, then its cross_entropy."""
    from quack.linear_cross_entropy import chunked_linear_cross_entropy_fwd  # noqa: PLC0415 (optional)

    return -chunked_linear_cross_entropy_fwd(hidden, weight, target, need_dx=False, need_dw=False)[0]


def rl_kernel(hidden, weight, target):
    """Its Hopper operator, from a tree that was built with its CUDA extension; without the range check of the targets
    that stands before it and waits for the GPU."""
    from rl_engine.kernels.ops.cuda.loss.linear_logp import (  # noqa: PLC0415 (optional)
        _FusedLinearLogpSM90Function,
    )

    return _FusedLinearLogpSM90Function.apply(hidden, weight, None, target)


def installed(package: str):
    return lambda: importlib.metadata.version(package)


def torch_version() -> str:
    return f"{torch.__version__}, CUDA {torch.version.cuda}"


# What to call and its version. The raw product takes V as it is, the other one a multiple of 8.
PEERS = {
    "cublas-gemm": (product, torch_version),
    "cublas-gemm-raw": (product, torch_version),
    "native": (native, torch_version),
    "torch.compile": (compiled, torch_version),
    "liger-triton": (liger, installed("liger-kernel")),
    "liger-cutedsl": (liger_cutedsl, installed("liger-kernel")),
    "cce": (cce, installed("cut-cross-entropy")),
    "quack": (quack, installed("quack-kernels")),
    "quack-chunked": (quack_chunked, installed("quack-kernels")),
    "rl-kernel": (rl_kernel, lambda: RL_KERNEL),
}


class Timer:
    def __init__(self):
        self.flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")

    def once_us(self, call) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.flush.zero_()
        begin.record()
        call()
        end.record()
        end.synchronize()
        return 1000 * begin.elapsed_time(end)


def peak_bytes(call) -> int:
    """Device memory that a call takes beyond what was there before it."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def operands(rows: int, width: int, vocab: int):
    torch.manual_seed(1)
    hidden = torch.randn(rows, width, device="cuda", dtype=torch.bfloat16)
    weight = torch.empty(vocab, width, device="cuda", dtype=torch.bfloat16).normal_(std=4.0 / width**0.5)
    target = torch.randint(vocab, (rows,), device="cuda")
    return hidden, weight, target


def measured(calls, samples: int, timer: Timer, warmups: int) -> dict:
    """The fields of a result line that pairs of calls give, isobit's first."""
    for _ in range(warmups):
        for call in calls:
            timer.once_us(call)
    pairs = [tuple(timer.once_us(call) for call in calls) for _ in range(samples)]
    own, peer = zip(*pairs, strict=True)
    return {
        "dtype": "bfloat16",
        "gpu": torch.cuda.get_device_name(),
        "samples_us": [round(s, 1) for s in own],
        "median_us": round(statistics.median(own), 2),
        "peer_median_us": round(statistics.median(peer), 2),
        "ratio": round(statistics.median(o / p for o, p in pairs), 4),
        "warm": False,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }


def compare(name: str, text: str, samples: int, timer: Timer) -> None:
    function, version = PEERS[name]
    rows, width, vocab = (int(n) for n in text.split(","))
    if name == "cublas-gemm":
        vocab = (vocab + 7) // 8 * 8
    data = operands(rows, width, vocab)
    calls = [lambda: isobit(*data), lambda: function(*data)]
    theirs = calls[1]()  # compiles and tunes
    errors = {}
    if theirs is not None:
        if not theirs.isfinite().all():
            raise RuntimeError("its log-probabilities are not finite")
        ours, exact = isobit(*data), logp64(*data)
        errors = {
            "max_logp_difference": float((theirs.float() - ours).abs().max()),
            "max_logp_error": float((ours.double() - exact).abs().max()),
            "peer_max_logp_error": float((theirs.double() - exact).abs().max()),
        }
    del theirs
    peaks = [peak_bytes(call) for call in calls]
    line = {
        "op": "linear_logp_forward",
        "kernel": "chosen",
        "outputs": "logp,lse",
        "shape": {"N": rows, "H": width, "V": vocab},
        **measured(calls, samples, timer, warmups=3),
        "bytes": 2 * (rows * width + vocab * width) + 16 * rows,
        "flops": 2 * rows * width * vocab,
        "peer": name,
        "peer_version": version(),
        "peak_bytes": peaks[0],
        "peer_peak_bytes": peaks[1],
        **errors,
        "command": " ".join(["python bench/peers/linear_logp.py", *sys.argv[1:]]),
    }
    print(json.dumps(line), flush=True)


def run_all(names, shapes, call) -> None:
    """call(name, shape) for all of them; what could not be run is named on stderr."""
    for name in names:
        for shape in shapes:
            begin = time.monotonic()
            try:
                call(name, shape)
            except ImportError as error:
                print(f"{name}: not run, {error.name or error} is not installed", file=sys.stderr)
                break
            except Exception as error:  # one peer's failure must not cost the others
                print(f"{name} {shape}: not run, {type(error).__name__}: {error}", file=sys.stderr)
            torch.cuda.empty_cache()
            print(f"{name} {shape}: {time.monotonic() - begin:.1f} s", file=sys.stderr)


def parser_of(text: str, peers, sizes: str, samples: int) -> argparse.ArgumentParser:
    """What every program of pairs is told; sizes names those of a shape."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=samples, help="pairs of a peer and shape")
    parser.add_argument("--shape", action="append", help=f"{sizes}, instead of the default list; may be repeated")
    parser.add_argument("--peer", action="append", choices=tuple(peers), help="instead of all; may be repeated")
    return parser


def main() -> None:
    options = parser_of(__doc__, PEERS, "N,H,V", 11).parse_args()
    timer = Timer()
    with torch.no_grad():
        run_all(options.peer or PEERS, options.shape or SHAPES, lambda *of: compare(*of, options.samples, timer))


if __name__ == "__main__":
    main()
