"""Compiles linear_logp's device code for SM80 and SM90 with CUDA releases beside the one that builds the library, taken
from package registries.

    scripts/other_toolkits.py 13.5 --into build/toolkits --build build/dev
    scripts/other_toolkits.py 12.9 --into build/toolkits --build build/dev

13.x: that release's nvcc compiles every .cu file of the room. 12.9: no package holds its nvcc, so its run-time compiler
turns the forward kernels' headers into machine code, bfloat16 and fp16, all modes; neither the backward kernels nor the
host's side are compiled. Warnings of nvcc and spills are errors. --build names a configured build folder (its generated
headers). One to three minutes, by hand; `make test` does not run it.
"""

from __future__ import annotations

import argparse
import ctypes
import re
import subprocess
import sys
from pathlib import Path

from kernel_resources import ROOT

ARITHMETIC = ["-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true"]
PTXAS = ["-warn-spills", "-warn-lmem-usage", "-Werror"]
ROOM = ROOT / "src/ops/linear_logp"
PACKAGES = {
    "13.5": ["nvidia-cuda-nvcc==13.5.37", "nvidia-nvvm==13.5.37", "nvidia-cuda-crt==13.5.37",
             "nvidia-cuda-runtime==13.5.37", "nvidia-cuda-cccl==13.3.5.0.6"],
    "12.9": ["nvidia-cuda-nvrtc-cu12==12.9.86", "nvidia-cuda-runtime-cu12==12.9.79", "nvidia-cuda-cccl-cu12==12.9.27"],
}  # fmt: skip

# What the run-time compiler is given: header, architecture, kernels.
FORMATS = ("numerics::Bf16", "numerics::Fp16")
MODES = tuple(f"cuda::Mode::{mode}" for mode in ("kLogp", "kEntropy", "kFull"))
MERGES = tuple(f"cuda::MergeShape<{shape}>" for shape in ("1, 256, 3, 256", "4, 512, 2, 256", "8, 256, 4, 256"))
GENERAL = (
    [f"cuda/gather.cuh cuda::gather_targets<{f}>" for f in FORMATS]
    + [f"cuda/merge.cuh cuda::merge_rows<{e}, {shape}>" for e in ("true", "false") for shape in MERGES]
    + [f"cuda/publish.cuh cuda::publish_nodes<{e}, {shape}>" for e in ("true", "false") for shape in MERGES]
    + [f"cuda/merge_states.cuh cuda::merge_states<{e}>" for e in ("true", "false")]
    + ["cuda/top.cuh cuda::list_top", "cuda/others.cuh cuda::find_leads", "cuda/others.cuh cuda::sum_others"]
    + [f"sm80/kernel.cuh sm80::leaf_kernel<{f}, {m}, {a}>" for f in FORMATS for m in MODES for a in ("true", "false")]
)
HOPPER = [f"sm90/kernel.cuh sm90::tile_kernel<{f}, {m}>" for f in FORMATS for m in MODES] + [
    f"sm90/stream_kernel.cuh sm90::stream_kernel<{f}, {m}, sm90::StreamConfig<{tokens}>>"
    for f in FORMATS for m in MODES for tokens in (8, 16, 32, 64)
]  # fmt: skip
# The C++ library that the run-time compiler lacks, from CUDA's own.
SHIMS = {name: name for name in ("cstdint", "cstddef", "cmath", "type_traits", "initializer_list")}
SHIMS |= {"stdint.h": "cstdint", "stddef.h": "cstddef"}


def full_name(kernel: str) -> str:
    """CUDA's own library has a namespace cuda as well."""
    room = re.sub(r"\b(cuda|sm80|sm90)::", r"isobit::linear_logp::\1::", kernel)
    return room.replace("numerics::", "isobit::numerics::")


def install(release: str, into: Path) -> Path:
    folder = into / release
    if not folder.exists():
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
        subprocess.run([*pip, *PACKAGES[release]], check=True)
    return folder / "nvidia"


