"""Registers, stack, local memory and theoretical occupancy of every kernel in object files, and the loads and stores of
local memory in their machine code: what was built is read, nothing is compiled.

    scripts/kernel_resources.py --arch 90 --arch 103 build/.../isobit_geglu_cuda.dir/cuda/launch.cu.o

Fails (exit 1) if a kernel has a stack frame or accesses local memory (a spill does), or exceeds a limit of
--max PATTERN=REGISTERS. Needs cuobjdump: of the CUDA toolkit, or of the package nvidia-cuda-cuobjdump.
"""

from __future__ import annotations

import argparse
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
REGISTERS_PER_MULTIPROCESSOR = 65536
REGISTER_UNIT = 8  # a thread's registers are allocated in units of this
BLOCKS_PER_MULTIPROCESSOR = 32
SMALL_MULTIPROCESSORS = {86, 89, 110, 120, 121}  # 1,536 threads; the others have 2,048

ARCHITECTURE = re.compile(r"^arch = (sm_\w+)")
FUNCTION = re.compile(r"^\s*Function (\S+):$")
USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")
# Low 12 bits of an instruction of 16 bytes, SM80 to SM121: LDL and STL.
LOCAL_OPCODES = {0x983, 0x387}


class Kernel(NamedTuple):
    name: str
    architecture: str
    registers: int
    stack: int  # bytes, and of local memory
    shared: int
    local: int  # instructions that access local memory


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


def find_cuobjdump() -> str:
    """Of the toolkit, or of this interpreter's packages."""
    packages = Path(sys.prefix).glob("lib/python*/site-packages/nvidia/*/bin")
    folders = ["/usr/local/cuda/bin", *(str(folder) for folder in packages)]
    found = shutil.which("cuobjdump") or shutil.which("cuobjdump", path=":".join(folders))
    if found is None:
        sys.exit("cuobjdump: not found; install the CUDA toolkit's, or nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm")
    return found


def cuobjdump(*words: str | Path, folder: str | None = None) -> str:
    command = [find_cuobjdump(), *(str(word) for word in words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def parse(usage: str, local: dict[tuple[str, str], int]) -> list[Kernel]:
    """Kernels of cuobjdump --dump-resource-usage, by their mangled names."""
    kernels, architecture, function = [], "", ""
    for line in usage.splitlines():
        if match := ARCHITECTURE.match(line):
            architecture = match[1]
        elif match := FUNCTION.match(line):
            function = match[1]
        elif function and (match := USAGE.search(line)):
            registers, stack, shared, local_bytes = (int(n) for n in match.groups())
            accesses = local[function, architecture.removesuffix("f")]
            kernels.append(Kernel(function, architecture, registers, stack + local_bytes, shared, accesses))
            function = ""
    return kernels


def kernels_of(path: Path, architectures: list[str]) -> list[Kernel]:
    """The kernels of an object file, of these architectures (none: of all that are there)."""
    local: dict[tuple[str, str], int] = {}
    with tempfile.TemporaryDirectory() as folder:
        cuobjdump("-xelf", "all", path.resolve(), folder=folder)
        for cubin in Path(folder).iterdir():
            architecture = cubin.suffixes[-2].removeprefix(".")  # of NAME.sm_90.cubin; that of a family lacks its f
            local |= {(kernel, architecture): n for kernel, n in local_accesses(cubin.read_bytes()).items()}
    kernels = parse(cuobjdump("--dump-resource-usage", path), local)
    wanted = [f"sm_{architecture}" for architecture in architectures]
    missing = sorted(set(wanted) - {kernel.architecture for kernel in kernels})
    if missing:
        sys.exit(f"{path}: no kernel for {', '.join(missing)}")
    return [kernel for kernel in kernels if not wanted or kernel.architecture in wanted]


def occupancy(kernel: Kernel, threads: int) -> float:
    """Share of a multiprocessor's warps that fit, by registers and threads (not by shared memory)."""
    number = int(re.search(r"\d+", kernel.architecture)[0])
    limit = 1536 if number in SMALL_MULTIPROCESSORS else 2048
    registers = -(-kernel.registers // REGISTER_UNIT) * REGISTER_UNIT
    blocks = min(REGISTERS_PER_MULTIPROCESSOR // (registers * threads), limit // threads, BLOCKS_PER_MULTIPROCESSOR)
    return blocks * threads / limit


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("objects", nargs="+", type=Path)
    parser.add_argument("--arch", action="append", default=[], help="80, 90a, ...; may be repeated; default: all")
    parser.add_argument("--threads", type=int, default=128, help="of a block, for the occupancy (default 128)")
    parser.add_argument("--max", action="append", default=[], metavar="PATTERN=N", help="register limit of kernels")
    options = parser.parse_args()
    kernels = [kernel for path in options.objects for kernel in kernels_of(path, options.arch)]
    names = demangle([kernel.name for kernel in kernels]) if kernels else []
    kernels = [kernel._replace(name=name) for kernel, name in zip(kernels, names, strict=True)]
    limits = [(re.compile(pattern), int(number)) for pattern, _, number in (m.rpartition("=") for m in options.max)]
    bad = []
    print(f"{'kernel':<56} {'arch':<8} {'registers':>9} {'stack':>6} {'local':>6} {'shared':>7} {'occupancy':>10}")
    for k in sorted(kernels, key=lambda k: (k.name, k.architecture)):
        print(f"{k.name:<56} {k.architecture:<8} {k.registers:>9} {k.stack:>6} "
              f"{k.local:>6} {k.shared:>7} {occupancy(k, options.threads):>10.0%}")  # fmt: skip
        label = f"{k.name} {k.architecture}"
        if k.stack:
            bad.append(f"{label}: {k.stack} bytes of stack")
        if k.local:
            bad.append(f"{label}: {k.local} instructions that access local memory")
        bad += [f"{label}: {k.registers} registers, the limit is {limit}"
                for pattern, limit in limits if pattern.search(label) and k.registers > limit]  # fmt: skip
    for text in bad:
        print(f"FAILED {text}", file=sys.stderr)
    return 1 if bad or not kernels else 0


if __name__ == "__main__":
    sys.exit(main())
