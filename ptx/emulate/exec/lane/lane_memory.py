"""The memory of single threads: Python's view of it, and accesses on the slow path.

The code itself makes an access within the allocation that its site accessed last. The slow path is
that of many threads (`access/memory_access.py`), with its checks and faults.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptx.emulate.access.memory_access import load_vector, store
from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, addresses_in
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import NUMPY
from ptx.emulate.threads.fibre import Fibre
from ptx.emulate.threads.launch_plan import LaunchPlan
from ptx.emulate.threads.resident_blocks import ResidentBlocks
from ptx.emulate.threads.rows import LANE, Row, column, value_of

_ADDRESS = {4: np.uint32, 8: np.uint64}


class LaneParameters(dict[tuple[str, int], Any]):
    """Kernel parameters by kind and offset, as a row holds them; read on first use."""

    def __init__(self, launch: LaunchPlan) -> None:
        super().__init__()
        self._params = launch.params

    def __missing__(self, key: tuple[str, int]) -> Any:
        value: Value = self._params[key]
        parameter = self[key] = column(value, 1)[0]
        return parameter


class LaneMemory:
    """The memories of one chunk; `shared_u32` is its shared memory as such elements.

    Attributes:
        F, I: one float32 and its bits; D, Q: one float64 and its bits.
        memory: the device's; params: of the kernel; shared_bytes: of a block; local_bytes: of a
            thread.
    """

    def __init__(self, blocks: ResidentBlocks) -> None:
        word, long = np.zeros(1, np.uint32), np.zeros(1, np.uint64)
        self.F, self.I = word.view(np.float32).data, word.data
        self.D, self.Q = long.view(np.float64).data, long.data
        self.memory: DeviceMemory = blocks.launch.memory
        self.params: LaneParameters = LaneParameters(blocks.launch)
        self.shared_bytes: int = blocks.launch.shared_bytes
        self.local_bytes: int = blocks.local_stride
        self._blocks = blocks

    def __getattr__(self, name: str) -> memoryview:
        """A memory as elements of a kind, made on first use."""
        space, _, kind = name.partition("_")
        if space not in ("shared", "local") or kind not in NUMPY:
            raise AttributeError(name)
        data = self._blocks.shared if space == "shared" else self._blocks.local
        elements = data.view(NUMPY[kind]).data
        setattr(self, name, elements)
        return elements

    def special(self, name: str, row: Row) -> int:
        """A special register of one thread, except those that read a clock."""
        value = self._blocks.special(name)
        return int(value.item(row[LANE]) if value.ndim else value)


class Elsewhere(Exception):
    """One of several threads needs the slow path: all of them take it together."""


def _addresses(base: int, width: int) -> Addresses:
    """The address in a register of `width` bytes; of none where that is 0."""
    return addresses_in(_ADDRESS[width](base)) if width else Addresses(base, None)


def lane_load(fibre: Fibre, base: int, width: int, offset: int, site: Site) -> list[Any]:
    """`ld` of one thread: the elements of the vector."""
    values = load_vector(fibre, _addresses(base, width), offset, site)
    _open_window(fibre, site)
    return [column(value, 1)[0] for value in values]


def lane_store(fibre: Fibre, base: int, width: int, offset: int, site: Site, *values: Any) -> None:
    """`st` of one thread."""
    dtype = np.dtype(site.dtype)
    store(
        fibre,
        _addresses(base, width),
        offset,
        site,
        *(value_of((element,), dtype) for element in values),
    )
    _open_window(fibre, site)


def _open_window(fibre: Fibre, site: Site) -> None:
    """Let later accesses take the quick path, unless each access is recorded."""
    if fibre.blocks.accesses is None:
        site.open_window()
