"""Builds the documentation as HTML: scripts/docs/build_site.py [--out build/site] [--isobit PROGRAM].

Every Markdown page of the tree keeps its place, so that links between pages, headers and results stay what they are.
The reference is made of the public headers and of the docstrings, the plots of docs/results by `isobit bench --svg`.
Ends with 1 if a link or an anchor of the site leads nowhere.
"""

from __future__ import annotations

import argparse
import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import c_reference
import links
import markdown
import python_reference
import results

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
EXTENSIONS = ["tables", "fenced_code", "toc", "sane_lists"]

# What the column on the left shows. Paths are those of the site.
NAVIGATION = [
    ("Start", [("docs/users.html", "By what you do"), ("docs/getting-started.html", "In a terminal"),
               ("docs/python.html", "Python"), ("README.html", "C++, C, build")]),
    ("Operators", [(f"src/ops/{op}/README.html", op) for op in
                   ("linear_logp", "geglu", "nvfp4_quantize", "nvfp4_geglu", "nvfp4_linear")]),
    ("Guides", [("docs/linear-logp-training.html", "Losses"), ("docs/tensor-parallel.html", "Several GPUs"),
                ("docs/scaling.html", "Scaling"), ("docs/pack.html", "NVFP4 checkpoints"),
                ("docs/ptx-interpreter.html", "Kernels without a GPU"),
                ("docs/selftest.html", "A GPU nobody has tried")]),
    ("Reference", [("docs/bit-contract.html", "Bit contract"), ("api/c.html", "C and C++"),
                   ("api/python.html", "Python modules")]),
    ("More", [("docs/results.html", "Results"), ("docs/troubleshooting.html", "Troubleshooting"),
              ("CONTRIBUTING.html", "Contributing"), ("CHANGELOG.html", "Changes")]),
]  # fmt: skip

_TARGET = re.compile(r'(<a [^>]*?href=")([^"#]+)(#[^"]*)?(")')


def tracked() -> list[Path]:
    """Files of the tree, relative to its root."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [Path(line) for line in sorted(set(listed.splitlines())) if (ROOT / line).is_file()]


def up(page: Path) -> str:
    """The way from a page to the root of the site."""
    return "../" * (len(page.parts) - 1)


def frame(page: Path, title: str, body: str) -> str:
    """A whole page: the column of links, and its content."""
    column = []
    for heading, entries in NAVIGATION:
        column.append(f"<h2>{heading}</h2><ul>")
        for target, name in entries:
            here = ' class="here"' if target == page.as_posix() else ""
            column.append(f'<li{here}><a href="{up(page)}{target}">{html.escape(name)}</a></li>')
        column.append("</ul>")
    return (
        (HERE / "page.html")
        .read_text()
        .format(title=html.escape(title), root=up(page), navigation="\n".join(column), body=body)
    )


def write(out: Path, page: Path, title: str, body: str) -> None:
    path = out / page
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(frame(page, title, body))


def as_site_link(page: Path, target: str) -> str:
    """Where a link of a Markdown page leads in the site; folders and files of the tree get a page of their text."""
    if "://" in target or target.startswith("mailto:"):
        return target
    path = Path(os.path.normpath(page.parent / target))
    if path.suffix == ".md":
        path = path.with_suffix(".html")
    elif not path.parts or path.parts[0] != "api":
        path = Path(f"{path}.html") if path.suffix not in (".svg", ".png") else path
    return up(page) + path.as_posix()


def convert(page: Path, text: str) -> tuple[str, str]:
    """(title, HTML) of a Markdown page."""
    title = re.search(r"^# (.*)$", text, re.MULTILINE)
    body = markdown.markdown(text, extensions=EXTENSIONS)
    body = _TARGET.sub(lambda m: m[1] + as_site_link(page, m[2]) + (m[3] or "") + m[4], body)
    return title[1] if title else page.as_posix(), body


def source_page(path: Path) -> str:
    """A file of the tree as text, or a list of a folder's files."""
    if path.is_dir():
        entries = sorted(entry for entry in path.iterdir() if entry.name not in ("__pycache__", "build"))
        names = "".join(f"<li><code>{html.escape(entry.name)}</code></li>" for entry in entries)
        return f"<h1>{path.relative_to(ROOT)}</h1><ul>{names}</ul>"
    text = path.read_text(errors="replace")
    return f"<h1>{path.relative_to(ROOT)}</h1><pre>{html.escape(text)}</pre>"


def linked_sources(pages: dict[Path, str]) -> set[Path]:
    """Files and folders of the tree that pages link to and that are no pages themselves."""
    found = set()
    for page, body in pages.items():
        for target in re.findall(r'(?:href|src)="([^"#]+)', body):
            if "://" not in target and not target.startswith("mailto:"):
                found.add(Path(os.path.normpath(page.parent / target)))
    return {path for path in found if path not in pages}


def build(out: Path, program: str | None) -> list[str]:
    """Writes the site; returns what is wrong with its links."""
    shutil.rmtree(out, ignore_errors=True)
    files = tracked()
    pages, titles = {}, {}
    for path in (p for p in files if p.suffix == ".md"):
        text = (ROOT / path).read_text()
        if path == Path("docs/results.md"):
            text += results.plots(ROOT, out / "docs/plots", program)
        page = path.with_suffix(".html")
        titles[page], pages[page] = convert(path, text)
    for page, (title, body) in (c_reference.pages(ROOT) | python_reference.pages(ROOT)).items():
        titles[page], pages[page] = title, body
    for path in sorted(linked_sources(pages)):
        if path.suffix in (".svg", ".png") and (ROOT / path).is_file():
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, out / path)
        elif path.suffix == ".html" and (ROOT / path.with_suffix("")).exists():
            titles[path], pages[path] = path.with_suffix("").as_posix(), source_page(ROOT / path.with_suffix(""))
    for page, body in pages.items():
        write(out, page, titles[page], body)
    shutil.copy(HERE / "style.css", out / "style.css")
    (out / "index.html").write_text('<!doctype html><meta http-equiv="refresh" content="0; url=docs/users.html">\n'
                                    '<a href="docs/users.html">isobit</a>\n')  # fmt: skip
    print(f"{len(pages)} pages in {out}")
    return links.problems(out)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build/site")
    parser.add_argument("--isobit", help="the command line that draws the plots; without it the pages have none")
    options = parser.parse_args()
    wrong = build(options.out, options.isobit)
    print("\n".join(wrong) if wrong else "every link of the site leads somewhere")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
