"""Compiles every GPU kernel for SM80 and SM90 with CUDA releases beside the one that builds the library, taken from
package registries, and reports registers and spills.

    scripts/other_toolkits.py --build build/dev                      13.5, then 12.9; 10 to 20 minutes, by hand
    scripts/other_toolkits.py 13.5 --only linear_logp/sm90 --json kernels.jsonl
    scripts/other_toolkits.py 12.9 --ptx build/dev/ptx               the interpreter's tests then run 12.9's PTX

13.x   That release's nvcc compiles the .cu files whole; its warnings are errors.
12.9   No package holds its nvcc. Its run-time compiler compiles the .cuh files that a .cu file includes, and in them
       every kernel that 13.x found in that file (so 13.x goes first), to the same symbol. The host's side of the .cu
       files is not compiled.

A whole run also holds the host's C++ that calls the CUDA runtime against the release's headers. Fails if a
kernel does not compile or spills, or one of those files does not compile. --build names a configured build folder (its
generated headers).
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from kernel_resources import ROOT, demangle

PACKAGES = {
    "13.5": ["nvidia-cuda-nvcc==13.5.37", "nvidia-nvvm==13.5.37", "nvidia-cuda-crt==13.5.37",
             "nvidia-cuda-runtime==13.5.37", "nvidia-cuda-cccl==13.3.5.0.6"],
    "12.9": ["nvidia-cuda-nvrtc-cu12==12.9.86", "nvidia-cuda-runtime-cu12==12.9.79", "nvidia-cuda-cccl-cu12==12.9.27",
             "nvidia-cuda-nvcc-cu12==12.9.86"],
}  # fmt: skip
INCLUDES = {"13.5": ["cu13/include"], "12.9": ["cuda_runtime/include", "cuda_nvcc/include"]}  # of the runtime
CALLERS = ("src/core/cuda_runtime.cpp", "tools/isobit/device_cuda.cpp")  # the host's files that call it
ARCHITECTURES = {"cuda": ("80", "90"), "sm80": ("80", "90"), "sm90": ("90a",)}  # by the folder of a .cu file
# The flags of cmake/arithmetic.cmake: other ones give other instructions.
FLAGS = ["-std=c++20", "-DNDEBUG", "-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true"]
NVCC_FLAGS = ["--expt-relaxed-constexpr", "-O3", "-Xptxas=-v", "-static-global-template-stub=false",
              "-Werror=all-warnings"]  # fmt: skip
# What ptxas -v says of a kernel.
ENTRY = re.compile(r"Compiling entry function '([^']+)'")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
# The C++ library that the run-time compiler lacks, from CUDA's own.
SHIMS = {name: name for name in ("cstdint", "cstddef", "cmath", "type_traits", "initializer_list")}
SHIMS |= {"stdint.h": "cstdint", "stddef.h": "cstddef", "algorithm": "__algorithm_"}


class Kernel(NamedTuple):
    name: str
    registers: int
    stack: int  # bytes
    spills: int  # bytes that are stored and loaded


def parse(log: str) -> list[Kernel]:
    kernels, entry, stack = [], "", (0, 0, 0)
    for line in log.splitlines():
        if match := ENTRY.search(line):
            entry = match[1]
        elif match := STACK.search(line):
            stack = tuple(int(n) for n in match.groups())
        elif entry and (match := USED.search(line)):
            kernels.append(Kernel(entry, int(match[1]), stack[0], stack[1] + stack[2]))
            entry = ""
    names = demangle([kernel.name for kernel in kernels]) if kernels else []
    return [kernel._replace(name=name) for kernel, name in zip(kernels, names, strict=True)]


class Job(NamedTuple):
    unit: Path
    arch: str

    def label(self) -> str:
        return f"{self.unit.relative_to(ROOT / 'src/ops').with_suffix('')}"

    def output(self, folder: Path, suffix: str) -> Path:
        """A file of its own below the folder: OP/FOLDER/NAME.ARCH.SUFFIX."""
        path = folder / f"{self.label()}.{self.arch}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def all_jobs(only: str) -> list[Job]:
    units = sorted(unit for unit in ROOT.glob("src/ops/*/*/*.cu") if unit.parent.name in ARCHITECTURES)
    jobs = [Job(unit, arch) for unit in units for arch in ARCHITECTURES[unit.parent.name]]
    return [job for job in jobs if only in job.label()]


def install(release: str, into: Path) -> Path:
    folder = into / release
    if not folder.exists():
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
        subprocess.run([*pip, *PACKAGES[release]], check=True)
    return folder / "nvidia"


class WholeFiles:
    """nvcc of a 13.x package."""

    def __init__(self, toolkit: Path, build: Path, out: Path):
        self.nvcc, self.build, self.out = toolkit / "cu13/bin/nvcc", build, out
        for tool in self.nvcc.parent.iterdir():
            if tool.is_file():
                tool.chmod(0o755)

    def __call__(self, job: Job) -> tuple[str, Path]:
        """What the compiler said ("" and no file if it failed) and the PTX text."""
        kept = job.output(self.out, "kept")
        kept.mkdir(exist_ok=True)
        command = [self.nvcc, "-c", f"-gencode=arch=compute_{job.arch},code=sm_{job.arch}", *FLAGS, *NVCC_FLAGS,
                   f"-I{ROOT}/include", f"-I{ROOT}/src", f"-I{self.build}/src", "--keep", f"--keep-dir={kept}", "-o",
                   job.output(self.out, "o"), job.unit]  # fmt: skip
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done.stderr + done.stdout, next(kept.glob("*.ptx"))


def signature(symbol: str) -> str:
    """A kernel as C++ writes it. The run-time compiler's int64_t is long long, nvcc's on Linux long."""
    text = subprocess.run(["c++filt", symbol], capture_output=True, text=True, check=True).stdout.strip()
    return text.replace("long long", "long")


def full_name(symbol: str) -> str:
    """The name and template arguments alone."""
    text, depth = signature(symbol), 0
    for at, letter in enumerate(text):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0:
            text = text[:at]
            break
    return text.removeprefix("void ")


class Headers:
    """The run-time compiler of 12.9."""

    def __init__(self, toolkit: Path, build: Path, out: Path, names: Path):
        self.library = ctypes.CDLL(str(toolkit / "cuda_nvrtc/lib/libnvrtc.so.12"))
        self.out, self.names = out, names
        shims = out / "shims"
        shims.mkdir(parents=True, exist_ok=True)
        for name, own in SHIMS.items():
            text = f"#include <cuda/std/{own}>\nnamespace std {{ using namespace cuda::std; }}\n"
            (shims / name).write_text(text)
        includes = [shims, toolkit / "cuda_cccl/include", toolkit / "cuda_runtime/include", ROOT / "include",
                    ROOT / "src", build / "src"]  # fmt: skip
        self.options = [*FLAGS, "--device-as-default-execution-space", "-diag-suppress=1097",
                        *(f"-I{folder}" for folder in includes)]  # fmt: skip

    def text(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        getattr(self.library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        data = ctypes.create_string_buffer(size.value)
        getattr(self.library, f"nvrtcGet{what}")(program, data)
        return data.value

    def compile(self, source: str, symbols: list[str], options: list[str]) -> tuple[str, bytes]:
        """The log and the PTX text, where every kernel has the symbol that nvcc gives it."""
        nvrtc, program = self.library, ctypes.c_void_p()
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"unit.cu", 0, None, None)
        names = [full_name(symbol).encode() for symbol in symbols]
        for name in names:
            nvrtc.nvrtcAddNameExpression(program, name)
        result = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(
            *(option.encode() for option in options)))  # fmt: skip
        log = self.text(program, "ProgramLog").decode()
        if result != 0:
            raise RuntimeError(log)
        lowered, ptx = ctypes.c_char_p(), self.text(program, "PTX")
        for name, symbol in zip(names, symbols, strict=True):
            nvrtc.nvrtcGetLoweredName(program, name, ctypes.byref(lowered))
            if signature(lowered.value.decode()) != signature(symbol):
                raise RuntimeError(f"{name.decode()}: expected symbol {symbol}, got {lowered.value.decode()}")
            ptx = ptx.replace(lowered.value, symbol.encode())
        # --device-as-default-execution-space makes device variables of the host's strings. No kernel reads them, and
        # the interpreter does not know pointers to variables.
        ptx = re.sub(rb"(?m)^\.global .*= generic\(\$str.*\n", b"", ptx)
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        return log, ptx

    def __call__(self, job: Job) -> tuple[str, Path]:
        log = job.output(self.names, "log")
        if not log.exists():
            raise RuntimeError("13.x has not listed the kernels of this file yet")
        symbols = ENTRY.findall(log.read_text())
        headers = re.findall(r'#include "([^"]+\.cuh)"', job.unit.read_text())
        source = "".join(f'#include "{header}"\n' for header in headers)
        said, _ = self.compile(source, symbols, [f"-arch=sm_{job.arch}", "--ptxas-options=-v", *self.options])
        _, ptx = self.compile(source, symbols, [f"-arch=compute_{job.arch}", *self.options])
        path = job.output(self.out, "ptx")
        path.write_bytes(ptx)
        return said, path


def report(release: str, job: Job, kernels: list[Kernel], records) -> bool:
    """One line a file and architecture; the kernels go to the records. False if one spills."""
    for kernel in kernels:
        record = {"toolkit": release, "file": job.label(), "arch": job.arch, "kernel": kernel.name,
                  "registers": kernel.registers, "stack": kernel.stack, "spills": kernel.spills}  # fmt: skip
        print(json.dumps(record), file=records)
    bad = [kernel for kernel in kernels if kernel.spills or kernel.stack]
    registers = [kernel.registers for kernel in kernels]
    print(f"| {release} | {job.label()} | {job.arch} | {len(kernels)} | {min(registers)} to {max(registers)} | "
          f"{len(bad)} |", flush=True)  # fmt: skip
    for kernel in bad:
        print(f"{kernel.name}: {kernel.stack} bytes of stack, {kernel.spills} of spills", flush=True)
    return not bad and len(kernels) > 0


def compile_callers(release: str, toolkit: Path, build: Path) -> int:
    """The number of host files that the release's runtime interface does not suit."""
    failures = 0
    for file in CALLERS:
        command = ["c++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include",
                   f"-I{ROOT}/src", f"-I{ROOT}/tools", f"-I{build}/src", ROOT / file]  # fmt: skip
        command[1:1] = [f"-isystem{toolkit / folder}" for folder in INCLUDES[release]]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        failures += done.returncode != 0
        print(f"{release} {file}: {done.stderr or 'compiled'}", flush=True)
    return failures


