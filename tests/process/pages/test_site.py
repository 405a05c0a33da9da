"""The built site: its search finds what readers look for, and signatures have public names."""

from __future__ import annotations

import html
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

SITE = Path(os.environ.get("CUDADRV_SITE", "absent"))
if not (SITE / "searchindex.js").exists():
    pytest.skip("needs a built site (CUDADRV_SITE)", allow_module_level=True)
search = pytest.importorskip("sphinx.search.en")


@pytest.fixture(scope="module")
def index() -> dict[str, Any]:
    text = (SITE / "searchindex.js").read_text()
    found: dict[str, Any] = json.loads(text[text.index("{") : text.rindex("}") + 1])
    return found


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("race condition", "howto/races"), ("race condition", "checks/race"),
        ("install", "install"), ("pip install", "install"), ("CUB", "gallery"),
        ("CUB", "install"), ("thrust complex", "moving/from-cupy"),
        ("several GPUs", "howto/several-gpus"), ("out of bounds", "checks/bounds"),
    ],
)  # fmt: skip
def test_the_search_finds_what_readers_look_for(
    index: dict[str, Any], query: str, page: str
) -> None:
    assert page in found_by(index, query)


def found_by(index: dict[str, Any], query: str) -> set[str]:
    """The pages with all words of a query, as the site's own search finds them."""
    language = search.SearchEnglish({})
    pages = set(index["docnames"])
    for word in query.lower().split():
        if language.word_filter(word):
            stem = language.stem(word)
            numbers: set[int] = set()
            for table in (index["terms"], index["titleterms"]):
                hits = table.get(stem, [])
                numbers |= {hits} if isinstance(hits, int) else set(hits)
            pages &= {index["docnames"][number] for number in numbers}
    return pages


def signatures() -> list[str]:
    """What the reference shows of each name."""
    entry = re.compile(r'<dt class="sig sig-object py" id="[^"]+">(.*?)</dt>', re.DOTALL)
    return [
        " ".join(html.unescape(re.sub(r"<[^>]+>", "", shown)).split())
        for page in sorted((SITE / "reference").glob("*.html"))
        for shown in entry.findall(page.read_text())
    ]


def test_signatures_have_public_names_alone() -> None:
    internal = re.compile(r"(?<!\w)~|\b_[A-Z]|\bBase[A-Z]|<factory>|<class|SupportsIndex|_typing")
    assert len(signatures()) > 700
    assert [shown for shown in signatures() if internal.search(shown)] == []


def test_classes_that_only_the_library_makes_show_no_constructor() -> None:
    shown = set(signatures())
    for name in ("Stream", "Context", "Kernel", "Module", "Device", "GraphNode"):
        assert any(
            re.match(rf"class cudadrv\.(?:graph\.)?{name}(?!\w|\()", each) for each in shown
        ), name
    assert any(each.startswith("class cudadrv.LaunchConfig(grid:") for each in shown)
