"""The front page, the README, and the beginnings of the pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
DOCS: Final = ROOT / "docs"
FOR_CONTRIBUTORS: Final = {"architecture.md", "contributing"}
OTHERS: Final = {"index.md", "reference"}
"""The front page, and the reference, whose pages are lists of names."""


def part(text: str, start: str, end: str) -> str:
    """Return the text between two marks, with the links of the documentation's folder."""
    return " ".join(text.partition(start)[2].partition(end)[0].replace("](docs/", "](").split())


def test_the_readme_and_the_front_page_install_the_same_and_lead_to_the_same_pages() -> None:
    readme, page = (ROOT / "README.md").read_text(), (DOCS / "index.md").read_text()
    installed = part(page, "Install it", "![")
    assert 'pip install ".[cu13,cli]"' in installed
    assert installed == part(readme, "Install it", "Run its tests")
    assert part(page, "## Where to start", "##") == part(readme, "## Where to start", "##")


def test_four_readers_find_three_pages_each() -> None:
    table = (DOCS / "index.md").read_text().partition("## Where to start")[2].partition("##")[0]
    rows = [re.findall(r"\]\(([^)]+)\)", row) for row in table.strip().splitlines()[2:]]
    assert [len(row) for row in rows] == [3, 3, 3, 3]
    assert [link for row in rows for link in row if not (DOCS / link).is_file()] == []


def test_each_page_begins_with_when_you_need_it() -> None:
    pages = [page.relative_to(DOCS) for page in sorted(DOCS.rglob("*.md"))]
    missing = [
        str(page)
        for page in pages
        if page.parts[0] not in FOR_CONTRIBUTORS | OTHERS
        and not re.search(
            r"^# .*\n\nRead this page (when|if|to) ", (DOCS / page).read_text(), re.MULTILINE
        )
    ]
    assert missing == []
