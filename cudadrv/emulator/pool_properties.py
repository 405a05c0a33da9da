"""What is read of the structures that pools are made of.

The bindings of CUDA 12 have no names for all of the numbers, which callers in C give all the same.
"""

from __future__ import annotations

from typing import Protocol


class Location(Protocol):
    """What is read of a CUmemLocation."""

    @property
    def type(self) -> int:
        """A CUmemLocationType."""

    @property
    def id(self) -> int:
        """Of the device or the NUMA node."""


class PoolProperties(Protocol):
    """What is read of a CUmemPoolProps."""

    @property
    def allocType(self) -> int:
        """A CUmemAllocationType."""

    @property
    def handleTypes(self) -> int:
        """How other processes may have it."""

    @property
    def location(self) -> Location:
        """Where its memory is."""

    @property
    def maxSize(self) -> int:
        """Bytes that it may have; 0 is no limit."""