def run_release(release: str, options: argparse.Namespace, records) -> int:
    """The number of files and architectures that failed."""
    toolkit = install(release, options.into)
    out = options.into / f"{release}-out"
    newest = options.into / f"{next(iter(PACKAGES))}-out"
    whole = release.startswith("13")
    compiler = WholeFiles(toolkit, options.build, out) if whole else Headers(toolkit, options.build, out, newest)

    def one(job: Job):
        try:
            return job, *compiler(job)
        except RuntimeError as error:
            return job, str(error), None

    failures = compile_callers(release, toolkit, options.build) if options.only == "" else 0
    print("\n| CUDA | file | architecture | kernels | registers | with spills |\n|---|---|---|---|---|---|")
    with ThreadPoolExecutor(options.jobs) as pool:
        for job, said, ptx in pool.map(one, all_jobs(options.only)):
            if ptx is None:
                print(f"{release} {job.label()} {job.arch}: {said}", flush=True)
            else:
                job.output(out, "log").write_text(said)
                if options.ptx:
                    job.output(options.ptx, "ptx").write_bytes(ptx.read_bytes())
            failures += ptx is None or not report(release, job, parse(said), records)
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help=f"of {', '.join(PACKAGES)} (default: all)")
    parser.add_argument("--into", type=Path, default=ROOT / "build/toolkits", help="where packages and objects go")
    parser.add_argument("--build", type=Path, default=ROOT / "build/dev")
    parser.add_argument("--only", default="", help="files whose OP/FOLDER/NAME holds this")
    parser.add_argument("--json", type=Path, default=Path(os.devnull), help="a line per kernel")
    parser.add_argument("--ptx", type=Path, help="PTX texts, laid out like a build's folder ptx")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    unknown = set(options.releases) - set(PACKAGES)
    if unknown:
        parser.error(f"RELEASE: expected one of {', '.join(PACKAGES)}, got {', '.join(unknown)}")
    with options.json.open("w") as records:
        failures = sum(run_release(release, options, records) for release in options.releases or PACKAGES)
    return 1 if failures > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
