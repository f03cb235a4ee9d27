"""The tables of docs/scaling.md: time over ranks from one GPU's shares and the link, as nccl_bench_ranks measured them.

python3 scripts/docs/scaling.py docs/results/2026-11-30-h200/linear_logp_ranks.jsonl
"""

from __future__ import annotations

import json
import pathlib
import sys

HOP_US = 5.0  # assumed: what every rank beyond two adds to a collective's latency
HOSTS_GB_PER_S = 50.0  # assumed: between hosts, into every GPU
HOSTS_LATENCY_US = 30.0  # assumed
GPUS_OF_A_HOST = 8


def read(path: str) -> list[dict]:
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]


class Link:
    """Time of a collective that brings some bytes into every GPU, between measured sizes of two ranks."""

    def __init__(self, records: list[dict], collective: str):
        found = [r for r in records if r["op"] == "link" and r["collective"] == collective]
        self.points = sorted((r["bytes"], r["median_us"]) for r in found)

    def us(self, size: float, ranks: int) -> float:
        if ranks > GPUS_OF_A_HOST:
            return HOSTS_LATENCY_US + HOP_US * (ranks - 2) + size / HOSTS_GB_PER_S * 1e-3
        (low, low_us), (high, high_us) = self.points[0], self.points[1]
        for after in self.points[2:]:
            if size <= high:
                break
            (low, low_us), (high, high_us) = (high, high_us), after
        slope = (high_us - low_us) / (high - low)
        return max(low_us + slope * (size - low), self.points[0][1]) + HOP_US * (ranks - 2)


def of(records: list[dict], op: str, rows: int) -> dict[int, dict]:
    return {r["ranks"]: r for r in records if r["op"] == op and r["shape"]["N"] == rows}


def row(ranks: int, parts: list[float], one: float, measured: float | None) -> str:
    total = sum(parts)
    cells = [f"{part / 1e3:.2f}" for part in (*parts, total)]
    seen = f"{measured / 1e3:.2f} ({total / measured - 1:+.0%})" if measured else ""
    return f"| {ranks} | {' | '.join(cells)} | {one / total / ranks:.2f} | {seen} |"


def forward(records: list[dict], rows: int) -> list[str]:
    shares, measured = of(records, "linear_logp_share", rows), of(records, "linear_logp_ranks", rows)
    gather = Link(records, "all_gather")
    one = measured[2]["peer_median_us"]
    lines = [f"N = {rows}, one GPU {one / 1e3:.2f} ms"]
    for ranks in (2, 4, 8, 16):
        share = shares[ranks]
        parts = [share["median_us"], gather.us((ranks - 1) * share["state_bytes"], ranks), share["merge_us"]]
        lines.append(row(ranks, parts, one, measured[ranks]["median_us"] if ranks in measured else None))
    return lines


def backward(records: list[dict], rows: int) -> list[str]:
    shares = of(records, "linear_logp_backward_share", rows)
    measured = of(records, "linear_logp_ranks_backward", rows)
    swap = Link(records, "swap")
    one, width = measured[2]["peer_median_us"], measured[2]["shape"]["H"]
    lines = [f"N = {rows}, backward, one GPU {one / 1e3:.2f} ms"]
    for ranks in (2, 4, 8, 16):
        others = rows * width * (ranks - 1) / ranks
        moves = swap.us(others * 4, ranks) + swap.us(others * 2, ranks)  # parts in fp32, rows of d_hidden in bf16
        parts = [shares[ranks]["median_us"], moves, shares[ranks]["merge_us"] / ranks]
        lines.append(row(ranks, parts, one, measured[ranks]["median_us"] if ranks in measured else None))
    return lines


def main() -> None:
    records = read(sys.argv[1])
    for rows in sorted({r["shape"]["N"] for r in records if r["op"] == "linear_logp_ranks"}):
        print("\n".join(forward(records, rows)))
    for rows in sorted({r["shape"]["N"] for r in records if r["op"] == "linear_logp_ranks_backward"}):
        print("\n".join(backward(records, rows)))


if __name__ == "__main__":
    main()
