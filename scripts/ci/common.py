"""What every stage uses: paths, commands with logs, and the count of what passed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
LOGS = BUILD / "logs"
VENV = BUILD / "venv"
PYTHON = VENV / "bin" / "python"
VENV_STAMP = VENV / "requirements.sha256"  # written when all of the environment is there
JOBS = str(os.cpu_count() or 2)


@dataclass
class Result:
    """What a stage found: how many checks passed, and one line for each that did not."""

    passed: int = 0
    failures: list[str] = field(default_factory=list)
    note: str = ""

    def add(self, name: str, problems: list[str]) -> None:
        """One check with its problems, none of them meaning that it passed."""
        if problems:
            self.failures += [f"{name}: {problem}" for problem in problems]
        else:
            self.passed += 1

    def run(self, name: str, command: list, **options) -> bool:
        """One command as a check."""
        code = run(name, command, **options)
        self.add(name, [] if code == 0 else [f"exit code {code}, {log_path(name)}"])
        return code == 0


def log_path(name: str) -> Path:
    return LOGS / (name.replace(" ", "-").replace("/", "-") + ".log")


def run(
    name: str, command: list, *, cwd: Path = ROOT, environment: dict | None = None, stdin=subprocess.DEVNULL
) -> int:
    """Runs the command into its own log; the log's end is shown if it fails. Returns the exit code."""
    LOGS.mkdir(parents=True, exist_ok=True)
    path = log_path(name)
    words = [str(word) for word in command]
    with path.open("w") as log:
        log.write("$ " + " ".join(words) + "\n")
        log.flush()
        code = subprocess.run(words, cwd=cwd, env={**os.environ, **(environment or {})}, stdin=stdin, stdout=log,
                              stderr=subprocess.STDOUT, check=False).returncode  # fmt: skip
    if code != 0:
        lines = path.read_text(errors="replace").splitlines()
        print(f"---- {name}: exit code {code}", *(line[:400] for line in lines[-60:]), "----", sep="\n", flush=True)
    return code


def output(command: list, cwd: Path = ROOT) -> str:
    """Standard output of a command that must succeed."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        raise RuntimeError(f"{' '.join(words)}: exit code {done.returncode}")
    return done.stdout


def tracked_files(root: Path = ROOT) -> list[Path]:
    """Files of the tree as git sees them, new ones included; paths relative to root."""
    listed = output(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root)
    return [Path(line) for line in sorted(set(listed.splitlines())) if (root / line).is_file()]


def has_nvcc() -> bool:
    return shutil.which("nvcc") is not None or Path("/usr/local/cuda/bin/nvcc").exists()


def main_preset() -> str:
    """The build whose tests run: with every CUDA architecture where nvcc is there."""
    return "cuda" if has_nvcc() else "cpu"


def main_build() -> Path:
    return BUILD / main_preset()


def cli() -> Path:
    return main_build() / "tools" / "isobit" / "isobit"
