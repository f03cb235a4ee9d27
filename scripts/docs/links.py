"""Links and anchors of a folder of HTML pages."""

from __future__ import annotations

import os
import sys
from html.parser import HTMLParser
from pathlib import Path


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.targets.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def _read(path: Path) -> _Reader:
    reader = _Reader()
    reader.feed(path.read_text())
    return reader


def problems(site: Path) -> list[str]:
    """One line for each link inside the site that leads nowhere."""
    readers = {path.relative_to(site): _read(path) for path in sorted(site.rglob("*.html"))}
    wrong = []
    for page, reader in readers.items():
        for target in reader.targets:
            if "://" in target or target.startswith("mailto:"):
                continue
            name, _, anchor = target.partition("#")
            path = Path(os.path.normpath(page.parent / name)) if name else page
            if not (site / path).is_file():
                wrong.append(f"{page}: {target}: no such page")
            elif anchor and path in readers and anchor not in readers[path].anchors:
                wrong.append(f"{page}: {target}: no such anchor")
    return wrong


if __name__ == "__main__":
    found = problems(Path(sys.argv[1]))
    print("\n".join(found))
    sys.exit(bool(found))
