"""One program in a process of its own: `--launch NAME` or `--check NAME`."""

from __future__ import annotations

import argparse
import signal

from ..race_truth.graph_inputs import SIZES
from . import one_program


def main() -> None:
    """Launch a program on the GPU, or run it on the emulator with its checks."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--launch", metavar="NAME")
    parser.add_argument("--check", metavar="NAME")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--timeout", type=float, default=40, help="seconds")
    given = parser.parse_args()
    if hasattr(signal, "alarm"):
        signal.alarm(int(given.timeout))
    run = one_program.launch if given.launch else one_program.check
    run(given.launch or given.check, given.size)


if __name__ == "__main__":
    main()
