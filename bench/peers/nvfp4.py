"""The NVFP4 operators against their peers on a Hopper GPU, in one process.

Matched end points: every path of nvfp4_geglu starts with the same packed activation and weight and ends with packed
codes and scales, but for cublas-gemm, which is the bare bf16 product of ready operands. CUDA graph replays between
events, 25 warm-ups, 30 samples, candidate and peers in alternating order, nothing filtered; raw samples are printed.
--layers 18 replays 18 layers with weights of their own (679 MB packed at the default size), so that none stays in L2.
Prints JSON lines (docs/results).

    python bench/peers/nvfp4.py                    # nvfp4_geglu at pi0.5's row counts, one layer
    python bench/peers/nvfp4.py --layers 18
    python bench/peers/nvfp4.py --mlp --layers 18  # quantise, nvfp4_geglu, nvfp4_linear
    python bench/peers/nvfp4.py --error            # the packed hidden against the staged recipe's, no times

Peers: cublas-gemm; hopper-staged (dequantise the weight, product, GeGLU, quantise, in every call);
hopper-staged-resident (the same with the weight kept in bf16); weight-stream (packed bytes at the speed of a copy).
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import statistics
import sys

import torch
from nvfp4_operands import Packed, dequantise, packed_normal, pair_table

import isobit.torch as ops
from isobit._abi import GELU, Nvfp4GegluArgs, Nvfp4LinearArgs
from isobit._library import library
from isobit.torch._call import add_workspace, put, run, template
from isobit.torch._nvfp4 import _new_matrix, _put_matrix, _put_scale

ROWS = (784, 816, 880, 968)
PEERS = ("cublas-gemm", "hopper-staged-resident", "hopper-staged", "weight-stream")
X_SCALE = 1 / 700


class Call:
    """One call of a product with its outputs and workspace, to be made again and again."""

    def __init__(self, kind, name: str, x: ops.Nvfp4Matrix, weight: ops.Nvfp4Matrix, kernel: str | None):
        self.args = kind.from_buffer_copy(template(kind))
        self.function, self.query = getattr(library, name), getattr(library, f"{name}_workspace")
        self.kernel = kernel.encode() if kernel else None
        self.args.kernel = self.kernel
        self.keep = [x, weight]
        _put_matrix(self.args, "x", *x)
        _put_matrix(self.args, "weight", *weight)

    def finish(self) -> None:
        self.keep.append(add_workspace(self.query, self.args, self.keep[0].codes.device))

    def __call__(self) -> None:
        run(self.function, self.args, self.keep[0].codes.device)


class Geglu(Call):
    def __init__(self, x: ops.Nvfp4Matrix, weight: ops.Nvfp4Matrix, kernel: str | None = None):
        super().__init__(Nvfp4GegluArgs, "isobit_nvfp4_geglu", x, weight, kernel)
        out = _new_matrix(x.codes, x.codes.shape[:-1], weight.codes.shape[0] // 2, "128x4")
        self.out = ops.Nvfp4Matrix(*out)
        for name, value in (("x_scale", X_SCALE), ("gate_scale", 1.0), ("up_scale", 1.0), ("out_scale", 8.0)):
            _put_scale(self.args, name, value, None)
        _put_matrix(self.args, "out", *self.out)
        self.args.gelu = GELU["tanh"]
        self.finish()


class Linear(Call):
    def __init__(self, x: ops.Nvfp4Matrix, weight: ops.Nvfp4Matrix, kernel: str | None = None):
        super().__init__(Nvfp4LinearArgs, "isobit_nvfp4_linear", x, weight, kernel)
        self.out = torch.empty(x.codes.shape[0], weight.codes.shape[0], dtype=torch.bfloat16, device="cuda")
        _put_scale(self.args, "x_scale", 1 / 8.0, None)
        _put_scale(self.args, "weight_scale", 1.0, None)
        put(self.args, Nvfp4LinearArgs.out.offset, "out", self.out)
        self.finish()


def staged(x_bf16, weight_bf16):
    """Product, GeGLU and quantiser as three kernels; the weight's rows are gate 0, up 0, gate 1, ..."""
    hidden = ops.geglu_packed(torch.mm(x_bf16, weight_bf16.t()), gelu="tanh", layout="interleaved")
    return ops.nvfp4_quantize(hidden, global_scale=8.0)


def graph_of(calls) -> torch.cuda.CUDAGraph:
    """The calls as one graph, which keeps them: their outputs and workspaces are the graph's memory."""
    for call in calls:
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    graph.calls = calls
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    return graph


