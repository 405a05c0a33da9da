"""Writes the stubs of the installed cuda.bindings: `python -m tools.generate_stubs FOLDER`.

With `--check` nothing is written, and the status is 1 where a file would change.
"""

from __future__ import annotations

import argparse
import importlib
from importlib.metadata import version
from pathlib import Path

from .modules import stub

MODULES = tuple(f"cuda.bindings.{name}" for name in ("driver", "nvrtc", "nvjitlink", "nvvm"))


def main() -> int:
    """Answer the exit status."""
    parser = argparse.ArgumentParser(prog="tools.generate_stubs", description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder that `cuda/bindings` is in")
    parser.add_argument("--check", action="store_true", help="only compare")
    arguments = parser.parse_args()
    changed = False
    for path, text in generated(arguments.folder).items():
        if path.exists() and path.read_text() == text:
            continue
        changed = True
        print(f"{'differs' if arguments.check else 'written'}: {path}")
        if not arguments.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return int(changed and arguments.check)


def generated(folder: Path) -> dict[Path, str]:
    """The stubs of the installed modules, by the paths that they have below a folder."""
    installed = version("cuda-bindings")
    return {
        folder.joinpath(*name.split(".")).with_suffix(".pyi"): stub(
            importlib.import_module(name), installed
        )
        for name in MODULES
    }


if __name__ == "__main__":
    raise SystemExit(main())
