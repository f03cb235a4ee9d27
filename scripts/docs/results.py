"""Plots of docs/results for the page of that name."""

from __future__ import annotations

import subprocess
from pathlib import Path


def _draw(program: str, file: Path, folder: Path) -> list[Path]:
    """The plots of one file of records; none if the command line has no plot of such records."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [program, "bench", "--from", str(file), "--svg", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return sorted(folder.glob("*.svg")) if done.returncode == 0 else []


def plots(root: Path, out: Path, program: str | None) -> str:
    """Markdown with the plots of every date and device: those that are in the tree, and those that isobit draws."""
    text = ["\n"]
    for folder in sorted((root / "docs/results").iterdir(), reverse=True):
        text.append(f"\n## {folder.name}\n")
        for file in sorted(folder.iterdir()):
            text.append(f"\n[{file.name}](results/{folder.name}/{file.name})\n")
            if file.suffix == ".svg":
                text.append(f"\n![{file.stem}](results/{folder.name}/{file.name})\n")
            elif file.suffix == ".jsonl" and program is not None:
                made = _draw(program, file, out / folder.name / file.stem)
                text += [f"\n![{plot.stem}](plots/{folder.name}/{file.stem}/{plot.name})\n" for plot in made]
    return "".join(text)
