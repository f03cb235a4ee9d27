"""The stage that looks at the GPU kernels as they were built: resources and machine code, read from the objects."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from common import BUILD, JOBS, PYTHON, ROOT, Result, has_nvcc, log_path, main_build, run

# Kernels whose registers are watched: architectures (none: all), limits, threads of a block.
WATCHED = {
    "geglu/cuda/launch.cu": ((), ("geglu_[a-z]+_tile<(Bf16|Fp16), tanh> sm_103=40",), 128),
    "nvfp4_geglu/sm100/launch.cu": (("100f", "110a"), ("nvfp4_geglu_scaled=168",), 320),
    "nvfp4_linear/sm100/launch.cu": (("100f", "110a"), ("nvfp4_linear_scaled=168",), 320),
}

# A kernel with an array that has no register.
WITH_LOCAL_MEMORY = """__global__ void planted(float* out, const float* in, int n, int at) {
  float row[32];
  for (int i = 0; i < n; ++i) row[i % 32] = in[i];
  out[0] = row[at];
}
"""

# Objects of the build whose machine code is watched, with the architectures and what kernels must contain.
WATCHED_CODE = {
    "linear_logp": {
        "cuda/launch.cu": (("90",), ("merge_rows=LDG",)),
        "sm80/launch.cu": (("80", "90", "120"), ("leaf_kernel=HMMA",)),
        "sm80/backward_launch.cu": (("80", "90", "120"), ("product_kernel=HMMA,LDSM",)),
        "sm90/launch.cu": (
            ("90a",),
            (
                "tile_kernel=HGMMA,UTMALDG",
                "stream_kernel=HGMMA,UTMALDG",
                "tile_kernel=WARPGROUP:3",
                "stream_kernel=WARPGROUP:3",
            ),
        ),
    },
    "nvfp4_geglu": {
        "sm100/launch.cu": (("100f", "103a", "110a", "110f"), ("nvfp4_geglu_scaled=UTCOMMA,UTCCP,LDTM,UTMALDG",)),
    },
    "nvfp4_linear": {
        "sm100/launch.cu": (("100f", "103a", "110a", "110f"), ("nvfp4_linear_scaled=UTCOMMA,UTCCP,LDTM,UTMALDG",)),
    },
}


def kernel_object(source: str) -> Path:
    """What the build made of ROOM/FOLDER/launch.cu."""
    room, folder, file = source.split("/")
    return main_build() / "src/ops" / room / "CMakeFiles" / f"isobit_{room}_{folder}.dir" / folder / f"{file}.o"


def machine_code(result: Result) -> None:
    """No local memory in the kernels of WATCHED_CODE, and the instructions that their pages name."""
    jobs = []
    for room, sources in WATCHED_CODE.items():
        for source, (architectures, expected) in sources.items():
            options = [f"--arch={a}" for a in architectures]
            options += [f"--{'most' if ':' in text else 'expect'}={text}" for text in expected]
            command = [PYTHON, "scripts/kernel_sass.py", *options, kernel_object(f"{room}/{source}")]
            jobs.append((f"machine code {room} {source}", command))
    with ThreadPoolExecutor(int(JOBS)) as pool:
        for (name, _), code in zip(jobs, pool.map(lambda job: run(*job), jobs), strict=True):
            result.add(name, [] if code == 0 else [f"exit code {code}, {log_path(name)}"])
    faulty = subprocess.run([*jobs[-1][1], "--plant-fault"], cwd=ROOT, capture_output=True, check=False)
    result.add("a planted local load is found", [] if b"1 LDL" in faulty.stderr else ["it is not"])


def resources() -> Result:
    """Registers, stack, local memory and occupancy of the kernels that were built; their machine code."""
    result = Result()
    if not has_nvcc():
        result.note = "no nvcc"
        return result
    command = [PYTHON, "scripts/kernel_resources.py"]
    for source, (architectures, limits, threads) in WATCHED.items():
        options = [f"--threads={threads}", *(f"--arch={a}" for a in architectures)]
        options += [f"--max={limit}" for limit in limits]
        name = f"resources {source.split('/')[0]}"
        result.run(name, [*command, *options, kernel_object(source)])
        print(log_path(name).read_text(errors="replace"))
    every = sorted((main_build() / "src/ops").glob("*/CMakeFiles/*/*/*launch.cu.o"))
    result.run("resources of every kernel", [*command, *every])
    planted = BUILD / "planted.cu"
    planted.write_text(WITH_LOCAL_MEMORY)
    if result.run("planted local memory compiles", ["nvcc", "-arch=sm_90", "-c", planted, "-o", f"{planted}.o"]):
        said = subprocess.run([*command, f"{planted}.o"], cwd=ROOT, capture_output=True, check=False).stderr
        result.add("planted local memory is found", [] if said.count(b"FAILED planted sm_90") == 2 else ["it is not"])
    machine_code(result)
    return result
