"""The examples of the frameworks run as they are and say what they are there to show."""

import pathlib
import runpy

import pytest

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
