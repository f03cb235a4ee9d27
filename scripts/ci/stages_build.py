"""Stages that install, build and run test programs."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import venv
from pathlib import Path

from common import BUILD, JOBS, PYTHON, ROOT, VENV, VENV_STAMP, Result, has_nvcc, log_path, main_build, main_preset, run

# Debian package, and a file that shows it is there.
PACKAGES = {
    "ca-certificates": "/usr/sbin/update-ca-certificates",
    "clang-format-14": "/usr/bin/clang-format-14",
    "clang": "/usr/bin/clang++",
    "clang-tidy-14": "/usr/bin/clang-tidy-14",
    "cmake": "/usr/bin/cmake",
    "g++": "/usr/bin/g++",
    "g++-aarch64-linux-gnu": "/usr/bin/aarch64-linux-gnu-g++",
    "git": "/usr/bin/git",
    "googletest": "/usr/src/googletest/CMakeLists.txt",
    "libc6-dev": "/usr/include/stdlib.h",
    "libclang-rt-14-dev": "/usr/lib/llvm-14/lib/clang/14.0.6/lib/linux/libclang_rt.fuzzer-x86_64.a",
    "libcli11-dev": "/usr/include/CLI/CLI.hpp",
    "libfmt-dev": "/usr/include/fmt/format.h",
    "libhwy-dev": "/usr/include/hwy/highway.h",
    "libgtest-dev": "/usr/include/gtest/gtest.h",
    "ninja-build": "/usr/bin/ninja",
    "nlohmann-json3-dev": "/usr/include/nlohmann/json.hpp",
    "pkg-config": "/usr/bin/pkg-config",
    "qemu-user-static": "/usr/bin/qemu-aarch64-static",
}


def setup() -> Result:
    """Debian packages that are missing, and a Python environment with pinned packages."""
    result = Result(note="with CUDA" if has_nvcc() else "no nvcc: everything but the GPU kernels")
    missing = [package for package, proof in PACKAGES.items() if not Path(proof).exists()]
    if missing:
        if os.geteuid() != 0:
            result.failures.append(f"missing Debian packages (install them as root): {' '.join(missing)}")
            return result
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        result.run("apt-get update", ["apt-get", "update", "-qq"], environment=quiet)
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing]
        result.run("apt-get install", install, environment=quiet)
    requirements = ROOT / "scripts/ci/requirements.txt"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if not VENV_STAMP.exists() or VENV_STAMP.read_text() != digest:
        venv.create(VENV, clear=True, with_pip=True)
        if result.run("pip install", [PYTHON, "-m", "pip", "install", "--quiet", "-r", requirements]):
            VENV_STAMP.write_text(digest)
    result.add("tools", [proof for proof in PACKAGES.values() if not Path(proof).exists()])
    return result


def build_preset(result: Result, preset: str, *definitions: str, targets: tuple[str, ...] = ("all",)) -> bool:
    """Configures build/<preset> and builds all of it, or the targets."""
    if not result.run(f"configure {preset}", ["cmake", "--preset", preset, *definitions]):
        return False
    return result.run(f"build {preset}", ["cmake", "--build", BUILD / preset, "--parallel", JOBS, "--target", *targets])


def run_tests(result: Result, folder: Path, name: str, *options: str, **keywords) -> None:
    """ctest without the tests that need a GPU; every test program counts as one."""
    command = ["ctest", "--test-dir", folder, "--label-exclude", "gpu", "--parallel", JOBS, "--output-on-failure",
               *options]  # fmt: skip
    code = run(name, command, **keywords)
    text = log_path(name).read_text(errors="replace")
    counts = re.search(r"(\d+)% tests passed, (\d+) tests failed out of (\d+)", text)
    total = int(counts.group(3)) if counts else 0
    failed = re.findall(r"^\s*\d+ - (\S+) \((.*)\)$", text, re.MULTILINE)
    result.failures += [f"{name}: {test} {how}" for test, how in failed]
    result.passed += total - len(failed)
    if total == 0 or (code != 0 and not failed):
        result.failures.append(f"{name}: ctest exit code {code}, {total} tests, {log_path(name)}")
    slowest = sorted(re.findall(r"Test +#\d+: (\S+) .* ([\d.]+) sec", text), key=lambda t: -float(t[1]))[:3]
    result.note = "slowest: " + ", ".join(f"{test} {seconds} s" for test, seconds in slowest)


def build() -> Result:
    """The library for every architecture (with nvcc), command line and tests: test programs a folder at a time. The
    stage aarch64 compiles their sources one by one."""
    result = Result()
    # The environment's Python has apache-tvm-ffi, which the Python package's shim is built with.
    if build_preset(result, main_preset(), f"-DPython_EXECUTABLE={PYTHON}", "-DISOBIT_UNITY=ON"):
        steps = (main_build() / ".ninja_log").read_text().count("\n") - 1
        result.note = f"preset {main_preset()}, {steps} steps"
    return result


def tests() -> Result:
    """Unit and contract tests of the main build."""
    result = Result()
    run_tests(result, main_build(), "ctest")
    return result


def sanitizers() -> Result:
    """The CPU suite under AddressSanitizer and UBSan, which doubles as the build without CUDA."""
    result = Result()
    if build_preset(result, "asan"):
        options = {"ASAN_OPTIONS": "detect_stack_use_after_return=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
        run_tests(result, BUILD / "asan", "ctest asan", environment=options)
    return result


def fuzz() -> Result:
    """A bounded run of each libFuzzer program, the committed corpus first."""
    result = Result()
    arguments = ("fuzz_linear_logp_arguments", "fuzz_linear_logp_backward_arguments")
    if not build_preset(result, "fuzz", targets=("fuzz_safetensors", *arguments)):
        return result
    corpus = BUILD / "fuzz/corpus"
    shutil.rmtree(corpus, ignore_errors=True)
    corpus.mkdir()
    for file in (ROOT / "tests/corpus/safetensors").glob("*/*.safetensors"):
        shutil.copy(file, corpus)
    programs = BUILD / "fuzz/tests/fuzz"
    options = ["-runs=50000", "-seed=1", "-print_final_stats=1", f"-artifact_prefix={BUILD}/fuzz/"]
    words = f"-dict={ROOT}/tests/fuzz/safetensors.dict"
    result.run("fuzz_safetensors", [programs / "fuzz_safetensors", "-max_len=2048", words, *options, corpus])
    for program in arguments:
        result.run(program, [programs / program, "-max_len=1536", *options])
    return result


def googletest_for_aarch64(result: Result) -> Path | None:
    """GoogleTest built from Debian's source for the other architecture, once."""
    prefix = BUILD / "aarch64-googletest"
    if (prefix / "lib/cmake/GTest/GTestConfig.cmake").exists():
        return prefix
    work = BUILD / "aarch64-googletest-build"
    shutil.rmtree(work, ignore_errors=True)
    configure = ["cmake", "-S", "/usr/src/googletest", "-B", work, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                 f"-DCMAKE_TOOLCHAIN_FILE={ROOT}/cmake/aarch64-linux-gnu.cmake", "-DBUILD_GMOCK=OFF",
                 f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_INSTALL_LIBDIR=lib"]  # fmt: skip
    if not result.run("configure googletest aarch64", configure):
        return None
    return prefix if result.run("install googletest aarch64", ["cmake", "--build", work, "-t", "install"]) else None


def aarch64() -> Result:
    """Cross build whose CPU suite runs under user-mode emulation: the same golden bytes as on this machine."""
    result = Result()
    prefix = googletest_for_aarch64(result)
    if prefix and build_preset(result, "aarch64", f"-DCMAKE_PREFIX_PATH={prefix}"):
        run_tests(result, BUILD / "aarch64", "ctest aarch64")
    return result
