"""What a fetch must know of the threads that make it; `exec.fibre.Fibre` has these parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ptx.emulate.model.threads import Threads
from ptx.emulate.texture.texture import Image, Texture


class BoundImages(Protocol):
    """What kernels of a device read and write through handles."""

    @property
    def textures(self) -> Mapping[int, Texture]:
        """Textures by handle."""

    @property
    def surfaces(self) -> Mapping[int, Image]:
        """Images by the handles of their surfaces."""


class FetchingThreads(Threads, Protocol):
    """Threads that execute a texture or surface instruction together."""

    @property
    def device(self) -> BoundImages:
        """Where they run."""