def alternate(graphs: dict, calls: int, options) -> dict:
    """Microseconds a call of every graph: samples of `replays` replays, in an order that turns with every sample."""
    samples = {name: [] for name in graphs}
    for graph in graphs.values():
        for _ in range(options.warmup):
            graph.replay()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for sample in range(options.samples):
        for name in list(graphs) if sample % 2 == 0 else list(graphs)[::-1]:
            begin.record()
            for _ in range(options.replays):
                graphs[name].replay()
            end.record()
            end.synchronize()
            samples[name].append(begin.elapsed_time(end) * 1000 / options.replays / calls)
    return samples


def emit(op: str, options, shape: dict, samples: dict, nbytes: int, flops: int) -> None:
    own = samples["isobit"]
    for name, peer in samples.items():
        if name == "isobit":
            continue
        line = {"op": op, "kernel": options.kernel or "chosen", "shape": shape, "dtype": "bfloat16",
                "gpu": torch.cuda.get_device_name(), "samples_us": [round(s, 2) for s in own],
                "median_us": round(statistics.median(own), 2), "bytes": nbytes, "flops": flops, "peer": name,
                "peer_version": torch.__version__, "peer_samples_us": [round(s, 2) for s in peer],
                "peer_median_us": round(statistics.median(peer), 2),
                "ratio": round(statistics.median(o / p for o, p in zip(own, peer, strict=True)), 4),
                "peak_bytes": torch.cuda.max_memory_allocated(), "warm": options.layers == 1,
                "layers": options.layers, "command": "python bench/peers/nvfp4.py " + " ".join(sys.argv[1:]),
                "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat()}  # fmt: skip
        print(json.dumps(line), flush=True)


def copy_bandwidth() -> float:
    """Bytes a microsecond that a device copy reads and writes together."""
    source, target = (torch.empty(512 << 20, dtype=torch.uint8, device="cuda") for _ in range(2))
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(7):
        begin.record()
        target.copy_(source)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1000)
    return 2 * source.numel() / statistics.median(times)


def compare_geglu(m: int, options) -> None:
    k, width, layers = options.k, options.width, options.layers
    x = Packed(m, k, 1)
    weights = [Packed(2 * width, k, 2 + layer) for layer in range(layers)]
    table = pair_table()
    x_bf16 = dequantise(x.codes, x.blocks, table, X_SCALE)
    unpack = torch.compile(dequantise, dynamic=False) if options.compile else dequantise
    product = torch.empty(m, 2 * width, dtype=torch.bfloat16, device="cuda")
    calls = {"isobit": [Geglu(x.matrix, w.matrix, options.kernel) for w in weights]}
    if {"cublas-gemm", "hopper-staged-resident"} & set(options.peers):
        resident = [dequantise(w.codes, w.blocks, table) for w in weights]
        calls["cublas-gemm"] = [lambda w=w: torch.mm(x_bf16, w.t(), out=product) for w in resident]
        calls["hopper-staged-resident"] = [lambda w=w: staged(x_bf16, w) for w in resident]
    calls["hopper-staged"] = [
        lambda w=w: staged(unpack(x.codes, x.blocks, table, X_SCALE), unpack(w.codes, w.blocks, table)) for w in weights
    ]
    graphs = {name: graph_of(c) for name, c in calls.items() if name in ("isobit", *options.peers)}
    samples = alternate(graphs, layers, options)
    nbytes = x.bytes() + weights[0].bytes() + m * width // 2 + m * width // 16
    if "weight-stream" in options.peers:
        samples["weight-stream"] = [weights[0].bytes() / copy_bandwidth()] * options.samples
    emit("nvfp4_geglu", options, {"M": m, "K": k, "I": width}, samples, nbytes, 4 * m * k * width)


def compare_linear(m: int, options) -> None:
    """The down projection: [M, I] times [K, I]."""
    k, width, layers = options.width, options.k, options.layers
    x = Packed(m, k, 1)
    weights = [Packed(width, k, 2 + layer) for layer in range(layers)]
    table = pair_table()
    x_bf16 = dequantise(x.codes, x.blocks, table)
    product = torch.empty(m, width, dtype=torch.bfloat16, device="cuda")
    graphs = {"isobit": graph_of([Linear(x.matrix, w.matrix, options.kernel) for w in weights])}
    if "cublas-gemm" in options.peers:
        resident = [dequantise(w.codes, w.blocks, table) for w in weights]
        graphs["cublas-gemm"] = graph_of([lambda w=w: torch.mm(x_bf16, w.t(), out=product) for w in resident])
    samples = alternate(graphs, layers, options)
    if "weight-stream" in options.peers:
        samples["weight-stream"] = [weights[0].bytes() / copy_bandwidth()] * options.samples
    nbytes = x.bytes() + weights[0].bytes() + product.numel() * 2
    emit("nvfp4_linear", options, {"M": m, "N": width, "K": k}, samples, nbytes, 2 * m * k * width)


