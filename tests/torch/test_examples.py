"""The examples of the frameworks run as they are and say what they are there to show."""

import os
import pathlib
import re
import runpy
import subprocess
import sys

import pytest
import torch

FOLDER = pathlib.Path(__file__).parents[2] / "examples/frameworks"
SAYS = {
    "jax_head": "row by row: equal bits",
    "pi05_nvfp4": "3 MLPs of the action expert",
    "pytorch_training": "step 5: loss",
    "transformers_gemma": "MLPs patched: 2",
    "trl_selected_logp": "isobit: equal bits",
    "verl_head": "ratios that are not exactly 1: 0",
    "vllm_prompt_logprobs": "token by token instead of in one prefill: equal bits",
}


def test_every_example_is_run():
    assert sorted(SAYS) == sorted(path.stem for path in FOLDER.glob("*.py"))
    assert all(path.read_text().count("\n") <= 60 for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("name", SAYS)
def test_example(name, capsys):
    runpy.run_path(str(FOLDER / f"{name}.py"))
    assert SAYS[name] in capsys.readouterr().out


def test_the_lines_of_the_pages_run():
    blocks = re.findall(r"^```python\n(.*?)^```$", (FOLDER.parents[1] / "docs/users.md").read_text(), re.M | re.S)
    assert len(blocks) == 3
    for text in blocks:
        exec(compile(text, "docs/users.md", "exec"), {})


def test_a_head_over_the_ranks_of_torchrun():
    program = FOLDER.parent / "torchrun/head_over_ranks.py"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "PYTHONPATH": str(FOLDER.parents[1] / "python")}
    ran = subprocess.run(
        [*torchrun, program], env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "2 ranks on cpu, borders [0, 2505, 5008]: 0 outputs differ" in ran.stdout
    assert "2 ranks on cpu, borders [0, 2504, 5008]: 0 gradients differ" in ran.stdout


def test_rollout_and_trainer_agree_bit_by_bit_through_isobit(monkeypatch, tmp_path, capsys):
    folder = FOLDER.parent / "rollout_vs_trainer"
    monkeypatch.syspath_prepend(folder)
    plot, records = tmp_path / "plot.svg", tmp_path / "records.jsonl"
    sizes = ["--rows", 8, "--hidden", 64, "--vocabulary", 512]
    arguments = [*sizes, "--no-compile", "--svg", plot, "--jsonl", records]
    monkeypatch.setattr(sys, "argv", ["compare.py", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(folder / "compare.py"), run_name="__main__")
    assert ended.value.code == 0
    assert "isobit" in capsys.readouterr().out
    assert plot.read_text().count("<circle") == 6 * 8 + 6
    assert len(records.read_text().splitlines()) == 6


def test_isobits_head_is_the_same_at_every_number_of_rows(monkeypatch):
    folder = FOLDER.parent / "rollout_vs_trainer"
    monkeypatch.syspath_prepend(folder)
    module = runpy.run_path(str(folder / "sizes.py"))
    hidden, weight = (torch.randn(rows, 64, dtype=torch.bfloat16) for rows in (256, 300))
    target = torch.randint(300, (256,))
    whole = module["ours"](hidden, weight, target)[:128]
    assert all(
        torch.equal(module["in_calls"](module["ours"], size, hidden, weight, target), whole) for size in module["CALLS"]
    )
