"""What the stages on compile commands and symbols compare."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from common import has_nvcc

HOST_FLAGS = ("-ffp-contract=off", "-fno-fast-math")
X86_FLAGS = ("-march=x86-64-v3",)
DEVICE_FLAGS = ("-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true")
FORBIDDEN = re.compile(
    r"-ffast-math|-Ofast|-funsafe-math|-fassociative-math|-freciprocal-math|-ffp-contract=(fast|on)|use_fast_math"
    r"|-fmad=true|-ftz=true|-prec-div=false|-prec-sqrt=false"
)


class Command(NamedTuple):
    file: str
    command: str


def ptx_commands(ninja: str) -> list[Command]:
    """The commands that make PTX text, which are not in compile_commands.json."""
    commands = re.findall(r"^\s*COMMAND = (.* -ptx .*)$", ninja, re.MULTILINE)
    return [Command(command.split()[-1], command) for line in commands for command in [line.split(" && ")[-1]]]


def flag_problems(command: Command) -> list[str]:
    """What is missing or forbidden in one compile command."""
    words = command.command.split()
    wanted = DEVICE_FLAGS if command.file.endswith(".cu") else HOST_FLAGS
    if not command.file.endswith(".cu") and "aarch64" not in words[0]:
        wanted += X86_FLAGS
    problems = [f"{flag} is missing" for flag in wanted if flag not in words]
    return problems + [f"{found.group()} is forbidden" for found in FORBIDDEN.finditer(command.command)]


def planted_flag_faults(commands: list[Command]) -> list[Command]:
    """Commands with one flag taken away or one forbidden flag added."""
    faults = []
    for suffix, flags in ((".cpp", HOST_FLAGS), (".cu", DEVICE_FLAGS)):
        sample = next((command for command in commands if command.file.endswith(suffix)), None)
        if sample is not None:
            faults += [sample._replace(command=sample.command.replace(flag, "")) for flag in flags]
            faults.append(sample._replace(command=sample.command + " -ffast-math"))
    return faults


# Headers of other libraries than libisobit.
HEADERS_OF = {"tensor_parallel.h": "isobit_nccl"}


def declared_functions(root: Path, library: str = "isobit") -> set[str]:
    """Functions that the library's public headers mark with ISOBIT_API."""
    names: set[str] = set()
    for path in (root / "include/isobit").glob("*.h"):
        if HEADERS_OF.get(path.name, "isobit") != library:
            continue
        names |= set(re.findall(r"^ISOBIT_API [^;(]*?\b(isobit_\w+)\(", path.read_text(), re.MULTILINE))
    return names


def exported_symbols(nm: str) -> set[str]:
    """Names of nm's list without versions; the version node itself is absolute (A) and left out."""
    rows = [line.split() for line in nm.splitlines()]
    return {row[-1].split("@")[0] for row in rows if len(row) == 3 and row[1] != "A"}


def symbol_problems(declared: set[str], exported: set[str]) -> list[str]:
    missing = [f"{name} is declared, not exported" for name in sorted(declared - exported)]
    return missing + [f"{name} is exported, not declared" for name in sorted(exported - declared)]


def needed_problems(readelf: str, more: tuple[str, ...] = ()) -> list[str]:
    """The library may need the C and C++ runtimes and OpenMP's, and more by name."""
    allowed = ("libc.so", "libm.so", "libstdc++.so", "libgcc_s.so", "libgomp.so", "ld-linux", *more)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf)
    return [f"needs {name}" for name in needed if not name.startswith(allowed)]


def cuda_include() -> list[str]:
    return ["-isystem", "/usr/local/cuda/include"] if has_nvcc() else []


def needs_absent_cuda(path: Path) -> bool:
    """A header with one of the toolkit's headers, or NCCL's, on a machine without them."""
    text = path.read_text()
    if re.search(r"^#include <nccl", text, re.MULTILINE):
        return not any((Path(folder) / "nccl.h").exists() for folder in ("/usr/local/cuda/include", "/usr/include"))
    return not has_nvcc() and re.search(r"^#include <cuda", text, re.MULTILINE) is not None


def extra_header_flags(path: Path) -> list[str]:
    """Target flags that a header of intrinsics needs."""
    if "avx512" in path.name:
        return ["-march=x86-64-v4"]
    return ["-march=x86-64-v3"]
