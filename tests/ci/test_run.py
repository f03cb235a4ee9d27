"""The order of the stages: each waits for those that it stands on, and nothing follows a broken build."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts/ci"))

import run


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stages in the order in which they ended; `build` is the slowest, and fails where a test says so."""
    names: list[str] = []
    others = threading.Event()

    def run_apart(name: str, budget: int) -> run.Outcome:
        if name == "wheel":
            others.set()
        if name == "build":
            assert others.wait(60)
        names.append(name)
        failures = ["planted"] if name == BROKEN[0] else []
        return run.Outcome(name, 1, failures, 0.0, 0.0, budget)

    monkeypatch.setattr(run, "run_apart", run_apart)
    BROKEN[0] = ""
    return names


BROKEN = [""]


def test_stages_wait_for_what_they_stand_on(ended: list[str]) -> None:
    outcomes = run.Schedule(run.WIDE + run.NARROW).run()
    assert sorted(ended) == sorted(stage[0] for stage in run.WIDE + run.NARROW) == sorted(o.name for o in outcomes)
    for name, _, _, needs in run.WIDE + run.NARROW:
        assert all(ended.index(need) < ended.index(name) for need in needs), name
    assert ended.index("wheel") < ended.index("build"), "the lanes do not run side by side"


def test_nothing_follows_a_broken_build(ended: list[str]) -> None:
    BROKEN[0] = "build"
    run.Schedule(run.WIDE + run.NARROW).run()
    assert not {"tests", "python", "torch", "sanitizers"} & set(ended)


def test_setup_comes_before_the_first_chosen_stages_of_a_fresh_tree() -> None:
    names = [[stage[0] for stage in run.chosen_stages(["rules", "format"], prepared)] for prepared in (True, False)]
    assert names == [["rules", "format"], ["setup", "rules", "format"]]
    assert run.chosen_stages([], False) == run.WIDE + run.NARROW


def test_a_chosen_stage_does_not_wait_for_one_that_was_not(ended: list[str]) -> None:
    run.Schedule([stage for stage in run.NARROW if stage[0] in ("examples", "torch")]).run()
    assert ended == ["examples", "torch"]
