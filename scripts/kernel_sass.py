"""Local-memory accesses in the machine code of kernels, and instructions that they must contain, from object files.

    scripts/kernel_sass.py --expect 'tile_kernel=HGMMA,UTMALDG' build/.../isobit_linear_logp_sm90.dir/sm90/launch.cu.o

Fails (exit 1) if a kernel loads or stores local memory (LDL, STL: a spill, or an array that has no register), lacks an
instruction that --expect names for it, or has more of one than --most allows: a fourth WARPGROUP in a loop of wgmma is
a wait that ptxas put in, after which every stage waits for its products. Needs cuobjdump: of the CUDA toolkit, or of
the package nvidia-cuda-cuobjdump with nvidia-cuda-nvdisasm.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from kernel_resources import cuobjdump, demangle

FORBIDDEN = ("LDL", "STL")
ARCHITECTURE = re.compile(r"^\s*arch = (sm_\w+)")
FUNCTION = re.compile(r"^\s*Function : (\S+)")
INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)")


class Kernel(NamedTuple):
    name: str
    architecture: str
    instructions: Counter


def parse(text: str) -> list[Kernel]:
    """Kernels of cuobjdump -sass, their names still mangled."""
    kernels, architecture = [], ""
    for line in text.splitlines():
        if match := ARCHITECTURE.match(line):
            architecture = match[1]
        elif match := FUNCTION.match(line):
            kernels.append(Kernel(match[1], architecture, Counter()))
        elif kernels and (match := INSTRUCTION.match(line)):
            kernels[-1].instructions[match[1]] += 1
    return kernels


def problems(
    kernels: list[Kernel], expected: list[tuple[str, list[str]]], most: list[tuple[str, str, int]]
) -> list[str]:
    """One line for each kernel and rule that it breaks."""
    found = [] if kernels else ["no kernel was found"]
    for kernel in kernels:
        label = f"{kernel.name} {kernel.architecture}"
        found += [f"{label}: {kernel.instructions[name]} {name}" for name in FORBIDDEN if kernel.instructions[name]]
        for part, names in expected:
            if part in kernel.name:
                found += [f"{label}: no {name}" for name in names if not kernel.instructions[name]]
        for part, name, count in most:
            if part in kernel.name and kernel.instructions[name] > count:
                found.append(f"{label}: {kernel.instructions[name]} {name} instead of at most {count}")
    for part in {part for part, *_ in [*expected, *most]}:
        if not any(part in kernel.name for kernel in kernels):
            found.append(f"no kernel has {part} in its name")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("objects", nargs="+", type=Path)
    parser.add_argument("--expect", action="append", default=[], metavar="NAME=INSTRUCTION,...",
                        help="instructions of kernels whose name holds NAME")  # fmt: skip
    parser.add_argument("--most", action="append", default=[], metavar="NAME=INSTRUCTION:COUNT",
                        help="how often such a kernel may hold an instruction")  # fmt: skip
    parser.add_argument(
        "--arch", action="append", default=[], help="90a, ...; may be repeated; default: all that are there"
    )
    parser.add_argument("--plant-fault", action="store_true", help="read a local load in each object: must fail")
    options = parser.parse_args()
    kernels = []
    for path, arch in ((path, arch) for path in options.objects for arch in options.arch or [""]):
        text = cuobjdump("-sass", *(["-arch", f"sm_{arch}"] if arch else []), path)
        if options.plant_fault:
            text = re.sub(r"(?m)^(\s*/\*0010\*/\s+).*$", r"\1@!P0 LDL.64 R2, [R1+0x8] ;", text, count=1)
        kernels += parse(text)
    names = demangle([kernel.name for kernel in kernels]) if kernels else []
    kernels = [kernel._replace(name=name) for kernel, name in zip(kernels, names, strict=True)]
    print(f"{'kernel':<64} {'arch':<8} {'instructions':>12} {'LDL':>5} {'STL':>5}")
    for kernel in sorted(kernels, key=lambda k: (k.name, k.architecture)):
        counts = " ".join(f"{kernel.instructions[name]:>5}" for name in FORBIDDEN)
        print(f"{kernel.name:<64} {kernel.architecture:<8} {kernel.instructions.total():>12} {counts}")
    expected = [(part, names.split(",")) for part, _, names in (e.partition("=") for e in options.expect)]
    most = [(part, *limit.split(":")) for part, _, limit in (e.partition("=") for e in options.most)]
    bad = problems(kernels, expected, [(part, name, int(count)) for part, name, count in most])
    for text in bad:
        print(f"FAILED {text}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
