"""Registers, stack, spills and theoretical occupancy of every kernel, from what ptxas says while it assembles.

    scripts/kernel_resources.py --arch 90 --arch 103 src/ops/geglu/cuda/launch.cu
    scripts/kernel_resources.py --log ptxas.txt            a saved output of nvcc -Xptxas -v

Fails (exit 1) if a kernel has a stack frame or spills, or exceeds a limit of --max PATTERN=REGISTERS.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
# The flags of cmake/arithmetic.cmake: other ones give other instructions.
FLAGS = ["-std=c++20", "--expt-relaxed-constexpr", "-O3", "-DNDEBUG", "-fmad=false", "-ftz=false", "-prec-div=true",
         "-prec-sqrt=true", "-Xptxas", "-v"]  # fmt: skip
REGISTERS_PER_MULTIPROCESSOR = 65536
REGISTER_UNIT = 8  # a thread's registers are allocated in units of this
BLOCKS_PER_MULTIPROCESSOR = 32
SMALL_MULTIPROCESSORS = {86, 89, 110, 120, 121}  # 1,536 threads; the others have 2,048

ENTRY = re.compile(r"Compiling entry function '([^']+)' for '(sm_\w+)'")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?")


class Kernel(NamedTuple):
    name: str
    architecture: str
    registers: int
    stack: int
    spills: int
    shared: int


def demangle(names: list[str]) -> list[str]:
    output = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    short = []
    for name in output.splitlines():
        text = re.sub(r"\b(?:void|isobit|numerics|device|\(anonymous namespace\))(?:::| )", "", name)
        text = re.sub(r"\(Gelu\)1|Gelu::kTanh", "tanh", re.sub(r"\(Gelu\)2|Gelu::kErf", "erf", text))
        short.append(text.split("(")[0])
    return short


def parse(log: str) -> list[Kernel]:
    kernels, entry, stack = [], None, (0, 0, 0)
    for line in log.splitlines():
        if match := ENTRY.search(line):
            entry = match.groups()
        elif match := STACK.search(line):
            stack = tuple(int(n) for n in match.groups())
        elif entry and (match := USED.search(line)):
            kernels.append(Kernel(entry[0], entry[1], int(match[1]), stack[0], stack[1] + stack[2], int(match[2] or 0)))
            entry = None
    names = demangle([kernel.name for kernel in kernels]) if kernels else []
    return [kernel._replace(name=name) for kernel, name in zip(kernels, names, strict=True)]


def occupancy(kernel: Kernel, threads: int) -> float:
    """Share of a multiprocessor's warps that fit, by registers and threads (not by shared memory)."""
    number = int(re.search(r"\d+", kernel.architecture)[0])
    limit = 1536 if number in SMALL_MULTIPROCESSORS else 2048
    registers = -(-kernel.registers // REGISTER_UNIT) * REGISTER_UNIT
    blocks = min(REGISTERS_PER_MULTIPROCESSOR // (registers * threads), limit // threads, BLOCKS_PER_MULTIPROCESSOR)
    return blocks * threads / limit


def assemble(source: Path, architecture: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        command = ["nvcc", *FLAGS, f"-arch=sm_{architecture}", "-cubin", "-I", ROOT / "include", "-I", ROOT / "src",
                   "-o", Path(folder) / "kernel.cubin", source]  # fmt: skip
        result = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{source} for sm_{architecture}:\n{result.stderr}")
    return result.stderr + result.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", type=Path)
    parser.add_argument("--arch", action="append", default=[], help="80, 90a, ...; may be repeated")
    parser.add_argument("--log", type=Path, help="a saved output instead of sources")
    parser.add_argument("--threads", type=int, default=128, help="of a block, for the occupancy (default 128)")
    parser.add_argument("--max", action="append", default=[], metavar="PATTERN=N", help="register limit of kernels")
    options = parser.parse_args()
    log = options.log.read_text() if options.log else ""
    jobs = [(source, architecture) for source in options.sources for architecture in options.arch]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        log += "".join(pool.map(lambda job: assemble(*job), jobs))
    kernels = parse(log)
    limits = [(re.compile(pattern), int(number)) for pattern, _, number in (m.rpartition("=") for m in options.max)]
    bad = []
    print(f"{'kernel':<56} {'arch':<8} {'registers':>9} {'stack':>6} {'spills':>7} {'occupancy':>10}")
    for k in sorted(kernels, key=lambda k: (k.name, k.architecture)):
        print(f"{k.name:<56} {k.architecture:<8} {k.registers:>9} {k.stack:>6} {k.spills:>7} "
              f"{occupancy(k, options.threads):>10.0%}")  # fmt: skip
        label = f"{k.name} {k.architecture}"
        if k.stack or k.spills:
            bad.append(f"{label}: {k.stack} bytes of stack, {k.spills} of spills")
        bad += [f"{label}: {k.registers} registers, the limit is {limit}"
                for pattern, limit in limits if pattern.search(label) and k.registers > limit]  # fmt: skip
    for text in bad:
        print(f"FAILED {text}", file=sys.stderr)
    return 1 if bad or not kernels else 0


if __name__ == "__main__":
    sys.exit(main())
