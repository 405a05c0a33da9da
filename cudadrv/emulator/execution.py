"""How a launch that passed the checks runs: under which locks, and what a fault of it becomes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeVar

from ptx.emulate.count.counts import Counts, Line
from ptx.emulate.count.launch_counts import LaunchCounts
from ptx.emulate.model.errors import (
    AssertionFailed,
    Deadlock,
    EmulationFault,
    InvalidBranch,
    InvalidCall,
    InvalidTensorMap,
    LaunchError,
    Misaligned,
    MisalignedCoordinate,
    NegativeCoordinate,
    OutOfBounds,
    OutOfMemory,
    Runaway,
    StackOverflow,
    SynchronisationFault,
    UndefinedSymbol,
    UnsupportedInstruction,
)
from ptx.emulate.threads.limits import Limits
from ptx.isa import PtxSyntaxError

from ..driver._api import CUresult
from .counters import CountedLaunch, Occupancy
from .occupancy import blocks_per_sm, registers_of
from .origin import caller
from .refusal import Failure, Refusal, invalid_handle
from .shape import Shape

if TYPE_CHECKING:
    from ptx.emulate.exec.order.ordered_launch import Turns
    from ptx.emulate.memory.peer_memory import PeerMemory
    from ptx.emulate.model.order import LaunchOrder

    from .emulated_device import DeviceState
    from .modules import Function

_T = TypeVar("_T")
_CODES: Final[tuple[tuple[type[EmulationFault], CUresult], ...]] = (
    (Misaligned, CUresult.CUDA_ERROR_MISALIGNED_ADDRESS),
    (OutOfBounds, CUresult.CUDA_ERROR_ILLEGAL_ADDRESS),
    # A GPU hangs in these until its watchdog ends the kernel.
    (Deadlock, CUresult.CUDA_ERROR_LAUNCH_TIMEOUT),
    (Runaway, CUresult.CUDA_ERROR_LAUNCH_TIMEOUT),
    (StackOverflow, CUresult.CUDA_ERROR_HARDWARE_STACK_ERROR),
    (InvalidCall, CUresult.CUDA_ERROR_INVALID_PC),
    (InvalidBranch, CUresult.CUDA_ERROR_INVALID_PC),
    (AssertionFailed, CUresult.CUDA_ERROR_ASSERT),
    (SynchronisationFault, CUresult.CUDA_ERROR_ILLEGAL_INSTRUCTION),
    (MisalignedCoordinate, CUresult.CUDA_ERROR_ILLEGAL_INSTRUCTION),
    (NegativeCoordinate, CUresult.CUDA_ERROR_ILLEGAL_INSTRUCTION),
    (InvalidTensorMap, CUresult.CUDA_ERROR_ILLEGAL_INSTRUCTION),
    (EmulationFault, CUresult.CUDA_ERROR_LAUNCH_FAILED),
)


def execute(
    function: Function, shape: Shape, parameters: bytes, device: DeviceState, limits: Limits
) -> None:
    """Run a launch to its end; a fault spoils the device.

    Where the device counts, what the launch executed is added to its counters.

    Raises:
        Refusal: with the code of what the kernel did wrong.
    """
    locks, memories = _reached(function, device)

    def run() -> None:
        _part(device, memories, lambda: _launch(function, shape, parameters, device, limits))

    _holding(locks, run)


def execute_in_turns(
    function: Function,
    shape: Shape,
    parameters: bytes,
    device: DeviceState,
    limits: Limits,
    order: LaunchOrder,
) -> Turns:
    """The same in an order, turn by turn, so that others may run between them.

    No lock is held between them. A launch that counts has one turn, and no order.
    """
    locks, memories = _reached(function, device)
    turns: Turns | None = None
    waits: bool | None = None

    def begin_now() -> None:
        nonlocal turns
        turns = _part(
            device, memories, lambda: _begin(function, shape, parameters, device, limits, order)
        )

    def turn() -> None:
        nonlocal waits
        waits = None if turns is None else _part(device, memories, lambda: next(turns, None))

    _holding(locks, begin_now)
    _holding(locks, turn)
    try:
        while waits is not None:
            yield waits
            _holding(locks, turn)
    finally:
        if waits is not None and turns is not None:  # it is given up
            _holding(locks, turns.close)


def _begin(
    function: Function,
    shape: Shape,
    parameters: bytes,
    device: DeviceState,
    limits: Limits,
    order: LaunchOrder,
) -> Turns | None:
    """The turns of a launch; None where it counts, and so ran at once."""
    if device.counters:
        _launch(function, shape, parameters, device, limits)
        return None
    return function.kernel().launch_in_turns(
        shape.grid,
        shape.block,
        parameters,
        shared_bytes=shape.shared_bytes,
        cooperative=shape.cooperative,
        cluster=shape.cluster,
        limits=limits,
        order=order,
    )


def _reached(
    function: Function, device: DeviceState
) -> tuple[list[threading.RLock], tuple[PeerMemory, ...]]:
    """The locks of the devices that a launch reaches, and the memories of the other ones.

    Raises:
        Refusal: the kernel is gone by now.
    """
    context = function.module.context
    if context.destroyed:
        raise Refusal(
            CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED,
            f"the context of kernel {function.shown} is destroyed",
        )
    if function.closed:
        raise invalid_handle(f"invalid resource handle: the module of {function.shown} is unloaded")
    peers = context.peer_memories()
    devices = sorted((device, *(peer for peer, _ in peers)), key=attrgetter("ordinal"))
    return [each.lock for each in devices], tuple(memory for _, memory in peers)


def _holding(locks: Sequence[threading.RLock], work: Callable[[], None]) -> None:
    """Work under all of these locks. Each has a `with` of its own, so that no interrupt and no
    depth of calls leaves one behind."""
    if not locks:
        work()
        return
    with locks[0]:
        _holding(locks[1:], work)


def _part(device: DeviceState, memories: tuple[PeerMemory, ...], work: Callable[[], _T]) -> _T:
    """Do a part of a launch; the locks are held.

    Raises:
        Refusal: with the code of what the kernel did wrong, or of what broke the device before.
    """
    fault = device.fault
    if fault is not None:
        raise Refusal(fault.code, fault.text, fault.cause)
    model, former = device.model, device.model.peers
    try:
        model.peers = memories
        return device.run_alone(work)
    except EmulationFault as error:
        raise _spoil(device, error) from None
    except (LaunchError, UnsupportedInstruction) as error:
        raise Refusal(CUresult.CUDA_ERROR_NOT_SUPPORTED, str(error), error) from None
    except (PtxSyntaxError, UndefinedSymbol) as error:  # of a function called by its address
        raise Refusal(CUresult.CUDA_ERROR_INVALID_PTX, str(error), error) from None
    except OutOfMemory as error:
        raise Refusal(CUresult.CUDA_ERROR_OUT_OF_MEMORY, str(error), error) from None
    finally:
        model.peers = former  # what a finalizer runs in the middle of another may reach others


def _launch(
    function: Function, shape: Shape, parameters: bytes, device: DeviceState, limits: Limits
) -> None:
    kernel = function.kernel()
    counters = device.counters
    counts = LaunchCounts() if counters else None
    kernel.launch(
        shape.grid,
        shape.block,
        parameters,
        shared_bytes=shape.shared_bytes,
        cooperative=shape.cooperative,
        cluster=shape.cluster,
        limits=limits,
        counts=counts,
    )
    if counts is not None:
        launch = _counted(function, shape, device, kernel.lines_of(counts))
        for counting in counters:
            counting.launches.append(launch)


def _counted(
    function: Function, shape: Shape, device: DeviceState, lines: Mapping[Line, Counts]
) -> CountedLaunch:
    """The record of a launch that ran."""
    x, y, z = shape.block
    warps = -(-(x * y * z) // device.model.warp_size)
    registers = registers_of(function, device)
    shared = function.signature.shared_bytes + shape.shared_bytes
    blocks = blocks_per_sm(device.attributes, x * y * z, registers, shared)
    return CountedLaunch(
        function.name,
        device.ordinal,
        shape.grid,
        shape.block,
        shape.shared_bytes,
        Occupancy(
            blocks, blocks * warps, device.model.threads_per_sm // device.model.warp_size, registers
        ),
        sum(lines.values(), Counts()),
        lines,
    )


def _spoil(device: DeviceState, error: EmulationFault) -> Refusal:
    code = next(code for kind, code in _CODES if isinstance(error, kind))
    text = f"{error}{_of_another_device(error, device)}"
    told_later = f"{text}\n  which was launched at {caller() or 'an unknown place'}"
    refusal = Refusal(code, text, error)
    device.fault = Failure("cuLaunchKernel", code, told_later, error)
    device.note_fault(error)
    return refusal


def _of_another_device(fault: EmulationFault, device: DeviceState) -> str:
    """What to do about an access to memory of a device that the kernel has no access to."""
    if isinstance(fault, OutOfBounds):
        for other in device.others:
            found = other.memory.find(fault.address) if other.holds(fault.address) else None
            if found is not None:
                return (
                    f"\n  the address is in memory of device {other.ordinal}, {found}: its kernels "
                    f"alone reach it, unless Context.enable_peer_access opens it to device "
                    f"{device.ordinal}"
                )
    return ""
