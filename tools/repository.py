"""The address of the repository: it stands in pyproject.toml as `Source`, and others repeat it.

    python -m tools.repository OWNER/NAME

writes another address in all places of `FILES`.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
FILES: Final = (
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs",
    "action.yml",
    "recipe/recipe.yaml",
)
"""Files, and folders with pages, that may name the repository."""
_NAME: Final = re.compile(r"[\w.-]+/[\w.-]+")


def address(project: Path = ROOT) -> str:
    """Return owner and name, such as "owner/name"."""
    urls = tomllib.loads((project / "pyproject.toml").read_text())["project"]["urls"]
    source: str = urls["Source"]
    return source.removeprefix("https://github.com/")


def files(project: Path = ROOT) -> Iterator[Path]:
    """Yield the files that may name the repository."""
    for name in FILES:
        path = project / name
        yield from sorted(path.rglob("*.md")) if path.is_dir() else [path]


def rename(new: str, project: Path = ROOT) -> list[Path]:
    """Write another address wherever the present one stands; return the changed files.

    Raises:
        ValueError: it is not of the form "owner/name".
    """
    if not _NAME.fullmatch(new):
        raise ValueError(f"{new!r} is no address of a repository: give OWNER/NAME")
    old = re.compile(rf"(?<![\w.-]){re.escape(address(project))}(?![\w.-])")
    changed = []
    for path in files(project):
        text = path.read_text()
        renamed = old.sub(lambda _: new, text)
        if renamed != text:
            path.write_text(renamed)
            changed.append(path)
    return changed


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.repository", description=__doc__)
    parser.add_argument("address", metavar="OWNER/NAME")
    for path in rename(parser.parse_args().address):
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
