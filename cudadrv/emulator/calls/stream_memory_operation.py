"""Writes and waits of streams for one word of memory.

CUDA Driver API: "Stream Memory Operations".
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ...driver._api import CUdeviceptr, CUresult, CUstream
from ..call_error import OK, CallError, invalid_value, not_supported
from ..copies import host_address_of, lock_of
from ..node_kind import NodeKind
from ..streams import Stream
from .call import DriverCalls, call, pointer_to
from .memory_fill import Rows, fill_rows

if TYPE_CHECKING:
    from ptx.emulate.exec.order.ordered_launch import Turns

_WAIT_32, _WRITE_32, _FLUSH, _WAIT_64, _WRITE_64, _BARRIER = 1, 2, 3, 4, 5, 6
_GREATER, _EQUAL, _AND, _NEITHER = 0, 1, 2, 3  # CUstreamWaitValue_flags
_FLUSH_FLAG: Final = 1 << 30  # CU_STREAM_WAIT_VALUE_FLUSH: writes are never held back here
_WRITE_FLAGS: Final = 1  # CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER
_MOST_OPERATIONS: Final = 256
_MOST_TURNS: Final = 100_000
_WIDTHS: Final = {_WAIT_32: 4, _WRITE_32: 4, _WAIT_64: 8, _WRITE_64: 8}


class MemoryOperation(NamedTuple):
    """One operation of a batch.

    Attributes:
        kind: a CUstreamBatchMemOpType.
        flags: those of a wait or a write.
    """

    kind: int
    address: int = 0
    value: int = 0
    flags: int = 0


class StreamMemoryOperationCalls(DriverCalls):
    """Writes and waits of streams."""

    @call
    def cuStreamWriteValue32(
        self, stream: CUstream, addr: CUdeviceptr, value: int, flags: int, /
    ) -> tuple[CUresult]:
        """Write 4 bytes, at a multiple of 4."""
        self._run_operations(stream, [MemoryOperation(_WRITE_32, int(addr), int(value), flags)])
        return OK

    @call
    def cuStreamWriteValue64(
        self, stream: CUstream, addr: CUdeviceptr, value: int, flags: int, /
    ) -> tuple[CUresult]:
        """Write 8 bytes, at a multiple of 8."""
        self._run_operations(stream, [MemoryOperation(_WRITE_64, int(addr), int(value), flags)])
        return OK

    @call
    def cuStreamWaitValue32(
        self, stream: CUstream, addr: CUdeviceptr, value: int, flags: int, /
    ) -> tuple[CUresult]:
        """Let a stream wait until 4 bytes compare to a value by its flags."""
        self._run_operations(stream, [MemoryOperation(_WAIT_32, int(addr), int(value), flags)])
        return OK

    @call
    def cuStreamWaitValue64(
        self, stream: CUstream, addr: CUdeviceptr, value: int, flags: int, /
    ) -> tuple[CUresult]:
        """Same for 8 bytes."""
        self._run_operations(stream, [MemoryOperation(_WAIT_64, int(addr), int(value), flags)])
        return OK

    @call
    def cuStreamBatchMemOp(
        self, stream: CUstream, count: int, param_array: Sequence[object] | None, flags: int, /
    ) -> tuple[CUresult]:
        """Run several operations in order."""
        structures = list(param_array or ())[:count]
        if flags or not 0 <= count <= _MOST_OPERATIONS or len(structures) < count:
            raise invalid_value(f"a batch of {count} operations with flags {flags:#x}")
        self._run_operations(stream, [_operation(structure) for structure in structures])
        return OK

    def _run_operations(self, handle: CUstream, operations: Sequence[MemoryOperation]) -> None:
        """Check all operations, then run or queue them."""
        stream = self._state.handles.stream(handle)
        if stream.capture is not None:
            self._state.captures.reject_if_invalid(stream.capture)
            raise not_supported("the emulator records no operations on values into graphs")
        for operation in operations:
            self._check_operation(operation)
        for operation in operations:
            width = _WIDTHS.get(operation.kind, 0)
            if operation.kind in (_WRITE_32, _WRITE_64):
                value = operation.value & (1 << 8 * width) - 1
                fill_rows(self._state, operation.address, value, width, Rows(1), stream)
            elif width:
                self._wait_for_value(operation, width, stream)

    def _check_operation(self, operation: MemoryOperation) -> None:
        width = _WIDTHS.get(operation.kind)
        if width is None:
            if operation.kind not in (_FLUSH, _BARRIER):
                raise invalid_value(f"there is no memory operation {operation.kind}")
            return
        is_write = operation.kind in (_WRITE_32, _WRITE_64)
        known_flags = _WRITE_FLAGS if is_write else _NEITHER | _FLUSH_FLAG
        if operation.flags & ~known_flags or not operation.address or operation.address % width:
            raise invalid_value(
                f"an operation on {width} bytes at {operation.address:#x} with flags "
                f"{operation.flags:#x}"
            )
        device = self._state.devices.holding(operation.address)
        with lock_of(device):
            host_address_of(self._state, device, operation.address, width, False, False)

    def _wait_for_value(self, operation: MemoryOperation, width: int, stream: Stream) -> None:
        device = self._state.devices.holding(operation.address)
        kind = ctypes.c_uint32 if width == 4 else ctypes.c_uint64

        def is_satisfied() -> bool:
            with lock_of(device):
                host_address = host_address_of(
                    self._state, device, operation.address, width, False, True
                )
                return _satisfies(kind.from_address(host_address).value, operation, 8 * width)

        def run() -> Turns | None:
            return None if is_satisfied() else _turns_until(is_satisfied, operation)

        if self._state.operations.timeline is None and not is_satisfied():
            raise _never_satisfied(operation)
        self._state.operations.submit(stream, NodeKind.WAIT, run)


def _satisfies(current: int, operation: MemoryOperation, bits: int) -> bool:
    comparison, value = operation.flags & _NEITHER, operation.value & (1 << bits) - 1
    if comparison == _GREATER:  # as a signed difference, which wraps
        return (current - value) & (1 << bits) - 1 < 1 << bits - 1
    if comparison == _EQUAL:
        return current == value
    if comparison == _AND:
        return bool(current & value)
    return (current | value) != (1 << bits) - 1


def _turns_until(is_satisfied: Callable[[], bool], operation: MemoryOperation) -> Turns:
    """Let others run until the value is there."""
    for _ in range(_MOST_TURNS):
        yield True
        if is_satisfied():
            return
    raise _never_satisfied(operation)


def _never_satisfied(operation: MemoryOperation) -> CallError:
    return not_supported(
        f"a stream waits for a value at {operation.address:#x} that no earlier work writes; the "
        'emulator waits for later work under the orders "late" and "random" only'
    )


def _operation(structure: object) -> MemoryOperation:
    """Read a CUstreamBatchMemOpParams, of which each kind has the same first fields."""
    words = (ctypes.c_uint64 * 6).from_address(pointer_to(structure))
    kind = int(words[0]) & 0xFFFFFFFF
    if kind not in _WIDTHS:
        return MemoryOperation(kind)
    return MemoryOperation(kind, int(words[1]), int(words[2]), int(words[3]) & 0xFFFFFFFF)
