"""Words that the command line does not know, and the commands that the pages show."""

import re
import shlex
from pathlib import Path

import pytest
from test_cli import isobit


@pytest.mark.parametrize(
    "words", [(), ("nonsense",), ("check", "nonsense"), ("bench",), ("compare", "a"), ("list", "--x")]
)
def test_wrong_usage_is_exit_code_2_and_leaves_stdout_alone(words):
    done = isobit(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr


def test_a_word_that_is_no_command_is_named():
    assert (
        isobit("nonsense", "--quick").stderr
        == 'isobit: expected a command that `isobit --help` lists, got "nonsense"\n'
    )
    assert isobit("--jsn").stderr == 'isobit: expected a command that `isobit --help` lists, got "--jsn"\n'
    assert "Subcommands:" in isobit().stderr


def test_commands_of_the_documentation_name_options_that_exist():
    """`isobit bench` of the pages with one sample: a shape or an option that is not there is exit code 2."""
    root = Path(__file__).resolve().parents[2]
    found = {line.strip() for page in ("README.md", *(f"docs/{name}.md" for name in ("users", "selftest", "python")))
             for line in re.findall(r"^\s*isobit bench [^|\n`]*", (root / page).read_text(), re.MULTILINE)}  # fmt: skip
    timed = [shlex.split(line, comments=True)[1:] for line in found if "--from" not in line]
    assert timed
    for words in timed:
        done = isobit(*words, "--kernel", "none", "--samples", 1)
        assert done.returncode == 77, done.stderr  # the row called none, not the words


@pytest.mark.parametrize("shape", ["N", "N=", "N=-1", "N=1:9:0", "X=1", "512,4096,151936", f"N=1:{2**63 - 1}"])
def test_a_bad_shape_is_a_usage_error(shape):
    done = isobit("bench", "linear_logp_forward", "--kernel", "cpu", "--shape", shape)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--shape" in done.stderr
