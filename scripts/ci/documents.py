"""Generated parts, examples and links of the Markdown pages. Run as a program, it rewrites the generated parts."""

from __future__ import annotations

import re
from pathlib import Path

from common import ROOT, cli, output, tracked_files

# <!-- generated: isobit list --markdown --> ... <!-- /generated -->
_GENERATED = re.compile(r"(<!-- generated: isobit ([^>]*?) -->\n)(.*?)(<!-- /generated -->)", re.DOTALL)
_BLOCK = re.compile(r"^```(cpp|c|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


def regenerated(text: str, program: str) -> str:
    """The page with every generated part as the command prints it now."""
    return _GENERATED.sub(lambda m: m.group(1) + output([program, *m.group(2).split()]) + m.group(4), text)


def code_blocks(text: str) -> list[tuple[str, str]]:
    """(language, text) of every C++, C and Python block."""
    return _BLOCK.findall(text)


def broken_links(root: Path, page: Path, text: str) -> list[str]:
    """Links to files of the tree that are not there."""
    targets = [target for target in _LINK.findall(text) if "://" not in target]
    return [target for target in targets if not (root / page.parent / target).exists()]


if __name__ == "__main__":
    for path in (p for p in tracked_files() if p.suffix == ".md"):
        old = (ROOT / path).read_text()
        new = regenerated(old, str(cli()))
        if new != old:
            (ROOT / path).write_text(new)
            print(f"updated {path}")
