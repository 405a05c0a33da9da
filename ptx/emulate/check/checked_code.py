"""What the race check knows of a kernel's code before it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Protocol

from ptx.emulate.check.access_role import Update
from ptx.emulate.memory.site import Site


class CheckedCode(Protocol):
    """The code of a kernel and of what it calls."""

    @property
    def kernel(self) -> str:
        """Its name."""
        ...

    @property
    def files(self) -> Mapping[int, str]:
        """The names of its source files by number."""
        ...

    @property
    def shared_offsets(self) -> Mapping[str, int]:
        """Where each variable lies in a block's shared memory."""
        ...

    @property
    def sites(self) -> Sequence[Site]:
        """What it accesses memory with."""
        ...

    @property
    def guesses(self) -> Set[int]:
        """The loads, by identity, that a compare-and-swap checks."""
        ...

    @property
    def polls(self) -> Set[int]:
        """The volatile loads, by identity, that a loop repeats until their value changes."""
        ...

    @property
    def updates(self) -> Mapping[int, Update]:
        """The loads and stores, by identity, that update a place without an atomic operation."""
        ...

    @property
    def may_fence_narrowly(self) -> bool:
        """Whether there may be a fence of a scope that does not reach all blocks."""
        ...
