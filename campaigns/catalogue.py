"""The campaigns by name. Each is a module of this folder with `attack(seconds, seed)`."""

from __future__ import annotations

import importlib
from typing import Final, Protocol, cast

from .report import Outcome


class Campaign(Protocol):
    """A module with a campaign."""

    def attack(self, seconds: float, seed: int) -> Outcome:
        """Attack for about so long; the same seed tries the same things in the same order."""


CAMPAIGNS: Final[dict[str, str]] = {
    "cache": "another user's links, FIFOs, locks and folders in the cache, damage, toggled headers",
    "kills": "sixteen processes on one cache folder, killed while they read, write and clear",
    "faults": "every driver function that the library calls fails, one call at a time",
    "leaks": "every public operation many times over, after which nothing may have grown",
    "fuzz": "public functions with values that their annotations allow, and with wrong ones",
    "processes": "processes that share memory, killed while they take it, write it and close it",
    "workers": "workers killed, stopped, cut off, broken and out of memory while they change items",
    "interrupts": "interrupts each operation at every point, and the long ones at random moments",
}
"""The name of each campaign, and what it tries."""


def run(name: str, seconds: float, seed: int) -> Outcome:
    """Run one campaign."""
    # Imported here: a campaign may change the process that it runs in.
    module = importlib.import_module(f".{name}", __package__)
    return cast(Campaign, module).attack(seconds, seed)  # a module is not typed by its name
