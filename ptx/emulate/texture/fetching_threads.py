"""What a fetch must know of the threads that make it; `exec.fibre.Fibre` has these parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.memory.texture import Image, Texture
from ptx.emulate.model.errors import Where
from ptx.emulate.model.threads import Threads


class BoundImages(Protocol):
    """What kernels of a device read and write through handles."""

    @property
    def textures(self) -> Mapping[int, Texture]:
        """Textures by handle."""

    @property
    def surfaces(self) -> Mapping[int, Image]:
        """Images by the handles of their surfaces."""


class TexelCheck(Protocol):
    """What looks for reads of texels that nothing has written."""

    def note_texel(self, where: Where, memory: DeviceMemory, address: int, nbytes: int) -> None:
        """A thread reads such a texel of an image at an address."""


class StaleTexelCheck(Protocol):
    """What looks for reads of texels that the launch itself has written."""

    def stored_texels(self, address: int, nbytes: int) -> NDArray[np.uint8]:
        """The flags of an image's bytes that were written by a surface, to be set."""

    def written_bytes(
        self, memory: DeviceMemory, address: int, nbytes: int
    ) -> NDArray[np.uint8] | None:
        """Flags of bytes that the launch has written in any way; None if it has written none."""

    def report_texel(self, where: Where, memory: DeviceMemory, address: int, nbytes: int) -> None:
        """A thread reads such a texel of an image at an address."""


class FetchingBlocks(Protocol):
    """The blocks of such threads."""

    @property
    def races(self) -> StaleTexelCheck | None:
        """What looks for texels that the launch has written, where that is checked."""

    @property
    def unwritten(self) -> TexelCheck | None:
        """What looks for unwritten texels, where that is checked."""


class FetchingThreads(Threads, Protocol):
    """Threads that execute a texture or surface instruction together."""

    @property
    def device(self) -> BoundImages:
        """Where they run."""

    @property
    def blocks(self) -> FetchingBlocks:
        """Their blocks."""
