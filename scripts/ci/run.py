"""Runs the stages of `make test`, prints the seconds of each, and closes with 'N passed, N failed'."""

from __future__ import annotations

import os
import sys
import time
import traceback

import stages_build
import stages_check
import stages_kernels
import stages_lint
import stages_python
from common import Result

# Name, function, seconds it should take on two cores. A stage over its budget is marked, not failed: machines differ.
STAGES = [
    ("setup", stages_build.setup, 240),
    ("lint", stages_lint.lint, 30),
    ("rules", stages_lint.rules, 15),
    ("build", stages_build.build, 600),
    ("tests", stages_build.tests, 240),
    ("python", stages_python.python_tests, 60),
    ("wheel", stages_python.wheel, 120),
    ("torch", stages_python.torch_tests, 150),
    ("command-line", stages_check.command_line, 120),
    ("documents", stages_check.documents, 10),
    ("site", stages_check.site, 10),
    ("headers", stages_check.headers, 30),
    ("symbols", stages_check.symbols, 10),
    ("flags", stages_check.flags, 10),
    ("resources", stages_kernels.resources, 30),
    ("install", stages_check.install, 90),
    ("examples", stages_check.examples, 60),
    ("demo", stages_check.demo, 300),
    ("tidy", stages_lint.tidy, 180),
    ("sanitizers", stages_build.sanitizers, 360),
    ("fuzz", stages_build.fuzz, 300),
    ("aarch64", stages_build.aarch64, 360),
]
EXTRA = [("format", stages_lint.format_in_place, 30)]
# What the other stages stand on: without it they are not run.
ESSENTIAL = ("setup", "build")


def cpu_seconds() -> float:
    """Processor time of this process and of every child that has ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def run_stage(name: str, function, budget: int) -> tuple[Result, float]:
    print(f"== {name}", flush=True)
    begin, begin_cpu = time.monotonic(), cpu_seconds()
    try:
        result = function()
    except Exception:
        traceback.print_exc(file=sys.stdout)
        result = Result(failures=[f"{name}: see above"])
    seconds = time.monotonic() - begin
    for failure in result.failures:
        print(f"   FAILED {failure}")
    note = f", {result.note}" if result.note else ""
    print(f"   {result.passed} passed, {len(result.failures)} failed{note}", flush=True)
    print(f"   {seconds:.1f} s of {budget} s, {cpu_seconds() - begin_cpu:.1f} s of processor time", flush=True)
    return result, seconds


def main(names: list[str]) -> int:
    known = {stage[0]: stage for stage in STAGES + EXTRA}
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"unknown stage {unknown[0]}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    chosen = [known[name] for name in names] if names else STAGES
    passed, failures, times = 0, [], []
    for name, function, budget in chosen:
        result, seconds = run_stage(name, function, budget)
        passed += result.passed
        failures += result.failures
        times.append((name, seconds, budget))
        if result.failures and name in ESSENTIAL:
            print(f"== {name} failed: the stages after it were not run")
            break
    print("== seconds")
    for name, seconds, budget in times:
        print(f"   {name:<14}{seconds:8.1f} of {budget}{'  over budget' if seconds > budget else ''}")
    print(f"   {'all':<14}{sum(t[1] for t in times):8.1f} of {sum(t[2] for t in times)}, processor {cpu_seconds():.1f}")
    for failure in failures:
        print(f"FAILED {failure}")
    print(f"{passed} passed, {len(failures)} failed", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
