"""Drawings of boxes, texts and arrows, as SVG that shows without a network."""

from __future__ import annotations

import html
from typing import Final

GREEN, BLUE, GREY, RED, YELLOW = "#dcfce7", "#e0e7ff", "#f1f5f9", "#fee2e2", "#fef3c7"
INK: Final = "#0f172a"
_LINE: Final = "#475569"


class Drawing:
    """A drawing on white; lengths are pixels of a page that is 720 wide.

    Args:
        width, height: its size.
        title: what it shows, for readers who do not see it.
    """

    def __init__(self, width: int, height: int, title: str) -> None:
        self._head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            'font-family="system-ui, sans-serif" font-size="14" role="img" '
            'aria-labelledby="title">',
            f'<title id="title">{html.escape(title, quote=False)}</title>',
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="{_LINE}"/></marker>'
            "</defs>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        )
        self._elements: list[str] = []

    def add(self, element: str) -> None:
        """Add an element as it is."""
        self._elements.append(element)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        anchor: str = "start",
        size: int = 14,
        bold: bool = False,
        colour: str = INK,
        mono: bool = False,
    ) -> None:
        """Write a line of text that begins, has its middle or ends at a point."""
        weight = ' font-weight="600"' if bold else ""
        family = ' font-family="ui-monospace, monospace" xml:space="preserve"' if mono else ""
        self.add(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" '
            f'fill="{colour}"{weight}{family}>{html.escape(words, quote=False)}</text>'
        )

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *lines: str,
        fill: str = GREEN,
        dashed: bool = False,
        size: int = 13,
    ) -> None:
        """Draw a box with lines of text in its middle."""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.add(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" '
            f'fill="{fill}" stroke="{_LINE}"{dash}/>'
        )
        top = y + height / 2 + 5 - 9 * (len(lines) - 1)
        for row, line in enumerate(lines):
            self.text(x + width / 2, top + 18 * row, line, anchor="middle", size=size)

    def line(self, *points: tuple[float, float], arrow: bool = True, dashed: bool = False) -> None:
        """Draw a line through points, with an arrow at its end."""
        path = "L".join(f"{x:g} {y:g}" for x, y in points)
        end = ' marker-end="url(#arrow)"' if arrow else ""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.add(f'<path d="M{path}" fill="none" stroke="{_LINE}" stroke-width="1.5"{dash}{end}/>')

    def svg(self) -> str:
        """The file's text."""
        return "\n".join([*self._head, *self._elements, "</svg>", ""])
