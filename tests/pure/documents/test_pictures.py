"""Pictures of the pages are legible under a light and under a dark theme."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.documents.__main__ import ROOT

IMAGES = ROOT / "docs" / "images"
_LEAST = 4.5  # for text, by WCAG 2
_NAME = "{http://www.w3.org/2000/svg}"


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour such as #475569, by WCAG 2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colours, from 1 to 21."""
    darker, lighter = sorted((luminance(first), luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def drawn(
    element: ElementTree.Element, fill: str = "#000000", stroke: str = "none"
) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each element with the colours of its area and of its line."""
    fill, stroke = element.get("fill", fill), element.get("stroke", stroke)
    yield element.tag.removeprefix(_NAME), fill, stroke
    for inner in element:
        yield from drawn(inner, fill, stroke)


def faint(svg: str) -> list[str]:
    """Return the texts and lines that hardly stand out, or a missing ground."""
    root = ElementTree.fromstring(svg)
    (*_, width, height) = root.attrib["viewBox"].split()
    ground = root.find(f"{_NAME}rect")
    if ground is None or (ground.get("width"), ground.get("height")) != (width, height):
        return ["no ground, so that the page's colour shows"]
    elements = list(drawn(root))
    boxes = {fill for name, fill, _ in elements if name == "rect" and fill.startswith("#")}
    texts = {fill for name, fill, _ in elements if name == "text"}
    lines = {stroke for _, _, stroke in elements if stroke != "none"}
    pairs = {(text, box) for text in texts for box in boxes}
    pairs |= {(line, ground.attrib["fill"]) for line in lines}
    return [f"{one} on {other}" for one, other in sorted(pairs) if contrast(one, other) < _LEAST]


@pytest.mark.parametrize("path", sorted(IMAGES.rglob("*.svg")), ids=lambda path: path.name)
def test_texts_and_lines_of_a_drawing_stand_out_on_a_ground_of_its_own(path: Path) -> None:
    assert faint(path.read_text()) == []


def test_a_faint_line_and_a_missing_ground_are_found() -> None:
    svg = (IMAGES / "orders.svg").read_text()
    assert faint(svg.replace("#475569", "#cbd5e1")) == ["#cbd5e1 on #ffffff"]
    assert faint(re.sub(r"<rect width.*?/>", "", svg)) != []