def compare_mlp(m: int, options) -> None:
    k, width, layers = options.k, options.width, options.layers
    x = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    pairs = [(Packed(2 * width, k, 2 * layer), Packed(k, width, 2 * layer + 1)) for layer in range(layers)]

    def layer_of(gate_up: Packed, down: Packed):
        packed = ops.nvfp4_quantize(x, global_scale=100.0)
        first = Geglu(packed, gate_up.matrix, options.kernel)
        second = Linear(first.out, down.matrix, options.kernel)

        def call():
            ops.nvfp4_quantize(x, global_scale=100.0)
            first()
            second()

        return call

    table = pair_table()
    resident = [(dequantise(a.codes, a.blocks, table), dequantise(b.codes, b.blocks, table)) for a, b in pairs]

    def bf16_layer(gate_up, down):
        hidden = ops.geglu_packed(torch.mm(x, gate_up.t()), gelu="tanh", layout="interleaved")
        torch.mm(hidden, down.t())

    graphs = {"isobit": graph_of([layer_of(*p) for p in pairs]),
              "bf16-mlp": graph_of([lambda p=p: bf16_layer(*p) for p in resident])}  # fmt: skip
    nbytes = sum(p.bytes() for p in pairs[0])
    emit("nvfp4_mlp", options, {"M": m, "K": k, "I": width}, alternate(graphs, layers, options), nbytes,
         6 * m * k * width)  # fmt: skip


def compare_error(m: int, options) -> None:
    """The packed hidden against the staged recipe's, both through the same down projection."""
    k, width = options.k, options.width
    x, x_bf16, x_scale = packed_normal(m, k, 1)
    weight, weight_bf16, weight_scale = packed_normal(2 * width, k, 2)
    down, _, down_scale = packed_normal(k, width, 3)
    gain = 2.0**-5  # brings gate and up to about the values that GELU bends
    hidden = ops.geglu_packed(torch.mm(x_bf16, weight_bf16.t()) * gain, gelu="tanh", layout="interleaved")
    encode = 2.0 ** math.floor(math.log2(2688 / hidden.abs().max().item()))
    expected = ops.nvfp4_quantize(hidden, global_scale=encode)
    got = ops.nvfp4_geglu(x, weight, gelu="tanh", x_scale=x_scale, gate_scale=weight_scale * gain,
                          up_scale=weight_scale * gain, out_scale=encode)  # fmt: skip
    a, b = (
        ops.nvfp4_linear(h, down, x_scale=1 / encode, weight_scale=down_scale, dtype=torch.float32).double()
        for h in (got, expected)
    )
    differ = (got.codes != expected.codes).float().mean().item()
    line = {"op": "nvfp4_mlp", "shape": {"M": m, "K": k, "I": width}, "gpu": torch.cuda.get_device_name(),
            "peer": "hopper-staged", "relative_l2": ((a - b).norm() / b.norm()).item(),
            "cosine": torch.nn.functional.cosine_similarity(a.flatten(), b.flatten(), 0).item(),
            "code_bytes_that_differ": differ, "command": "python bench/peers/nvfp4.py " + " ".join(sys.argv[1:]),
            "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat()}  # fmt: skip
    print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--k", type=int, default=2048)
    parser.add_argument("--width", type=int, default=16384, help="I; the merged weight has 2 I rows")
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--kernel", help="forces a row of isobit's table of kernels")
    parser.add_argument("--peers", nargs="+", default=PEERS[:3], choices=PEERS)
    parser.add_argument("--warmup", type=int, default=25)
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--replays", type=int, default=20)
    parser.add_argument("--compile", action="store_true", help="dequantise through torch.compile instead of eager")
    parser.add_argument("--mlp", action="store_true", help="the whole MLP instead of nvfp4_geglu")
    parser.add_argument("--error", action="store_true", help="no times: the hidden's error through a down projection")
    parser.add_argument("--linear", action="store_true", help="the down projection instead of nvfp4_geglu")
    options = parser.parse_args()
    compare = (
        compare_error if options.error
        else compare_mlp if options.mlp
        else compare_linear if options.linear
        else compare_geglu
    )  # fmt: skip
    for m in options.rows:
        torch.cuda.reset_peak_memory_stats()
        compare(m, options)


if __name__ == "__main__":
    main()
