"""What the commands have in common on the command line."""

from __future__ import annotations

import argparse
from typing import TypeAlias

# argparse has no public name for what `add_subparsers` gives.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def positive(text: str) -> int:
    """A whole number of 1 or more.

    Raises:
        ArgumentTypeError: the text is none.
    """
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return number
