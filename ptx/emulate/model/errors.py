"""The errors of kernels, and of taking a kernel from its module."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from ptx.errors import PtxError
from ptx.shown_path import shown_path

# CUDA's headers call such a function, which nothing defines, where the target lacks something.
_NEEDS_NEWER = re.compile(r"supported_before_SM_(\d+)")
# How the names of CUDA's device runtime begin: of CUDA 11, and of CUDA 12 and newer.
_DEVICE_RUNTIME = ("cuda", "__cudaCDP2")


def bytes_text(number: int) -> str:
    """Return a number of bytes in words."""
    return f"{number} byte{'' if number == 1 else 's'}"


class ExecutionError(PtxError):
    """An error of the engine that a driver returns as a CUresult.

    Attributes:
        result: the name of the CUresult, without CUDA_ERROR_.
    """

    result: ClassVar[str]


class UnsupportedInstruction(ExecutionError):
    """A kernel uses an unsupported instruction; the module's other kernels still work."""

    result = "NOT_SUPPORTED"

    def __init__(self, kernel: str, opcode: str, line: int, reason: str = "") -> None:
        self.kernel = kernel
        self.opcode = opcode
        self.line = line
        why = reason or "the emulator does not execute this instruction"
        super().__init__(f"kernel {kernel}: {opcode} at PTX line {line}: {why}")


class UndefinedSymbol(ExecutionError):
    """A kernel uses a function or variable that its module only declares.

    `noun` says what `kernel` is, as other functions and variables use functions too.
    """

    result = "INVALID_PTX"

    def __init__(self, kernel: str, symbol: str, line: int, noun: str = "kernel") -> None:
        self.kernel = kernel
        self.symbol = symbol
        self.line = line
        super().__init__(
            f"{noun} {kernel}: {symbol}, which PTX line {line} uses, is not defined in this module:"
            f" {_remedy(symbol)}"
        )


def _remedy(symbol: str) -> str:
    """Return what to do about a function that a module does not define."""
    newer = _NEEDS_NEWER.search(symbol)
    if newer:
        return f"compile for compute_{newer[1]} or newer"
    if symbol.startswith(_DEVICE_RUNTIME):
        return (
            "it is of CUDA's device runtime. On a GPU, link with libcudadevrt; the emulator lacks"
            " it, so call the runtime from the host"
        )
    return (
        "compile this source and the one that defines it to LTO-IR (ptx.Target.ltoir), and join the"
        " images with ptx.link"
    )


class OutOfMemory(ExecutionError):
    """An allocation that the device's memory cannot hold."""

    result = "OUT_OF_MEMORY"

    def __init__(self, nbytes: int, free: int, total: int) -> None:
        self.nbytes = nbytes
        self.free = free
        self.total = total
        super().__init__(
            f"{nbytes} bytes asked for, but only {free} of {total} bytes of device memory are free"
            " (the largest free piece may be smaller)"
        )


