"""Runs the stages of `make test`, prints what each took, and closes with 'N passed, N failed'.

Two stages run side by side: one that keeps every core busy by itself, and one that mostly runs on a single core or
waits for the network. Each is a process of its own (`run.py --stage NAME`), whose output is shown when it has ended.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import traceback
from dataclasses import asdict, dataclass

import stages_build
import stages_check
import stages_kernels
import stages_lint
import stages_python
from common import LOGS, VENV_STAMP, Result

# Name, function, processor seconds it should take, the stages it stands on. A stage over its budget is marked, not
# failed: machines differ.
WIDE = [
    ("setup", stages_build.setup, 60, ()),
    ("build", stages_build.build, 1500, ("setup",)),
    ("tests", stages_build.tests, 240, ("build",)),
    ("headers", stages_check.headers, 100, ("build",)),
    ("resources", stages_kernels.resources, 60, ("build",)),
    ("tidy", stages_lint.tidy, 300, ("build",)),
    ("sanitizers", stages_build.sanitizers, 780, ("setup",)),
    ("fuzz", stages_build.fuzz, 100, ("setup",)),
    ("aarch64", stages_build.aarch64, 700, ("setup",)),
]
NARROW = [
    ("lint", stages_lint.lint, 30, ("setup",)),
    ("rules", stages_lint.rules, 15, ("setup",)),
    ("torch-setup", stages_python.torch_setup, 120, ("setup",)),
    ("wheel", stages_python.wheel, 120, ("setup",)),
    ("documents", stages_check.documents, 10, ("build",)),
    ("site", stages_check.site, 10, ("build",)),
    ("symbols", stages_check.symbols, 10, ("build",)),
    ("flags", stages_check.flags, 10, ("build",)),
    ("python", stages_python.python_tests, 60, ("build",)),
    ("command-line", stages_check.command_line, 90, ("build",)),
    ("install", stages_check.install, 90, ("build",)),
    ("examples", stages_check.examples, 60, ("install",)),
    ("demo", stages_check.demo, 150, ("build",)),
    ("torch", stages_python.torch_tests, 200, ("build", "torch-setup")),
]
EXTRA = [("format", stages_lint.format_in_place, 30, ())]
# What the other stages stand on: without it they are not run.
ESSENTIAL = ("setup", "build")


@dataclass
class Outcome:
    """What a stage found and took."""

    name: str
    passed: int
    failures: list[str]
    seconds: float
    processor: float
    budget: int


def result_path(name: str):
    return LOGS / f"stage-{name}.json"


def run_stage(name: str, function) -> int:
    """The stage in this process; its result goes to a file."""
    try:
        result = function()
    except Exception:
        traceback.print_exc(file=sys.stdout)
        result = Result(failures=[f"{name}: see above"])
    for failure in result.failures:
        print(f"   FAILED {failure}")
    note = f", {result.note}" if result.note else ""
    print(f"   {result.passed} passed, {len(result.failures)} failed{note}", flush=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    result_path(name).write_text(json.dumps(asdict(result)))
    return 0


def run_apart(name: str, budget: int) -> Outcome:
    """The stage in a process of its own."""
    LOGS.mkdir(parents=True, exist_ok=True)
    result_path(name).unlink(missing_ok=True)
    begin = time.monotonic()
    log = LOGS / f"stage-{name}.log"
    with log.open("w") as file:
        command = [sys.executable, "-B", __file__, "--stage", name]
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds, processor = time.monotonic() - begin, usage.ru_utime + usage.ru_stime
    if result_path(name).exists():
        found = json.loads(result_path(name).read_text())
    else:
        found = {"passed": 0, "failures": [f"{name}: ended with {process.returncode}"]}
    print(
        f"== {name}\n{log.read_text(errors='replace')}   {seconds:.1f} s, {processor:.1f} s of processor time",
        flush=True,
    )
    return Outcome(name, found["passed"], found["failures"], seconds, processor, budget)


class Schedule:
    """The chosen stages in two lanes; a stage waits for those that it stands on."""

    def __init__(self, chosen: list[tuple]) -> None:
        self.chosen = chosen
        self.done = {stage[0]: threading.Event() for stage in chosen}
        self.outcomes: list[Outcome] = []
        self.broken: list[str] = []

    def run_lane(self, lane: list[tuple]) -> None:
        for name, _, budget, needs in lane:
            for need in needs:
                if need in self.done:
                    self.done[need].wait()
            if not self.broken:
                outcome = run_apart(name, budget)
                self.outcomes.append(outcome)
                if outcome.failures and name in ESSENTIAL:
                    self.broken.append(name)
                    print(f"== {name} failed: the stages after it were not run", flush=True)
            self.done[name].set()

    def run(self) -> list[Outcome]:
        narrow = {stage[0] for stage in NARROW}
        lanes = [[s for s in self.chosen if (s[0] in narrow) == is_narrow] for is_narrow in (False, True)]
        threads = [threading.Thread(target=self.run_lane, args=(lane,)) for lane in lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.outcomes


def chosen_stages(names: list[str], prepared: bool) -> list[tuple]:
    """The named stages, or all but the extra ones. In a tree that is not prepared they come after setup."""
    if not names:
        return WIDE + NARROW
    wanted = names if prepared else ["setup", *names]
    return [stage for stage in WIDE + NARROW + EXTRA if stage[0] in wanted]


def main(names: list[str]) -> int:
    known = {stage[0]: stage for stage in WIDE + NARROW + EXTRA}
    if names[:1] == ["--stage"]:
        return run_stage(names[1], known[names[1]][1])
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"unknown stage {unknown[0]}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    begin = time.monotonic()
    outcomes = Schedule(chosen_stages(names, VENV_STAMP.exists())).run()
    print(f"== seconds{'':<8}processor, of    wall")
    for o in outcomes:
        over = "  over budget" if o.processor > o.budget else ""
        print(f"   {o.name:<14}{o.processor:8.1f} of {o.budget:<6}{o.seconds:8.1f}{over}")
    processor = sum(o.processor for o in outcomes)
    print(f"   {'all':<14}{processor:8.1f} of {sum(o.budget for o in outcomes):<6}{time.monotonic() - begin:8.1f}")
    failures = [failure for o in outcomes for failure in o.failures]
    for failure in failures:
        print(f"FAILED {failure}")
    print(f"{sum(o.passed for o in outcomes)} passed, {len(failures)} failed", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
