"""Figures about speed in the pages are those of the records, and none stands there by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import figures
from tests.documents.__main__ import ROOT

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_SPEED = re.compile(
    r"\d[\d.,]*\s?(?:µs|ns|GB/s)(?!\w)|\d[\d.,]* times as\b|"
    r"\b(?:ten|hundred|thousand)s? times\b|\d[\d.,]* times (?:slower|faster)"
)
_MEASURED = [page for page in figures.PAGES if figures.MARKED.search(page.read_text())]


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", _MEASURED, ids=_name)
def test_the_figures_of_a_page_are_those_of_the_records(page: Path) -> None:
    text = page.read_text()
    assert figures.replaced(text) == text, "python -m benchmarks.figures --write"


def test_the_charts_are_those_of_the_records() -> None:
    for path, made in figures.PICTURES.items():
        assert (ROOT / path).read_text() == made(), "python -m benchmarks.figures --write"


def test_no_figure_about_speed_stands_in_a_page_by_hand() -> None:
    by_hand = {
        f"{page.relative_to(ROOT).as_posix()}: {found}"
        for page in figures.PAGES
        for found in _SPEED.findall(prose(figures.without(page.read_text())))
        if "contributing" not in page.parts
    }
    assert by_hand == set()


def prose(text: str) -> str:
    """A page without its code."""
    return _CODE.sub("", _FENCED.sub("", text))


def test_every_figure_is_used_and_the_pages_have_the_peers() -> None:
    text = "".join(page.read_text() for page in figures.PAGES)
    used = {match[2] for match in figures.MARKED.finditer(text)}
    assert used == set(figures.FIGURES)
    assert {"README.md", "docs/comparison.md", "docs/measuring.md"} <= set(map(_name, _MEASURED))


def test_a_figure_that_differs_is_found() -> None:
    page = "<!-- figure: launch, cudadrv -->0.1<!-- end --> µs, and 3 µs"
    assert figures.replaced(page) != page
    assert _SPEED.findall(prose(figures.without(page))) == ["3 µs"]
