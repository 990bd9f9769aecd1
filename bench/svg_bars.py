"""Bar charts as SVG, readable on light and dark backgrounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LEFT, RIGHT, BAR, GAP = 860, 230, 110, 14, 12
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.note { fill: #59636e } .title { font-size: 15px; font-weight: 600 }
.s0 { fill: #8c959f } .s1 { fill: #bc6c25 } .s2 { fill: #2a7f9e }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .note { fill: #9198a1 }
  .s0 { fill: #7d8590 } .s1 { fill: #e09f5f } .s2 { fill: #56b4d3 }
}
"""


@dataclass(frozen=True)
class Row:
    """One request, with a bar per series."""

    name: str
    values: Sequence[float | None]


def draw_bars(title: str, note: str, unit: str, series: Sequence[str], rows: Sequence[Row]) -> str:
    """Draw bars with their values; bars that are far longer than all others end in an arrow."""
    values = sorted(value for row in rows for value in row.values if value)
    space = WIDTH - LEFT - RIGHT
    scale = space / min(values[-1], 1.1 * values[int(0.9 * (len(values) - 1))])
    parts: list[str] = [_text(12, 24, title, "title"), _text(12, 44, note, "note")]
    x = 12
    for number, name in enumerate(series):
        if not name:
            continue
        parts.append(f'<rect class="s{number}" x="{x}" y="56" width="12" height="12" rx="2"/>')
        parts.append(_text(x + 18, 66, name))
        x += 40 + 7 * len(name)
    y = 88
    for row in rows:
        top = y
        for number, value in enumerate(row.values):
            if value is None:
                continue
            length = min(max(value * scale, 1), space)
            arrow = "→ " if value * scale > space + 1 else ""
            parts.append(
                f'<rect class="s{number}" x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}" rx="2"/>'
                + _text(LEFT + length + 6, y + BAR - 3, f"{arrow}{format_value(value)} {unit}", "note")
            )
            y += BAR + 2
        parts.append(_text(LEFT - 10, (top + y) / 2 + 3, row.name, anchor="end"))
        y += GAP
    size = f'width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}"'
    body = "\n".join(parts)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><title>{escape(title)}</title>'
    return f"{head}\n<style>{STYLE}</style>\n{body}\n</svg>\n"


def format_value(value: float) -> str:
    """Format with at most three significant digits."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