class AddressSpaceExhausted(PtxError):
    """This process cannot reserve the addresses of a device's memory."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        super().__init__(
            f"cannot reserve {nbytes} bytes of addresses for an emulated device's memory: emulate"
            " fewer devices or smaller ones, or raise this process's limit (ulimit -v)"
        )


class BadFree(PtxError):
    """A free of an address that is no live allocation."""

    def __init__(self, address: int, reason: str) -> None:
        self.address = address
        super().__init__(f"cannot free {address:#x}: {reason}")


@dataclass(frozen=True, slots=True)
class Where:
    """The place of a fault: kernel, block and thread, and the lines of PTX and CUDA."""

    kernel: str
    block: tuple[int, int, int] | None
    thread: tuple[int, int, int] | None
    instruction: str
    ptx_line: int
    source_file: str | None
    source_line: int | None

    def __str__(self) -> str:
        parts = [f"kernel {self.kernel}"]
        if self.block is not None and self.thread is not None:
            parts.append(f"block {self.block}, thread {self.thread}")
        parts.append(f"{self.instruction} at PTX line {self.ptx_line}")
        if self.source_line is not None:
            parts.append(f"{self.shown_file}:{self.source_line}")
        return ", ".join(parts)

    @property
    def shown_file(self) -> str:
        """The source file, as it was named: NVRTC puts the working folder before the name."""
        return shown_path(self.source_file or "")


class EmulationFault(ExecutionError):
    """A kernel did what would make a GPU fail, or what its checkers would report."""

    result = "LAUNCH_FAILED"

    def __init__(self, message: str, where: Where) -> None:
        self.where = where
        super().__init__(f"{message}\n  in {where}")


class MemoryFault(EmulationFault):
    """A wrong access: `address`, its size and space, and the allocation nearest to it in words."""

    def __init__(
        self,
        message: str,
        where: Where,
        *,
        address: int,
        nbytes: int,
        space: str,
        nearest: str = "",
    ) -> None:
        self.address = address
        self.nbytes = nbytes
        self.space = space
        self.nearest = nearest
        super().__init__(f"{message}\n  {nearest}" if nearest else message, where)


class OutOfBounds(MemoryFault):
    """An access outside every live allocation, or outside the shared or local window."""

    result = "ILLEGAL_ADDRESS"


class UseAfterFree(OutOfBounds):
    """An access to an allocation that was freed."""


class Misaligned(MemoryFault):
    """An access whose address is no multiple of its size."""

    result = "MISALIGNED_ADDRESS"


class UninitialisedRead(MemoryFault):
    """A read of shared or local memory that nothing has written."""


class SynchronisationFault(EmulationFault):
    """A barrier or warp instruction with an invalid barrier, count or membermask."""

    result = "ILLEGAL_INSTRUCTION"


class Deadlock(EmulationFault):
    """Threads wait and nothing can wake them."""

    result = "LAUNCH_TIMEOUT"  # a GPU hangs until its watchdog ends the kernel


class BarrierDivergence(Deadlock):
    """A barrier that some threads of the block will never reach."""


class Runaway(EmulationFault):
    """A kernel ran longer than the limit that was set."""

    result = "LAUNCH_TIMEOUT"  # as for a deadlock


class EndlessLoop(Runaway):
    """Threads wait in a loop for a value that no thread will ever write."""


class Trap(EmulationFault):
    """The kernel executed `trap`, or a breakpoint without a debugger."""


class AssertionFailed(EmulationFault):
    """An `assert` that did not hold: its text, and the file, line and function where it stands."""

    result = "ASSERT"

    def __init__(
        self, message: str, where: Where, *, assertion: str, file: str, line: int, function: str
    ) -> None:
        self.assertion = assertion
        self.file = file
        self.line = line
        self.function = function
        super().__init__(message, where)


class InvalidFree(EmulationFault):
    """A `free` of an address that is no live allocation of device code."""

    def __init__(self, message: str, where: Where, *, address: int) -> None:
        self.address = address
        super().__init__(message, where)


class InvalidTextureHandle(EmulationFault):
    """A texture or surface instruction whose handle is no live object of that kind."""

    def __init__(self, message: str, where: Where, *, handle: int) -> None:
        self.handle = handle
        super().__init__(message, where)


class InvalidTensorMap(EmulationFault):
    """A tensor copy names no tensor map, or one that does not fit the instruction."""

    result = "ILLEGAL_INSTRUCTION"


class MisalignedCoordinate(EmulationFault):
    """A box of a tensor whose innermost coordinate is no multiple of 16 bytes."""

    result = "ILLEGAL_INSTRUCTION"


class NegativeCoordinate(EmulationFault):
    """A box that is written to a tensor and begins before it."""

    result = "ILLEGAL_INSTRUCTION"


class OutsideCluster(EmulationFault):
    """An instruction that needs clusters, in a launch without them."""

    result = "ILLEGAL_INSTRUCTION"


class TensorMemoryFault(EmulationFault):
    """Tensor memory, or the tensor cores that work on it, used against the rules of the PTX ISA."""


class UnsupportedFetch(EmulationFault):
    """An image is used in a way that CUDA leaves undefined, or whose result was never measured."""


class StackOverflow(EmulationFault):
    """Calls nest deeper than the local memory of a thread allows."""

    result = "HARDWARE_STACK_ERROR"


class InvalidCall(EmulationFault):
    """An indirect call to an address that is no function."""

    result = "INVALID_PC"


class InvalidBranch(EmulationFault):
    """An indexed branch whose index is beyond its targets."""

    result = "INVALID_PC"


class InvalidCondition(EmulationFault):
    """A condition of a graph is set by an invalid handle."""


class LaunchError(ExecutionError):
    """A launch that cannot start: its grid, block, parameters or shared memory are wrong."""

    result = "NOT_SUPPORTED"


class ObserverExhausted(Exception):
    """An observer cannot follow the launch any further; the launch ends with its message."""
