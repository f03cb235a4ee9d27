"""A plot of differences per token as SVG, on a logarithmic axis with a line of its own for 0."""

import math

COLOURS = ("#c0392b", "#e59866", "#8e44ad", "#c39bd3", "#1f618d", "#7fb3d5", "#1e8449", "#82e0aa")
LEFT, TOP, WIDTH, HEIGHT = 70, 20, 640, 260
LOW, HIGH = -9, 1  # powers of ten that the axis shows


def _y(value: float) -> float:
    """0 lies on the axis, everything else above 10^LOW."""
    if value == 0:
        return TOP + HEIGHT
    power = min(max(math.log10(value), LOW), HIGH)
    return TOP + (HIGH - power) / (HIGH - LOW + 1) * HEIGHT


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def differences(series: dict[str, list[float]]) -> str:
    """series: name -> |difference| for each token."""
    height = TOP + HEIGHT + 50 + 18 * len(series)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" height="{height}" '
             'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="white"/>']  # fmt: skip
    ticks = [(10.0**power, f"1e{power}") for power in range(LOW, HIGH + 1, 2)] + [(0.0, "0")]
    for value, label in ticks:
        y = _y(value)
        parts.append(f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(_text(LEFT - 8, y + 4, label, "end"))
    for number, (name, values) in enumerate(series.items()):
        colour, marks = COLOURS[number % len(COLOURS)], number % 2
        for index, value in enumerate(values):
            x = LEFT + WIDTH * (index + 0.5 + 0.1 * number) / (len(values) + 1)
            fill = "none" if marks else colour
            parts.append(f'<circle cx="{x:.1f}" cy="{_y(value):.1f}" r="3" fill="{fill}" stroke="{colour}"/>')
        y = TOP + HEIGHT + 46 + 18 * number
        parts.append(
            f'<circle cx="{LEFT + 6}" cy="{y - 4}" r="4" fill="{"none" if marks else colour}" stroke="{colour}"/>'
        )
        zeros = sum(value == 0 for value in values)
        parts.append(_text(LEFT + 16, y, f"{name}: {zeros} of {len(values)} tokens with equal bits"))
    parts.append(
        _text(LEFT + WIDTH / 2, TOP + HEIGHT + 22, "token; |logp - logp when decoded token by token|", "middle")
    )
    return "\n".join([*parts, "</svg>"]) + "\n"