def compile_units(toolkit: Path, build: Path, out: Path) -> int:
    nvcc = toolkit / "cu13/bin/nvcc"
    for tool in nvcc.parent.iterdir():
        if tool.is_file():
            tool.chmod(0o755)
    failures = 0
    for unit in sorted(ROOM.glob("*/*.cu")):
        if unit.parent.name in ("test", "bench"):
            continue
        for arch in ["90a"] if unit.parent.name == "sm90" else ["80", "90"]:
            command = [str(nvcc), "-c", f"-gencode=arch=compute_{arch},code=sm_{arch}", "-std=c++20",
                       "--expt-relaxed-constexpr", "-static-global-template-stub=false", *ARITHMETIC, "-O3", "-DNDEBUG",
                       "-Werror=all-warnings", f"-Xptxas={','.join(PTXAS)}", f"-I{ROOT}/include",
                       f"-I{ROOT}/src", f"-I{build}/src", "-o", str(out / f"{unit.stem}.{arch}.o"),
                       str(unit)]  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True)
            failures += done.returncode != 0
            result = "compiled" if done.returncode == 0 else done.stderr
            print(f"{unit.relative_to(ROOT)} sm_{arch}: {result}", flush=True)
    return failures


class RuntimeCompiler:
    def __init__(self, toolkit: Path, shims: Path, build: Path):
        self.library = ctypes.CDLL(str(toolkit / "cuda_nvrtc/lib/libnvrtc.so.12"))
        shims.mkdir(parents=True, exist_ok=True)
        for name, own in SHIMS.items():
            text = f"#include <cuda/std/{own}>\nnamespace std {{ using namespace cuda::std; }}\n"
            (shims / name).write_text(text)
        includes = [shims, toolkit / "cuda_cccl/include", toolkit / "cuda_runtime/include", ROOT / "include",
                    ROOT / "src", build / "src"]  # fmt: skip
        self.options = ["-std=c++20", "-DNDEBUG", *ARITHMETIC, "--device-as-default-execution-space",
                        "-diag-suppress=1097", *(f"-I{folder}" for folder in includes)]  # fmt: skip

    def compile(self, arch: str, header: str, kernels: list[str]) -> tuple[int, str]:
        """Bytes of machine code, 0 if it failed, and the log."""
        nvrtc, program, size = self.library, ctypes.c_void_p(), ctypes.c_size_t()
        source = f'#include "ops/linear_logp/{header}"\n'
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"unit.cu", 0, None, None)
        for kernel in kernels:
            nvrtc.nvrtcAddNameExpression(program, full_name(kernel).encode())
        options = [f"-arch=sm_{arch}", *(f"--ptxas-options={o}" for o in PTXAS), *self.options]
        result = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(
            *(option.encode() for option in options)))  # fmt: skip
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        size.value = 0
        if result == 0:
            nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        return size.value, log.value.decode().strip()


def compile_headers(toolkit: Path, build: Path, out: Path) -> int:
    compiler = RuntimeCompiler(toolkit, out / "shims", build)
    failures = 0
    for arch, kernels in (("80", GENERAL), ("90", GENERAL), ("90a", HOPPER)):
        of_header: dict[str, list[str]] = {}
        for entry in kernels:
            header, kernel = entry.split(" ", 1)
            of_header.setdefault(header, []).append(kernel)
        for header, names in of_header.items():
            size, log = compiler.compile(arch, header, names)
            failures += size == 0
            print(f"{header} sm_{arch}, {len(names)} kernels: {f'{size} bytes' if size > 0 else log}", flush=True)
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release", choices=tuple(PACKAGES))
    parser.add_argument("--into", type=Path, default=ROOT / "build/toolkits")
    parser.add_argument("--build", type=Path, default=ROOT / "build/dev")
    options = parser.parse_args()
    out = options.into / f"{options.release}-objects"
    out.mkdir(parents=True, exist_ok=True)
    compile_all = compile_headers if options.release.startswith("12") else compile_units
    failures = compile_all(install(options.release, options.into), options.build, out)
    print(f"{options.release}: {failures} failed")
    return 1 if failures > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
