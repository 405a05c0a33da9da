"""Calls of functions: the caller's saved state, and returns to it. PTX ISA, "call", "ret".

Each function has its parameters, results and local variables in a frame of the thread's local
memory. The frames lie one after another.
"""

from __future__ import annotations

import numpy as np

from ptx.emulate.model.errors import InvalidCall
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.threads import OpenCall, Places, Registers
from ptx.emulate.threads.fibre import GONE, Fibre
from ptx.isa.model import Instruction


def call(
    fibre: Fibre,
    function: int,
    return_block: int,
    frame_bytes: int,
    arguments: Places,
    results: Places,
) -> int:
    """`call`: the first block of a function, with a frame of its own after this one's.

    `arguments` and `results` are `.param` variables of the caller.
    """
    blocks = fibre.blocks
    scheduler = fibre.scheduler
    code = blocks.code
    called = code.functions[function]
    base = fibre.stack_pointer + frame_bytes
    scheduler.check_stack(fibre, base + called.frame_bytes)
    for (source, nbytes), (target, parameter_bytes) in zip(arguments, called.params, strict=False):
        _copy(fibre, fibre.stack_pointer + source, base + target, min(nbytes, parameter_bytes))
    opened = OpenCall(
        fibre.regs, fibre.lanes, fibre.stack_pointer, code.live[return_block], function, results
    )
    fibre.calls = (*fibre.calls, opened)
    # The block of the call itself, so that threads that have returned wait for the others.
    fibre.prefix = (*fibre.prefix, return_block - 1)
    fibre.stack_pointer = base
    fibre.regs = list(called.zeros)
    fibre.lineage = None
    return called.entry


def call_address(
    fibre: Fibre,
    address: Value,
    return_block: int,
    frame_bytes: int,
    arguments: Places,
    results: Places,
    instruction: Instruction,
) -> int:
    """An indirect call; threads that call different functions become separate fibres.

    Raises:
        InvalidCall: an address is no function.
    """
    code = fibre.blocks.code
    if address.ndim == 0:
        function = code.find_function(int(address))
        if function is None:
            raise InvalidCall(
                f"a call to {int(address):#x}, which is no function of a module that is loaded",
                fibre.where(0, instruction),
            )
        return call(fibre, function, return_block, frame_bytes, arguments, results)
    addresses = np.asarray(address)
    for function_address in np.unique(addresses):
        part = fibre.subset((addresses == function_address).nonzero()[0], code.live[return_block])
        block = call_address(
            part, function_address, return_block, frame_bytes, arguments, results, instruction
        )
        fibre.scheduler.wait(part, block)
    return GONE


def leave(fibre: Fibre) -> int:
    """`ret`: back to the caller; from the kernel itself, the threads are done."""
    if not fibre.calls:
        return fibre.finish()
    opened = fibre.calls[-1]
    sources = fibre.blocks.code.functions[opened.function].results
    for (source, result_bytes), (target, nbytes) in zip(sources, opened.results, strict=False):
        _copy(
            fibre,
            fibre.stack_pointer + source,
            opened.stack_pointer + target,
            min(result_bytes, nbytes),
        )
    block = fibre.prefix[-1] + 1
    fibre.regs = registers_of(fibre, opened)
    fibre.calls = fibre.calls[:-1]
    fibre.prefix = fibre.prefix[:-1]
    fibre.stack_pointer = opened.stack_pointer
    fibre.lineage = None
    return block


def registers_of(fibre: Fibre, opened: OpenCall) -> Registers:
    """The caller's registers for the lanes that the fibre has now."""
    if opened.lanes is fibre.lanes:
        return list(opened.registers)
    lanes = fibre.lane_numbers()
    positions = lanes if opened.lanes is None else np.searchsorted(opened.lanes, lanes)
    regs = list(opened.registers)
    for number in opened.live:
        value = regs[number]
        if value.ndim:
            regs[number] = value.take(positions, mode="clip")
    return regs


def _copy(fibre: Fibre, source: int, target: int, nbytes: int) -> None:
    """Copy bytes within every thread's local memory."""
    local = fibre.blocks.local.reshape(fibre.blocks.geometry.threads, -1)
    rows = slice(None) if fibre.lanes is None else fibre.lanes
    local[rows, target : target + nbytes] = local[rows, source : source + nbytes]
    for observer in fibre.blocks.observers:
        observer.copy_local(rows, source, target, nbytes)
