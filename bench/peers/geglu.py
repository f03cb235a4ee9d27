"""GeGLU against its peers in one process: isobit, Liger, torch.compile, eager PyTorch, and a device copy.

Every peer is measured in alternating rounds; one inner measurement warms up and then repeats for a given time with a
cold L2, and what a call overwrites is restored outside of the timed region. Prints JSON lines (docs/results).

    python bench/peers/geglu.py > geglu_peers.jsonl
    python bench/peers/geglu.py --mlp
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import importlib.metadata
import json
import statistics
import sys

import torch
import torch.nn.functional as nnf

from isobit._abi import BF16, CUDA, FP16, FP32, GELU, GegluBackwardArgs, GegluForwardArgs, Tensor
from isobit._library import check, library

DTYPES = {"bfloat16": (torch.bfloat16, BF16), "float16": (torch.float16, FP16), "float32": (torch.float32, FP32)}
SHAPES = [(r, c) for r in (1024, 8192) for c in (4096, 8192, 8193, 11008, 14336, 18944, 29568)]
FLUSH_BYTES = 256 << 20
CYCLES_PER_MS = 2_000_000  # of an H200


def view(tensor: torch.Tensor) -> Tensor:
    """A CUDA tensor as isobit_tensor."""
    t = Tensor(data=tensor.data_ptr(), dtype=next(i for d, i in DTYPES.values() if d == tensor.dtype), device_type=CUDA,
               device_id=tensor.device.index, rank=tensor.dim())  # fmt: skip
    for i in range(tensor.dim()):
        t.shape[i] = tensor.shape[i]
        t.stride[i] = tensor.stride(i)
    return t


class Isobit(torch.autograd.Function):
    kernel = None

    @staticmethod
    def _call(function, args, **tensors):
        args.struct_size = ctypes.sizeof(args)
        args.gelu = GELU["tanh"]
        args.kernel = Isobit.kernel
        for name, tensor in tensors.items():
            setattr(args, name, view(tensor))
        check(function(ctypes.byref(args), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)))

    @staticmethod
    def forward(ctx, gate, up):
        out = torch.empty_like(gate)
        Isobit._call(library.isobit_geglu_forward, GegluForwardArgs(), gate=gate, up=up, out=out)
        ctx.save_for_backward(gate, up)
        return out

    @staticmethod
    def backward(ctx, d_out):
        gate, up = ctx.saved_tensors
        d_gate, d_up = torch.empty_like(gate), torch.empty_like(up)
        Isobit._call(library.isobit_geglu_backward, GegluBackwardArgs(), gate=gate, up=up, d_out=d_out, d_gate=d_gate,
                     d_up=d_up)  # fmt: skip
        return d_gate, d_up


def eager(gate, up):
    return nnf.gelu(gate, approximate="tanh") * up


def peers() -> dict:
    """Name -> (function, version); what is not installed is left out and named on stderr."""
    torch._dynamo.config.recompile_limit = 64
    found = {
        "isobit": (Isobit.apply, library.isobit_build_info().decode()),
        "torch.compile": (torch.compile(eager, dynamic=False), torch.__version__),
        "eager": (eager, torch.__version__),
    }
    try:
        from liger_kernel.ops.geglu import LigerGELUMulFunction  # noqa: PLC0415 (optional)

        found["liger-triton"] = (LigerGELUMulFunction.apply, importlib.metadata.version("liger-kernel"))
    except ImportError as error:
        print(f"liger-triton is left out: {error}", file=sys.stderr)
    return found


class Timer:
    """Before a sample the device sleeps for sleep_ms, in which the host enqueues all of it: launches take no time."""

    def __init__(self, warmup_ms: float, rep_ms: float, sleep_ms: float):
        self.warmup_ms, self.rep_ms, self.sleep_ms = warmup_ms, rep_ms, sleep_ms
        self.flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")

    def once(self, prepare, run) -> float:
        prepared = prepare()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.flush.zero_()
        torch.cuda._sleep(int(self.sleep_ms * CYCLES_PER_MS))
        begin.record()
        run(prepared)
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    def median_ms(self, prepare, run) -> float:
        for _ in range(3):
            first = self.once(prepare, run)
        one_ms = first + self.sleep_ms + 0.5
        for _ in range(min(200, int(self.warmup_ms / one_ms) + 1)):
            self.once(prepare, run)
        return statistics.median(self.once(prepare, run) for _ in range(min(400, max(5, int(self.rep_ms / one_ms)))))


def modes(function, gate, up, d_out, clobbers: bool):
    """(mode, prepare, run): run gets what prepare made outside of the timed region."""

    def inputs():
        a, b = (gate.clone(), up.clone()) if clobbers else (gate, up)
        return a.detach().requires_grad_(), b.detach().requires_grad_()

    def forward_only(prepared):
        with torch.no_grad():
            return function(*prepared)

    def graph():
        a, b = inputs()
        return function(a, b), a, b

    def backward(prepared):
        out, a, b = prepared
        return torch.autograd.grad(out, (a, b), d_out)

    def full(prepared):
        return torch.autograd.grad(function(*prepared), prepared, d_out)

    yield "forward", lambda: (gate, up), forward_only
    yield "backward", graph, backward
    yield "full", inputs, full


def emit(**fields) -> None:
    fields.setdefault("flops", None)
    fields.setdefault("warm", False)
    fields["gpu"] = torch.cuda.get_device_name()
    fields["command"] = "python bench/peers/geglu.py " + " ".join(sys.argv[1:])
    fields["date"] = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    print(json.dumps(fields), flush=True)


def compare(shape, dtype_name: str, options, timer: Timer) -> None:
    rows, cols = shape
    dtype, _ = DTYPES[dtype_name]
    gate, up, d_out = (torch.randn(rows, cols, device="cuda", dtype=dtype) for _ in range(3))
    named = peers_cache()
    for mode, tensors in (("forward", 3), ("backward", 5), ("full", 8)):
        size = tensors * gate.numel() * gate.element_size()
        source = torch.empty(size // 2, dtype=torch.int8, device="cuda")
        target = torch.empty_like(source)
        work = {"copy": (lambda pair=(target, source): pair, lambda pair: pair[0].copy_(pair[1]))}
        for name, (function, _) in named.items():
            for candidate, prepare, run in modes(function, gate, up, d_out, name == "liger-triton"):
                if candidate == mode:
                    work[name] = (prepare, run)
        torch.cuda.reset_peak_memory_stats()
        samples = {name: [] for name in work}
        for round_index in range(options.rounds):
            order = list(work) if round_index % 2 == 0 else list(work)[::-1]
            for name in order:
                samples[name].append(1000 * timer.median_ms(*work[name]))
        own = samples.pop("isobit")
        for name, peer in samples.items():
            emit(op=f"geglu_{mode}", kernel=options.kernel or "chosen", shape={"rows": rows, "cols": cols},
                 dtype=dtype_name, samples_us=[round(s, 2) for s in own], median_us=statistics.median(own), bytes=size,
                 peer=name, peer_version=named[name][1] if name in named else torch.__version__,
                 peer_median_us=statistics.median(peer), peak_bytes=torch.cuda.max_memory_allocated(),
                 ratio=round(statistics.median(o / p for o, p in zip(own, peer, strict=True)), 4))  # fmt: skip


def compare_mlp(tokens: int, options, timer: Timer) -> None:
    """The whole MLP with the same weights and inputs, three alternating rounds."""
    hidden, intermediate = 4096, 14336
    weights = [torch.randn(o, i, device="cuda", dtype=torch.bfloat16) / i**0.5
               for o, i in ((intermediate, hidden), (intermediate, hidden), (hidden, intermediate))]  # fmt: skip
    for w in weights:
        w.requires_grad_()
    x = torch.randn(tokens, hidden, device="cuda", dtype=torch.bfloat16)
    d_y = torch.randn_like(x)
    named = peers_cache()

    def forward(function):
        with torch.no_grad():
            return nnf.linear(function(nnf.linear(x, weights[0]), nnf.linear(x, weights[1])), weights[2])

    def full(function):
        y = nnf.linear(function(nnf.linear(x, weights[0]), nnf.linear(x, weights[1])), weights[2])
        return torch.autograd.grad(y, weights, d_y)

    for mode, body in (("forward", forward), ("full", full)):
        samples = {name: [] for name in named}
        for round_index in range(3):
            for name in list(named) if round_index % 2 == 0 else list(named)[::-1]:
                samples[name].append(1000 * timer.median_ms(lambda f=named[name][0]: f, body))
        own = samples.pop("isobit")
        for name, peer in samples.items():
            emit(op=f"geglu_mlp_{mode}", kernel="chosen", shape={"tokens": tokens, "H": hidden, "I": intermediate},
                 dtype="bfloat16", samples_us=[round(s, 2) for s in own], median_us=statistics.median(own), bytes=None,
                 peer=name, peer_version=named[name][1], peer_median_us=statistics.median(peer), peak_bytes=None,
                 ratio=round(statistics.median(o / p for o, p in zip(own, peer, strict=True)), 4))  # fmt: skip


_PEERS: dict = {}


def peers_cache() -> dict:
    if not _PEERS:
        _PEERS.update(peers())
    return _PEERS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warmup", type=float, default=100, help="milliseconds before an inner measurement")
    parser.add_argument("--rep", type=float, default=500, help="milliseconds of an inner measurement")
    parser.add_argument("--dtype", choices=DTYPES, default="bfloat16")
    parser.add_argument("--kernel", choices=("row", "tile"), help="forces a schedule of isobit")
    parser.add_argument("--shape", action="append", help="ROWSxCOLS, instead of the default list; may be repeated")
    parser.add_argument("--mlp", action="store_true", help="the whole MLP instead of the operator")
    options = parser.parse_args()
    Isobit.kernel = options.kernel.encode() if options.kernel else None
    timer = Timer(options.warmup, options.rep, 5 if options.mlp else 1.5)
    if options.mlp:
        for tokens in (512, 2048):
            compare_mlp(tokens, options, timer)
        return
    shapes = [tuple(int(n) for n in s.split("x")) for s in options.shape] if options.shape else SHAPES
    for shape in shapes:
        compare(shape, options.dtype, options, timer)


if __name__ == "__main__":
    main()
