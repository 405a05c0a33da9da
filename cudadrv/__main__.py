"""``python -m cudadrv``: the self-test, what is installed, the compiler and its cache."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .cli.parser import run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and answer its exit status."""
    return run(sys.argv[1:] if arguments is None else arguments)


if __name__ == "__main__":
    raise SystemExit(main())
