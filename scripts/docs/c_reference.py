"""Pages of the public headers: their text with anchors, and an index of the functions."""

from __future__ import annotations

import html
import re
from pathlib import Path

_DECLARED = re.compile(r"\b(isobit_\w+)(?=\()")
_FUNCTION = re.compile(r"^ISOBIT_API [^;(]*?\b(isobit_\w+)\(", re.MULTILINE)


def _first_sentence(text: str) -> str:
    """What a header is, from the comment it begins with."""
    comment = re.match(r"/\*\s*(.*?)(?:\n \*\n|\n \*/|\*/)", text, re.DOTALL) or re.match(
        r"//\s*(.*?)\n[^/]", text, re.DOTALL
    )
    words = re.sub(r"\n\s*(\*|//) ?", " ", comment[1]) if comment else ""
    return html.escape(words.strip())


def pages(root: Path) -> dict[Path, tuple[str, str]]:
    """Page -> (title, HTML)."""
    found, index = {}, []
    headers = sorted((root / "include/isobit").glob("*.h")) + sorted((root / "include/isobit").glob("*.hpp"))
    for header in headers:
        text = header.read_text()
        functions = sorted(set(_FUNCTION.findall(text)))
        page = Path("include/isobit") / f"{header.name}.html"
        body, seen = [], set()
        for line in html.escape(text, quote=False).splitlines():
            name = next((n for n in _DECLARED.findall(line) if n in functions and n not in seen), None)
            starts = line.startswith("ISOBIT_API") and name
            if starts:
                seen.add(name)
            body.append(f'<span id="{name}">{line}</span>' if starts else line)
        found[page] = (header.name, f"<h1>isobit/{header.name}</h1><pre>" + "\n".join(body) + "</pre>")
        index.append(f'<h2><a href="../{page}">isobit/{header.name}</a></h2><p>{_first_sentence(text)}</p><ul>')
        index += [f'<li><a href="../{page}#{name}"><code>{name}</code></a></li>' for name in functions]
        index.append("</ul>")
    found[Path("api/c.html")] = ("C and C++ reference", "<h1>C and C++ reference</h1>" + "\n".join(index))
    return found
