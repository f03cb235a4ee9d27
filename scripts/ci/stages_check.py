"""Stages that look at what was built: command line, examples, documents, headers, symbols, flags, install."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import documents as document_rules
import gates
from common import BUILD, JOBS, PYTHON, ROOT, Result, cli, log_path, main_build, output, run, tracked_files

PREFIX = BUILD / "prefix"
LIBRARY = "libisobit.so"


def run_pytest(result: Result, name: str, folder: str, environment: dict[str, str], python: Path = PYTHON) -> None:
    """One pytest run; every test counts."""
    code = run(name, [python, "-B", "-m", "pytest", "-p", "no:cacheprovider", folder], environment=environment)
    text = log_path(name).read_text(errors="replace")
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error|skipped)", text)}
    result.passed += counts.get("passed", 0)
    result.failures += [f"{name}: {test}" for test in re.findall(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)]
    if code != 0 and not result.failures:
        result.failures.append(f"{name}: exit code {code}, {log_path(name)}")
    if counts.get("skipped"):
        result.note = f"{counts['skipped']} skipped"


def demo() -> Result:
    """The demo as a user runs it, and the tests of its model readers."""
    result = Result()
    run_pytest(result, "pytest demo", "tests/demo", {"ISOBIT_LIBRARY": str(main_build() / "src" / LIBRARY)})
    return result


def command_line() -> Result:
    """The command line's own tests, the operators' checks byte by byte, and one short timing."""
    result = Result()
    run_pytest(result, "pytest cli", "tests/cli", {"ISOBIT_CLI": str(cli())})
    result.run("isobit check", [cli(), "check", "--kernel", "cpu", "--quick"])
    result.run("isobit check --invariance", [cli(), "check", "--kernel", "cpu", "--invariance"])
    return result


def installed_environment() -> dict[str, str]:
    return {"PKG_CONFIG_PATH": str(PREFIX / "lib/pkgconfig"), "LD_LIBRARY_PATH": str(PREFIX / "lib"),
            "CMAKE_PREFIX_PATH": str(PREFIX)}  # fmt: skip


def consume(result: Result, name: str, *definitions: str) -> None:
    """One consumer project: configured, built and run."""
    work = BUILD / "consumers" / name
    shutil.rmtree(work, ignore_errors=True)
    configure = ["cmake", "-S", ROOT / "tests/consumers" / name, "-B", work, "-G", "Ninja", *definitions]
    if result.run(f"consumer {name} configure", configure, environment=installed_environment()):
        build = ["cmake", "--build", work, "--parallel", JOBS, "--target", "consumer"]
        if result.run(f"consumer {name} build", build):
            result.run(f"consumer {name} run", [work / "consumer"])


def install() -> Result:
    """The install tree, moved after the installation, under four kinds of consumer."""
    result = Result()
    first = BUILD / "prefix-before-the-move"
    for folder in (first, PREFIX):
        shutil.rmtree(folder, ignore_errors=True)
    if not result.run("install", ["cmake", "--install", main_build(), "--prefix", first]):
        return result
    first.rename(PREFIX)
    names_first = [str(path) for path in PREFIX.rglob("*.[cp][mc]*") if str(first) in path.read_text(errors="replace")]
    result.add("no file names the first prefix", names_first)
    result.run("installed isobit info", [PREFIX / "bin/isobit", "info"])
    consume(result, "find_package")
    consume(result, "c_only")
    consume(result, "pkg_config")
    consume(result, "add_subdirectory", "-DISOBIT_ENABLE_CUDA=OFF", "-DCMAKE_BUILD_TYPE=Debug")
    return result


def example_over_ranks(result: Result, work: Path) -> None:
    """The C program over NCCL: built as a user builds it. It runs on GPUs alone."""
    if not (PREFIX / "lib/libisobit_nccl.so").exists() or not list(Path("/usr/local/cuda/lib64").glob("libnccl.so*")):
        result.note = "the example over NCCL was not built: no libisobit_nccl or no NCCL"
        return
    configure = ["cmake", "-S", ROOT / "examples/tensor_parallel", "-B", work, "-G", "Ninja"]
    if result.run("example tensor_parallel configure", configure, environment=installed_environment()):
        result.run("example tensor_parallel build", ["cmake", "--build", work])


def examples() -> Result:
    """Every code block of the README, as written, against the installed library."""
    result = Result()
    work = BUILD / "examples"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    flags = ["-I", PREFIX / "include", "-L", PREFIX / "lib", "-lisobit", f"-Wl,-rpath,{PREFIX}/lib", "-Wall", "-Werror"]
    environment = {"PYTHONPATH": str(ROOT / "python"), "ISOBIT_LIBRARY": str(PREFIX / "lib" / LIBRARY)}
    found = document_rules.code_blocks((ROOT / "README.md").read_text())
    for number, (language, text) in enumerate(found):
        name = f"README example {number} {language}"
        source = work / f"example{number}.{ {'cpp': 'cpp', 'c': 'c', 'python': 'py'}[language] }"
        source.write_text(text)
        if language == "python":
            result.run(name, [PYTHON, source], environment=environment)
            continue
        compiler = ["g++", "-std=c++20"] if language == "cpp" else ["gcc", "-std=c11"]
        program = work / f"example{number}"
        if result.run(f"{name} compile", [*compiler, source, "-o", program, *flags]):
            result.run(name, [program])
    example_over_ranks(result, work / "tensor_parallel")
    result.add("the README has a C++, a C and a Python example",
               sorted({"cpp", "c", "python"} - {language for language, _ in found}))  # fmt: skip
    return result


def documents() -> Result:
    """Generated tables equal what the command line prints now, and links inside the tree resolve."""
    result = Result()
    for path in (p for p in tracked_files() if p.suffix == ".md"):
        text = (ROOT / path).read_text()
        result.add(f"links of {path}", document_rules.broken_links(ROOT, path, text))
        if document_rules.regenerated(text, str(cli())) != text:
            result.failures.append(f"{path}: a generated table is out of date; run scripts/ci/documents.py")
    return result


def site() -> Result:
    """The documentation as HTML: it builds, and every link and anchor leads somewhere."""
    result = Result()
    command = [PYTHON, ROOT / "scripts/docs/build_site.py", "--out", BUILD / "site", "--isobit", cli()]
    result.run("documentation", command)
    page = BUILD / "site/docs/users.html"
    page.write_text(page.read_text() + '<a href="nowhere.html">x</a><a href="#nowhere">x</a>')
    found = subprocess.run([PYTHON, ROOT / "scripts/docs/links.py", BUILD / "site"], capture_output=True, text=True,
                           check=False).stdout  # fmt: skip
    result.add("planted links to nowhere are found", [] if found.count("nowhere") == 2 else [found])
    return result


def headers() -> Result:
    """Every header compiles alone: public ones as C11, C++17 and C++20, internal ones as C++20."""
    result = Result()
    work = BUILD / "headers"
    work.mkdir(parents=True, exist_ok=True)
    warnings = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    jobs = []
    for path in tracked_files():
        if path.suffix in (".h", ".hpp") and gates.needs_absent_cuda(ROOT / path):
            result.note = "headers that include CUDA's or NCCL's were left out: they are not here"
        elif path.is_relative_to("include") and path.suffix == ".h":
            jobs += [(path, ["gcc", "-std=c11"], "c")]
            jobs += [(path, ["g++", f"-std={standard}"], "cpp") for standard in ("c++17", "c++20")]
        elif path.suffix == ".hpp" or (path.is_relative_to("src") and path.suffix == ".h"):
            jobs.append((path, ["g++", "-std=c++20", *gates.extra_header_flags(path)], "cpp"))

    def compile_alone(job) -> list[str]:
        path, compiler, suffix = job
        name = f"header {path} {compiler[1]} {suffix}"
        source = work / f"{str(path).replace('/', '_')}.{suffix}"
        source.write_text(f'#include "{ROOT / path}"\n')
        include = ["-I", ROOT / "include", "-I", ROOT / "src", "-I", main_build() / "src", *gates.cuda_include()]
        return [] if run(name, [*compiler, *warnings, *include, source]) == 0 else [str(log_path(name))]

    with ThreadPoolExecutor(int(JOBS)) as pool:
        for job, problems in zip(jobs, pool.map(compile_alone, jobs), strict=True):
            result.add(f"header {job[0]} {' '.join(job[1])}", problems)
    return result


def symbols() -> Result:
    """The shared library exports what the public headers declare, and needs no CUDA library."""
    result = Result()
    library = main_build() / "src" / LIBRARY
    declared = gates.declared_functions(ROOT)
    exported = gates.exported_symbols(output(["nm", "-D", "--defined-only", library]))
    result.add("exported symbols", gates.symbol_problems(declared, exported))
    result.add("a planted symbol is found", [] if gates.symbol_problems(declared, {*exported, "f"}) else ["it is not"])
    gone = gates.symbol_problems(declared, set(list(exported)[1:]))
    result.add("a missing symbol is found", [] if gone else ["it is not"])
    result.add("needed libraries", gates.needed_problems(output(["readelf", "-d", library])))
    over_ranks = main_build() / "src/nccl/libisobit_nccl.so"
    if over_ranks.exists():
        exported = gates.exported_symbols(output(["nm", "-D", "--defined-only", over_ranks]))
        declared = gates.declared_functions(ROOT, "isobit_nccl")
        result.add("exported symbols of libisobit_nccl", gates.symbol_problems(declared, exported))
        needed = output(["readelf", "-d", over_ranks]).replace("[libisobit.so", "[libc.so")
        result.add("needed libraries of libisobit_nccl", gates.needed_problems(needed))
    else:
        result.note = "libisobit_nccl was not built: no CUDA or no nccl.h"
    return result


def flags() -> Result:
    """The compile commands hold the flags that the bit contract rests on."""
    result = Result()
    entries = json.loads((main_build() / "compile_commands.json").read_text())
    commands = [gates.Command(entry["file"], entry["command"]) for entry in entries]
    commands += gates.ptx_commands((main_build() / "build.ninja").read_text())
    folders = (ROOT / "src", main_build() / "src")  # in the second one: sources of a folder, compiled together
    library = [c for c in commands if any(Path(c.file).is_relative_to(folder) for folder in folders)]
    result.add("there are compile commands", [] if library else ["none was found"])
    for command in library:
        result.add(f"flags of {os.path.relpath(command.file, ROOT)}", gates.flag_problems(command))
    for fault in gates.planted_flag_faults(library):
        result.add("a planted flag fault is found", [] if gates.flag_problems(fault) else [fault.command])
    return result
