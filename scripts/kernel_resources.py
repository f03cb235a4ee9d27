"""Registers, stack, spills, local memory and theoretical occupancy of every kernel: what ptxas says while it assembles,
and the loads and stores of local memory in the machine code.

    scripts/kernel_resources.py --arch 90 --arch 103 src/ops/geglu/cuda/launch.cu
    scripts/kernel_resources.py --log ptxas.txt            a saved output of nvcc -Xptxas -v

Fails (exit 1) if a kernel has a stack frame, spills or accesses to local memory, or exceeds a limit of
--max PATTERN=REGISTERS.
"""

from __future__ import annotations

import argparse
import os
import re
import struct
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
# Low 12 bits of an instruction of 16 bytes, SM80 to SM121: LDL and STL.
LOCAL_OPCODES = {0x983, 0x387}


class Kernel(NamedTuple):
    name: str
    architecture: str
    registers: int
    stack: int
    spills: int
    shared: int
    local: int  # instructions that access local memory; -1: not looked at (--log)


def demangle(names: list[str]) -> list[str]:
    output = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    short = []
    for name in output.splitlines():
        text = re.sub(r"\b(?:void|isobit|numerics|device|\(anonymous namespace\))(?:::| )", "", name)
        text = re.sub(r"\(Gelu\)1|Gelu::kTanh", "tanh", re.sub(r"\(Gelu\)2|Gelu::kErf", "erf", text))
        text = re.sub(r"\((?:\w+::)*(\w+)\)(\d+)", r"\1 \2", text)  # another enumerator, a template argument
        short.append(text.split("(")[0])
    return short


def local_accesses(cubin: bytes) -> dict[str, int]:
    """Loads and stores of local memory in every kernel of an ELF file, by its mangled name."""
    (sections_at,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names_index = struct.unpack_from("<3H", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, sections_at + i * size) for i in range(count)]
    names_at = headers[names_index][4]
    found = {}
    for name, _, _, _, offset, length in headers:
        text = cubin[names_at + name : cubin.index(b"\0", names_at + name)].decode()
        if text.startswith(".text."):
            words = struct.unpack_from(f"<{length // 8}Q", cubin, offset)
            found[text.removeprefix(".text.")] = sum(word & 0xFFF in LOCAL_OPCODES for word in words[::2])
    return found


def parse(log: str, local: dict[tuple[str, str], int]) -> list[Kernel]:
    kernels, entry, stack = [], None, (0, 0, 0)
    for line in log.splitlines():
        if match := ENTRY.search(line):
            entry = match.groups()
        elif match := STACK.search(line):
            stack = tuple(int(n) for n in match.groups())
        elif entry and (match := USED.search(line)):
            kernels.append(Kernel(*entry, int(match[1]), stack[0], stack[1] + stack[2], int(match[2] or 0),
                                  local.get(entry, -1)))  # fmt: skip
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


def assemble(source: Path, architecture: str) -> tuple[str, dict[tuple[str, str], int]]:
    """What ptxas says, and the accesses to local memory by kernel and architecture."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["nvcc", *FLAGS, f"-arch=sm_{architecture}", "-cubin", "-I", ROOT / "include", "-I", ROOT / "src",
                   "-o", Path(folder) / "kernel.cubin", source]  # fmt: skip
        result = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        if result.returncode != 0:
            sys.exit(f"{source} for sm_{architecture}:\n{result.stderr}")
        local = local_accesses((Path(folder) / "kernel.cubin").read_bytes())
    return result.stderr + result.stdout, {(kernel, f"sm_{architecture}"): n for kernel, n in local.items()}


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
    local: dict[tuple[str, str], int] = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for text, accesses in pool.map(lambda job: assemble(*job), jobs):
            log += text
            local |= accesses
    kernels = parse(log, local)
    limits = [(re.compile(pattern), int(number)) for pattern, _, number in (m.rpartition("=") for m in options.max)]
    bad = []
    print(f"{'kernel':<56} {'arch':<8} {'registers':>9} {'stack':>6} {'spills':>7} {'local':>6} {'shared':>7} "
          f"{'occupancy':>10}")  # fmt: skip
    for k in sorted(kernels, key=lambda k: (k.name, k.architecture)):
        print(f"{k.name:<56} {k.architecture:<8} {k.registers:>9} {k.stack:>6} {k.spills:>7} "
              f"{k.local:>6} {k.shared:>7} {occupancy(k, options.threads):>10.0%}")  # fmt: skip
        label = f"{k.name} {k.architecture}"
        if k.stack or k.spills:
            bad.append(f"{label}: {k.stack} bytes of stack, {k.spills} of spills")
        if k.local > 0:
            bad.append(f"{label}: {k.local} instructions that access local memory")
        bad += [f"{label}: {k.registers} registers, the limit is {limit}"
                for pattern, limit in limits if pattern.search(label) and k.registers > limit]  # fmt: skip
    for text in bad:
        print(f"FAILED {text}", file=sys.stderr)
    return 1 if bad or not kernels else 0


if __name__ == "__main__":
    sys.exit(main())
