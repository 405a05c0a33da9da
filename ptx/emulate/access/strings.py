"""Strings in memory that device code passes by address."""

from __future__ import annotations

import numpy as np

from ptx.emulate.access.memory_access import load
from ptx.emulate.memory.accessing_threads import AccessingThreads
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, addresses_in, same_address
from ptx.isa.model import Instruction

_STEP = 64
_LONGEST = 1 << 20


def read_string(
    threads: AccessingThreads, position: int, address: int, instruction: Instruction
) -> str:
    """The characters at a thread's generic address, one for each byte, up to a zero.

    Raises:
        MemoryFault: it runs out of the memory that it lies in.
    """
    thread = threads.subset(np.array([position], dtype=np.intp), ())
    site = Site(instruction, "generic", "u8", 1, writes=False)
    memory = threads.blocks.launch.memory
    allocation = memory.find(address)
    if allocation is not None:
        start = address - memory.base
        data = memory.data[start : allocation.end - memory.base]
        for first in range(0, len(data), _STEP):
            zeros = np.flatnonzero(data[first : first + _STEP] == 0)
            if len(zeros):
                return data[: first + int(zeros[0])].tobytes().decode("latin-1")
        address = allocation.end  # no end within it: the read past it is the fault
    found: list[int] = []
    while len(found) < _LONGEST:
        byte = int(np.ravel(load(thread, _at(address + len(found)), 0, site))[0])
        if not byte:
            break
        found.append(byte)
    return bytes(found).decode("latin-1")


def _at(address: int) -> Addresses:
    return same_address(address) if address < 1 << 63 else addresses_in(np.uint64(address))
