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


def test_the_contents_of_a_reference_page_list_classes_and_functions_without_members() -> None:
    page = (SITE / "reference" / "memory.html").read_text()
    contents = page[page.index('<div class="toc-tree">') :]
    names = re.findall(r'href="#([\w.]+)"', contents[: contents.index("</aside>")])
    assert "cudadrv.DeviceArray" in names
    assert "cudadrv.pinned_empty" in names
    assert not [name for name in names if name.startswith("cudadrv.DeviceArray.")]


def test_tables_that_are_wider_than_a_phone_stack_with_their_titles_or_say_that_they_scroll() -> (
    None
):
    wrong = []
    kinds = {"stacks": 0, "scrolls": 0}
    for path in sorted(SITE.rglob("*.html")):
        for table in re.findall(r'<table class="docutils.*?</table>', path.read_text(), re.DOTALL):
            columns = table.count("<th ")
            rows = [
                re.findall("<td.*?>(.*?)</td>", row, re.DOTALL) for row in table.split("<tr")[2:]
            ]
            longest = max(sum(map(len, map(text_of, row))) for row in rows)
            if longest > 45:  # a row that no phone shows at once
                wrong.append(f"{path.relative_to(SITE)}: {columns} columns, {longest} characters")
        for table in re.findall(r'<table class="stacks.*?</table>', path.read_text(), re.DOTALL):
            kinds["stacks"] += 1
            titles = [text_of(each) for each in re.findall("<th .*?</th>", table, re.DOTALL)]
            labels = re.findall('<td data-label="(.*?)"', table)
            if [html.unescape(each) for each in labels] != titles * (table.count("<tr ") - 1):
                wrong.append(f"{path.relative_to(SITE)}: {titles} as {labels[:9]}")
        kinds["scrolls"] += path.read_text().count('<table class="scrolls')
    assert wrong == []
    assert kinds["stacks"] > 50
    assert kinds["scrolls"] > 3


def test_types_of_attributes_have_public_names() -> None:
    pages = [path.read_text() for path in (SITE / "reference").glob("*.html")]
    assert not [page for page in pages if "ReadOnly" in text_of(page)]
    memory = text_of((SITE / "reference" / "memory.html").read_text())
    assert "shape (tuple[int, ...]) – the extents." in memory


def text_of(markup: str) -> str:
    return html.unescape(re.sub("<[^>]*>", "", markup)).strip()
