"""Stages that read the source: formatting, spelling, scripts, house rules, clang-tidy."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import rules as house_rules
from common import BUILD, JOBS, ROOT, VENV, Result, log_path, main_build, run, tracked_files

CXX_SUFFIXES = (".h", ".hpp", ".cpp", ".c", ".cu", ".cuh")


def tool(name: str) -> str:
    """A tool of the Python environment."""
    return str(VENV / "bin" / name)


def cxx_files() -> list[Path]:
    return [path for path in tracked_files() if path.suffix in CXX_SUFFIXES]


def shell_scripts() -> list[Path]:
    return [path for path in tracked_files() if path.suffix == ".sh" or path == Path(".ci/run")]


def clang_format() -> str:
    return shutil.which("clang-format-14") or "clang-format"


def lint() -> Result:
    """Formatting and spelling of everything tracked."""
    result = Result()
    result.run("clang-format", [clang_format(), "--dry-run", "-Werror", *cxx_files()])
    result.run("ruff check", [tool("ruff"), "check", "."])
    result.run("ruff format", [tool("ruff"), "format", "--check", "."])
    result.run("shellcheck", [tool("shellcheck"), *shell_scripts()])
    text = [path for path in tracked_files() if path.suffix not in (".npy", ".bin", ".gz", ".safetensors")]
    result.run("codespell", [tool("codespell"), *text])
    return result


def format_in_place() -> Result:
    """What `make format` does."""
    result = Result()
    result.run("clang-format -i", [clang_format(), "-i", *cxx_files()])
    result.run("ruff check --fix", [tool("ruff"), "check", "--fix", "."])
    result.run("ruff format", [tool("ruff"), "format", "."])
    return result


def rules() -> Result:
    """House rules, and that each of them can fail."""
    result = Result()
    for rule in house_rules.RULES:
        result.add(rule.__name__, rule(ROOT))
    result.run("rules self-test", [VENV / "bin/python", "-m", "pytest", "tests/ci"])
    return result


# Where arguments and files from outside are checked. The whole tree would take ten minutes on two cores.
TIDY_FOLDERS = ("src/core", "src/ops", "tools/isobit/checkpoint")


def tidy_sources(database: Path) -> list[str]:
    """Host sources of those folders that the main build compiled; test programs are left out. The database gets one
    command a file: clang-tidy looks at a file once a command, and its second look in a process finds false faults."""
    commands = json.loads((main_build() / "compile_commands.json").read_text())
    first = {Path(entry["file"]): entry for entry in reversed(commands) if entry["file"].endswith(".cpp")}
    kept = {
        file: entry
        for file, entry in first.items()
        if any(file.is_relative_to(ROOT / folder) for folder in TIDY_FOLDERS) and "test" not in file.parts
    }
    database.mkdir(parents=True, exist_ok=True)
    (database / "compile_commands.json").write_text(json.dumps(list(kept.values())))
    return sorted(str(file.relative_to(ROOT)) for file in kept)


def tidy() -> Result:
    """clang-tidy on a bounded set of host sources."""
    result = Result()
    database = BUILD / "tidy"
    sources = tidy_sources(database)
    binary = shutil.which("clang-tidy-14") or "clang-tidy"

    def one(source: str) -> list[str]:
        name = f"tidy {source}"
        code = run(name, [binary, "--quiet", "-p", database, source])
        return [] if code == 0 else [f"exit code {code}, {log_path(name)}"]

    with ThreadPoolExecutor(int(JOBS)) as pool:
        for source, problems in zip(sources, pool.map(one, sources), strict=True):
            result.add(f"clang-tidy {source}", problems)
    planted = BUILD / "tidy_fault.cpp"
    planted.write_text("#include <cstring>\nbool same(const float* a, const float* b) { return memcmp(a, b, 4); }\n")
    code = run("tidy planted fault", [binary, "--quiet", planted, "--", "-std=c++20"]) if sources else 0
    result.add("clang-tidy finds a planted fault", [] if code != 0 else ["it found nothing"])
    return result
