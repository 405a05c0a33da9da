"""Memory that kernels allocate: the system calls `malloc` and `free`.

CUDA C++ Programming Guide, "Dynamic Global Memory Allocation and Operations".
"""

from __future__ import annotations

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import external
from ptx.emulate.model.errors import BadFree, InvalidFree
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.memory.late_store import publish
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction, Symbol


def allocate(fibre: Fibre, sizes: Value, instruction: Instruction) -> Value:
    """`malloc` for each thread in order: (n,) uint64 addresses, 0 where the heap is full."""
    launch = fibre.blocks.launch
    heap = launch.device.heap
    location = instruction.location
    place = f"PTX line {instruction.line}"
    if location is not None:
        place = f"{launch.code.files.get(location.file)}:{location.line}"
    origin = f"malloc in kernel {launch.code.kernel}, {place}"
    found = [heap.allocate(int(nbytes), origin) for nbytes in fibre.spread(sizes)]
    return np.array(found, dtype=np.uint64)


def free(fibre: Fibre, addresses: Value, instruction: Instruction) -> None:
    """`free` for each thread in order; a null pointer is nothing to free.

    Raises:
        InvalidFree: an address is no live allocation of device code.
    """
    heap = fibre.device.heap
    for position, address in enumerate(fibre.spread(addresses)):
        try:
            if address:
                heap.free(int(address))
        except BadFree as error:
            where = fibre.where(position, instruction)
            raise InvalidFree(str(error), where, address=int(address)) from None


def _malloc(e: Emitter, arguments: tuple[Symbol, ...], results: tuple[Symbol, ...]) -> None:
    size = e.parameter(arguments[0], "u64")
    site = e.scope.bind(e.instruction, "instruction")
    found = e.temporary(f"{e.helper(allocate)}(f, {size}, {site})")
    if results:
        e.set_parameter(results[0], "u64", found)


def _free(e: Emitter, arguments: tuple[Symbol, ...], results: tuple[Symbol, ...]) -> None:
    address = e.parameter(arguments[0], "u64")
    if e.late.stores:  # the memory may be another block's from now on
        e.line(f"{e.helper(publish)}(f)")
    e.line(f"{e.helper(free)}(f, {address}, {e.scope.bind(e.instruction, 'instruction')})")


external("malloc", 1, _malloc)
external("free", 1, _free)
