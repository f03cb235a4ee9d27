"""What the builder of the documentation has to notice."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts/docs"))

import c_reference  # noqa: E402
import links  # noqa: E402
import python_reference  # noqa: E402


def test_links_and_anchors_that_lead_nowhere(tmp_path):
    (tmp_path / "a.html").write_text('<h1 id="top">x</h1><a href="b.html#here">b</a><a href="#top">top</a>')
    (tmp_path / "b.html").write_text('<p id="here"><a href="a.html#gone">x</a><a href="c.html">c</a><img src="d.svg">')
    assert links.problems(tmp_path) == [
        "b.html: a.html#gone: no such anchor", "b.html: c.html: no such page", "b.html: d.svg: no such page"
    ]  # fmt: skip


def test_every_public_function_is_in_the_reference():
    pages = python_reference.pages(ROOT)
    _, text = pages[Path("api/python/isobit.torch.html")]
    assert 'id="linear_logp"' in text
    assert "float16" in text
    _, text = c_reference.pages(ROOT)[Path("include/isobit/geglu.h.html")]
    assert 'id="isobit_geglu_forward"' in text


def test_a_public_function_without_a_docstring(tmp_path, monkeypatch):
    (tmp_path / "python").mkdir()
    (tmp_path / "python/bare.py").write_text('"""A module."""\n__all__ = ["f"]\n\n\ndef f():\n    pass\n')
    monkeypatch.setattr(python_reference, "MODULES", ["bare"])
    with pytest.raises(ValueError, match=r"bare\.f: expected a docstring"):
        python_reference.pages(tmp_path)
