"""The campaigns by name.

A campaign is a module or a package of this folder. Its function `run_campaign(seconds, seed)` runs
cases for about so many seconds. The same seed runs the same cases in the same order.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Final, Protocol, cast

from .report import Report


class _Module(Protocol):
    """A module with a campaign."""

    def run_campaign(self, seconds: float, seed: int, *options: str) -> Report:
        """Run the campaign; a campaign without options takes none."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """One campaign.

    Attributes:
        about: what it does, in a line.
        has_options: whether the command accepts further options, which `NAME --help` lists.
        needs: what the machine must have, beside what the tests need.
    """

    about: str
    has_options: bool = False
    needs: str = ""


_GPU: Final = "a GPU and Nsight Compute (ncu)"
CAMPAIGNS: Final[dict[str, Campaign]] = {
    "any_arguments": Campaign(
        "calls each function of the driver from C, with live handles and wrong arguments",
        needs="a compiler of C",
    ),
    "assembled_ptx": Campaign("compares random modules of PTX with NVIDIA's assembler", True),
    "cache": Campaign("attacks the cache folder: links, FIFOs, locks, damage, toggled headers"),
    "checked_corpus": Campaign("runs the differential corpus under all checks", True),
    "counted": Campaign("compares the emulator's counts with Nsight Compute", True, _GPU),
    "faults": Campaign("lets every driver function fail, one call at a time"),
    "faulty_kernels": Campaign("runs kernels that are wrong in some orders only, and their twins"),
    "happens_before": Campaign("compares the race check with a model, on random kernels"),
    "hardware": Campaign("compares forms and programs with a GPU, or its stored results", True),
    "interrupts": Campaign("interrupts each operation at every point and at random moments", True),
    "kills": Campaign("kills sixteen processes that share one cache folder"),
    "leaks": Campaign("repeats every public operation and looks for what grows"),
    "model": Campaign("follows a state machine of objects and their lifetimes", True),
    "mutants": Campaign(
        "changes the product in one place and runs its tests", True, "the package cosmic-ray"
    ),
    "order_faults": Campaign("runs programs that are wrong in some orders only, and their twins"),
    "order_programs": Campaign("compares short programs of acts with a model", True),
    "processes": Campaign("kills processes that share device memory"),
    "public_calls": Campaign("calls public functions with allowed values and with wrong ones"),
    "race_truth": Campaign("runs right kernels and planted races under the race check", True),
    "random_ptx": Campaign("compares random PTX with a slow reference, and breaks texts"),
    "resident": Campaign("compares the occupancy with the driver and with ncu", True, _GPU),
    "sanitized": Campaign(
        "compares the checks with compute-sanitizer", True, "a GPU and compute-sanitizer"
    ),
    "threads": Campaign("lets many threads make, use, close and drop shared objects"),
    "workers": Campaign("kills, stops and starves workers of an executor"),
}
"""The campaigns in alphabetical order; each name is that of its module."""


def run(name: str, seconds: float, seed: int, *options: str) -> Report:
    """Run one campaign."""
    # Imported here: a campaign may change the process that it runs in.
    module = importlib.import_module(f".{name}", __package__)
    return cast(_Module, module).run_campaign(seconds, seed, *options)
