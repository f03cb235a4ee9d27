"""`isobit selftest` and the pages of `isobit bench` as a user meets them."""

import html.parser
import json
import os
import re
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

CLI = os.environ["ISOBIT_CLI"]
RESULTS = Path(__file__).parents[2] / "docs/results"


def isobit(*words, **settings):
    return subprocess.run(
        [CLI, *map(str, words)], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **settings
    )


def test_selftest_of_the_cpu_writes_its_report(tmp_path):
    path = tmp_path / "selftest.json"
    done = isobit("selftest", "--cpu", "--quick", "--report", path)
    report = json.loads(path.read_text())
    assert done.returncode == 0, done.stdout
    assert "no CUDA device: the CPU backend alone" in done.stdout
    assert (report["schema"], report["complete"], report["ok"]) == ("isobit-selftest/1", True, True)
    for row in report["bits"]:
        assert row["state"] == ("equal" if row["kernel"] == "cpu" else "unsupported"), row
        assert row["state"] == "equal" or row["reason"]
    for line in report["timings"]["kernels"]:
        assert line["median_us"] > 0 and line["share_of_copy"] > 0
    assert [path] == list(tmp_path.iterdir())


def test_a_planted_fault_fails_the_selftest():
    done = isobit("selftest", "--cpu", "--no-timings", "--plant-fault")
    assert done.returncode == 1
    assert "FAILED" in done.stdout


def test_selftest_refuses_a_place_that_it_cannot_write_and_a_device_that_is_not_there(tmp_path):
    done = isobit("selftest", "--cpu", "--no-timings", "--report", tmp_path / "none" / "report.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert isobit("selftest", "--device", "99").returncode == 77


def test_without_a_gpu_the_cpu_is_tested_unless_a_device_is_named():
    none = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    named = isobit("selftest", "--device", "0", env=none)
    assert (named.returncode, named.stdout) == (77, "")
    assert "no CUDA device 0 here" in named.stderr
    done = isobit("selftest", "--quick", "--no-timings", env=none)
    assert done.returncode == 0
    assert "no CUDA device: the CPU backend alone" in done.stdout


class Page(html.parser.HTMLParser):
    """What a page is made of; complains about tags that do not match."""

    VOID = frozenset({"meta", "link", "br", "img"})

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.addresses = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href", "srcset", "data", "action")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def check_page(text):
    page = Page(text)
    assert "script" not in page.tags and "link" not in page.tags and "img" not in page.tags
    assert all(address.startswith("#") for address in page.addresses)
    assert "url(" not in text and "@import" not in text
    assert set(re.findall(r'"https?://[^"]*"', text)) <= {'"http://www.w3.org/2000/svg"'}
    return page


def test_a_run_as_a_page(tmp_path):
    path = tmp_path / "page.html"
    words = ("geglu_forward", "--kernel", "cpu", "--shape", "rows=4,8", "cols=64", "--samples", 3)
    done = isobit("bench", *words, "--report", path)
    assert done.returncode == 0
    page = check_page(path.read_text())
    assert page.tags.count("svg") == 1  # no peer, so no ratios
    assert page.tags.count("tr") == 1 + len(done.stdout.splitlines())


def test_every_file_of_results_as_a_page_and_as_plots(tmp_path):
    files = sorted(RESULTS.glob("*/*.jsonl"))
    page = tmp_path / "page.html"
    assert isobit("bench", "--from", *files, "--report", page, "--svg", tmp_path / "plots").returncode == 0
    tags = check_page(page.read_text()).tags
    plots = sorted((tmp_path / "plots").iterdir())
    assert len(plots) == tags.count("svg") > 10
    for plot in plots:
        assert ET.parse(plot).getroot().tag == "{http://www.w3.org/2000/svg}svg", plot
    timings = sum('"median_us"' in line for file in files for line in file.read_text().splitlines())
    assert tags.count("tr") - tags.count("thead") == timings


def test_markup_in_a_file_stays_text(tmp_path):
    line = {"op": "<script>", "kernel": "<b>", "shape": {"N": 1}, "median_us": 1.0, "bytes": 10, "command": '"><img>'}
    path = tmp_path / "lines.jsonl"
    path.write_text(json.dumps(line) + "\n")
    assert isobit("bench", "--from", path, "--report", tmp_path / "page.html").returncode == 0
    check_page((tmp_path / "page.html").read_text())


@pytest.mark.parametrize("timings", [{}, {"kernels": 1}, {"copy": {}}])
def test_a_report_of_another_kind_is_refused(timings, tmp_path):
    path = tmp_path / "foreign.json"
    path.write_text(json.dumps({"schema": "other/1", "timings": timings}))
    done = isobit("bench", "--from", path, "--report", tmp_path / "page.html")
    assert (done.returncode, done.stdout, list(tmp_path.iterdir())) == (2, "", [path])
    assert "expected JSON lines" in done.stderr


@pytest.mark.parametrize(
    "words", [("--from", "/nonexistent"), ("--from", __file__, "--report", "page.html"), ("--report", "page.html")]
)
def test_a_page_of_nothing_is_a_usage_error(words, tmp_path):
    done = subprocess.run([CLI, "bench", *words], capture_output=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout, list(tmp_path.iterdir())) == (2, b"", [])
