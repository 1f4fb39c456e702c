"""The page's two pictures as SVG: the steps of both sides in time, and the log-prob difference over a prompt's positions.

Colours are the page's variables, so that they follow its light and dark form; every mark carries its words as well.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from locales import _

SHOWN_STEPS = 200
"""Of a lane; the rest is counted."""
_SHOWN_LANES = 24
_CELL, _LANE, _LEFT = 46, 34, 150  # pixels
_COLUMNS = 600
"""Of the plot: a longer prompt is drawn by the largest difference of each group of positions."""


def plain(text: Any) -> str:
    """Text for HTML and XML: escaped, and without characters that steer a terminal or turn the line around."""
    return html.escape("".join(c if c.isprintable() else "�" for c in str(text)), quote=True)


# --- the timeline -----------------------------------------------------------------------------------------------------


def timeline(steps: Sequence[Mapping[str, Any]]) -> str:
    """A lane for each side and rank, ranks that did the same in one lane; a box for each step, with its tokens."""
    lanes = _lanes(steps)
    shown = lanes[:_SHOWN_LANES]
    longest = max((min(len(lane), SHOWN_STEPS) for _name, lane in shown), default=0)
    width, height = _LEFT + max(longest, 1) * _CELL + 60, len(shown) * _LANE + 24
    parts = [_open(width, height, _("steps of both sides"))]
    for row, (name, lane) in enumerate(shown):
        parts += _lane(name, lane, row * _LANE + 4)
    if len(lanes) > len(shown):
        more = _("and {count} more lanes").format(count=len(lanes) - len(shown))
        parts.append(f'<text class="dim" x="4" y="{height - 6}">{plain(more)}</text>')
    return "".join([*parts, "</svg>"])


def _lanes(steps: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """In the order in which they come; the first rank stands for those that look the same."""
    by_rank: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for step in steps:
        by_rank.setdefault((str(step["side"]), rank_name(step)), []).append(step)
    alike: dict[tuple[Any, ...], list[str]] = {}
    for (side, rank), lane in by_rank.items():
        look = ((one["step"], one["label"], one["tokens"], one["chosen"]) for one in lane)
        alike.setdefault((side, *look), []).append(rank)
    return [
        (f"{key[0]} {ranks[0]}" + (f" (+{len(ranks) - 1})" if len(ranks) > 1 else ""), by_rank[key[0], ranks[0]])
        for key, ranks in alike.items()
    ]


def rank_name(step: Mapping[str, Any]) -> str:
    if step.get("rank") is not None:
        return f"rank{step['rank']}"
    return f"proc{step['pid']}" if step.get("pid") is not None else "-"


def _lane(name: str, lane: Sequence[Mapping[str, Any]], top: int) -> Iterator[str]:
    middle, end = top + 13, _LEFT + len(lane[:SHOWN_STEPS]) * _CELL
    yield f'<text class="lane" x="4" y="{middle + 4}">{plain(name)}</text>'
    yield f'<line class="axis" x1="{_LEFT - 8}" y1="{middle}" x2="{end}" y2="{middle}"/>'
    for column, step in enumerate(lane[:SHOWN_STEPS]):
        x = _LEFT + column * _CELL
        tokens = "?" if step["tokens"] is None else f"{step['tokens']}"
        words = _("step {step}: {label}, {tokens} tokens").format(step=step["step"], label=step["label"], tokens=tokens)
        words = f"{words}. {step['why']}" if step.get("why") else words
        chosen = " chosen" if step["chosen"] else ""
        yield (
            f'<g><title>{plain(words)}</title><rect class="step l-{plain(step["label"])}{chosen}" x="{x}" y="{top}"'
            f' width="{_CELL - 6}" height="26" rx="5"/>'
            f'<text class="on" x="{x + (_CELL - 6) / 2:g}" y="{middle + 4}">{plain(_short(tokens))}</text></g>'
        )
    if len(lane) > SHOWN_STEPS:
        yield f'<text class="dim" x="{end + 4}" y="{middle + 4}">+{len(lane) - SHOWN_STEPS}</text>'


def _short(tokens: str) -> str:
    return tokens if len(tokens) < 5 else f"{int(tokens) // 1000}k"


# --- the difference over positions ------------------------------------------------------------------------------------


def difference_plot(differences: Sequence[float], first: int = 1) -> str:
    """``differences``: |exp(train) - exp(infer)| of the tokens at position ``first`` and on. Logarithmic where they span more than
    two powers of ten; an exact 0 stands on the floor as a hollow mark."""
    width, height, left, bottom, top = 860, 260, 86, 34, 14
    floor, ceiling, logarithmic = _scale(differences)
    inner_w, inner_h = width - left - 16, height - top - bottom

    def y_of(value: float) -> float:
        if value <= 0 and logarithmic:
            return top + inner_h
        share = ((math.log10(value) if logarithmic else value) - floor) / (ceiling - floor)
        return top + inner_h * (1 - min(max(share, 0.0), 1.0))

    def x_of(index: float) -> float:
        return left + inner_w * (index + 0.5) / max(len(differences), 1)

    parts = [_open(width, height, _("log-prob difference by position"))]
    for level in _levels(floor, ceiling, logarithmic):
        value = 10.0**level if logarithmic else level
        y = y_of(value)
        parts.append(f'<line class="grid" x1="{left}" y1="{y:.1f}" x2="{width - 16}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick end" x="{left - 8}" y="{y + 4:.1f}">{value:.3g}</text>')
    base = top + inner_h
    parts.append(f'<line class="axis" x1="{left}" y1="{base}" x2="{width - 16}" y2="{base}"/>')
    size = max(1, math.ceil(len(differences) / _COLUMNS))
    for start in range(0, len(differences), size):
        group = differences[start : start + size]
        value, x = max(group), x_of(start + (len(group) - 1) / 2)
        at = f"{first + start}" if len(group) == 1 else f"{first + start}–{first + start + len(group) - 1}"
        words = plain(_("position {at}: {value:.6g}").format(at=at, value=value))
        y = y_of(value)
        parts.append(f'<line class="stem" x1="{x:.1f}" y1="{base}" x2="{x:.1f}" y2="{y:.1f}"/>')
        kind = "dot" if value > 0 else "zero"
        parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{words}</title></circle>')
    parts += [
        f'<text class="tick mid" x="{x_of(index):.1f}" y="{height - 16}">{first + index}</text>'
        for index in _ticks(len(differences))
    ]
    name = plain(_("position in the prompt"))
    parts.append(f'<text class="dim mid" x="{left + inner_w / 2:g}" y="{height - 2}">{name}</text>')
    return "".join([*parts, "</svg>"])


def _scale(values: Sequence[float]) -> tuple[float, float, bool]:
    """(floor, ceiling, whether logarithmic: the two are powers of ten then)."""
    above = [value for value in values if value > 0]
    if not above:
        return 0.0, 1.0, False
    if max(above) / min(above) > 100:
        return float(math.floor(math.log10(min(above)))) - 0.3, float(math.ceil(math.log10(max(above)))), True
    return 0.0, max(above) * 1.1, False


def _levels(floor: float, ceiling: float, logarithmic: bool) -> list[float]:
    if logarithmic:
        low, high = math.ceil(floor), int(ceiling)
        return [float(one) for one in range(low, high + 1, max(1, (high - low) // 6))]
    return [floor + (ceiling - floor) * part / 4 for part in range(5)]


def _ticks(count: int) -> list[int]:
    if count < 2:
        return list(range(count))
    wanted = count if count <= 12 else 9
    return [index for index, _same in groupby(round(part * (count - 1) / (wanted - 1)) for part in range(wanted))]


def _open(width: int, height: int, name: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}"><title>{plain(name)}</title>'
    )
