"""The comparison with other libraries: its claims have sources, and those are of the releases."""

from __future__ import annotations

import re

import pytest

from tests.documents.__main__ import ROOT
from tests.rows import all_rows

PAGE = (ROOT / "docs" / "comparison.md").read_text()
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
HOSTS = {
    "docs.cupy.dev", "docs.jax.dev", "docs.nvidia.com", "dmlc.github.io", "documen.tician.de",
    "github.com", "nvidia.github.io", "pypi.org", "triton-lang.org",
}  # fmt: skip


def table(heading: str) -> list[list[str]]:
    """The cells of the first table after a heading, without its head."""
    lines = PAGE.partition(heading)[2].lstrip().splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


RELEASES = table("# Comparison")
FEATURES = [row for row in table("## Features") if "<!-- figure" not in "".join(row)]


@all_rows
@pytest.mark.parametrize("row", FEATURES, ids=[row[0] for row in FEATURES])
def test_each_claim_about_another_library_has_a_source(row: list[str]) -> None:
    assert len(row) == 6
    assert LINK.search("".join(row[1:]))
    assert [cell for cell in row[2:] if cell != "no" and not LINK.search(cell)] == []


def test_links_to_a_source_name_the_compared_release() -> None:
    trees = {LINK.findall(row[3])[0].replace("/tree/", "/") for row in RELEASES}
    wrong = []
    for link in LINK.findall(PAGE.partition("## Features")[2].partition("\n## ")[0]):
        if link.startswith("https://github.com/"):
            plain = re.sub(r"/(?:blob|tree)/", "/", link)
            if not any(plain.startswith(tree) for tree in trees):
                wrong.append(link)
    assert wrong == []


def test_links_are_well_formed() -> None:
    for link in LINK.findall(PAGE):
        if "://" in link:
            scheme, _, rest = link.partition("://")
            assert scheme == "https", link
            assert rest.partition("/")[0] in HOSTS, link
            assert re.fullmatch(r"[\w./~#()=%+-]+", rest), link


def test_the_releases_are_named_as_their_sources() -> None:
    for name, release, documentation, source in RELEASES:
        assert release in source, name
        assert LINK.search(documentation), name
