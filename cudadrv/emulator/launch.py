"""One launch: the driver's checks of it, its parameters, and its execution.

CUDA Driver API, "Execution Control". The codes were measured with driver 580 on an H100. A launch
that passed the checks runs under the locks of its devices; its fault becomes a CUresult.
"""

from __future__ import annotations

import ctypes
import math
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from ptx.emulate import EmulationFault, ExecutionError, Limits, OutOfBounds
from ptx.emulate.model.geometry import GridCall
from ptx.isa import PtxSyntaxError

from ..driver._api import CUdevice_attribute, CUresult
from .call_error import CallError, Failure, execution_error, invalid_handle, invalid_value
from .call_site import shown_call_site, user_call_site
from .caller_memory import Range, ReadRanges, UnreadableError, copied_ranges, read_ranges
from .modules import NO_CLUSTER, KernelFunction, Shape, registers_of, resident_blocks

if TYPE_CHECKING:
    from ptx.emulate import LaunchOrder
    from ptx.emulate.count.counts import Counts, Line
    from ptx.emulate.count.launch_counts import LaunchCounts
    from ptx.emulate.exec.order.ordered_launch import Turns
    from ptx.emulate.memory.mapped_memory import PeerMemory

    from .counters import CountedLaunch
    from .device_state import DeviceState


_NON_PORTABLE_CLUSTER: Final = 16
# Launch attributes that older bindings do not name.
CLUSTER_SIZE_MODE: Final = 17  # CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE
SHARED_MEMORY_MODE: Final = 18  # CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE
_REQUIRE_PORTABLE, _ALLOW_NON_PORTABLE = 1, 2  # of both
_OVERSIZED: Final = (3, 4)
_MAX_OVERSIZED: Final = 150  # CU_DEVICE_ATTRIBUTE_MAX_OVERSIZED_SHARED_MEMORY_PER_BLOCK
_APPROVED_SHAPES: Final = 64
_WORD: Final = 8  # bytes of an address
_MAX_SHARED: Final = CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK
_EXTRA_END, _EXTRA_POINTER, _EXTRA_SIZE = 0, 1, 2
_T = TypeVar("_T")


class KernelCall(NamedTuple):
    """A kernel with the shape of its launch and its parameters."""

    function: KernelFunction
    shape: Shape
    parameters: bytes

    @property
    def device(self) -> DeviceState:
        """The device that it runs on."""
        return self.function.module.context.device

    @property
    def grid_call(self) -> GridCall:
        """The same for the kernel's code."""
        shape = self.shape
        return GridCall(
            shape.grid,
            shape.block,
            self.parameters,
            shape.shared_bytes,
            shape.cooperative,
            self.function.cluster_of(shape),
        )


class ShownParameters:
    """The parameters of a kernel at stable addresses, as `kernelParams` of a launch.

    Attributes:
        launch: the launch of the parameters.
        pointers: a pointer to each parameter.
    """

    def __init__(self, launch: KernelCall) -> None:
        self.launch: KernelCall = launch
        self._block = ctypes.create_string_buffer(launch.parameters, len(launch.parameters) + 1)
        start = ctypes.addressof(self._block)
        addresses = [start + param.offset for param in launch.function.signature.params]
        self.pointers: ctypes.Array[ctypes.c_size_t] = (ctypes.c_size_t * (len(addresses) + 1))(
            *addresses
        )


def check(
    function: KernelFunction, shape: Shape, device: DeviceState, *, is_node: bool = False
) -> None:
    """Reject a launch that the driver would reject.

    A graph's node gets its cluster after it was added, so that it may have none yet.

    Raises:
        CallError: with the driver's code and the reason.
    """
    if not is_node and shape in function.approved:
        return
    _check_extents(function, shape, device)
    _check_shared(function, shape, device)
    if not is_node:
        _check_named_cluster(function, shape)
    _check_cluster(function, shape, device)
    if shape.cooperative:
        _check_cooperative(function, shape, device)
    if is_node:
        return
    if len(function.approved) >= _APPROVED_SHAPES:
        function.approved.clear()
    function.approved.add(shape)


def _check_extents(function: KernelFunction, shape: Shape, device: DeviceState) -> None:
    for noun, extents, name in (
        ("grid", function.blocks_of(shape.grid), "MAX_GRID_DIM"),
        ("block", shape.block, "MAX_BLOCK_DIM"),
    ):
        limits = tuple(
            device.attributes[int(getattr(CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}_{a}"))]
            for a in "XYZ"
        )
        if any(not 1 <= extent <= limit for extent, limit in zip(extents, limits, strict=True)):
            raise invalid_value(
                f"kernel {function.shown}: the {noun} {extents} is not within 1 and {limits}"
            )
    threads = shape.block[0] * shape.block[1] * shape.block[2]
    limit = min(
        device.model.max_threads_per_block,
        function.signature.max_threads or device.model.max_threads_per_block,
    )
    if threads > limit:
        raise invalid_value(
            f"kernel {function.shown}: a block of {threads} threads is above the limit of {limit}"
        )
    required = function.signature.required_block
    if required is not None and shape.block != required:
        raise invalid_value(
            f"kernel {function.shown} requires blocks of {required}, not {shape.block}"
        )


def _check_shared(function: KernelFunction, shape: Shape, device: DeviceState) -> None:
    mode = shape.mode(SHARED_MEMORY_MODE)
    if mode:
        _check_shared_of_mode(function, shape, device, mode)
    elif shape.shared_bytes > function.max_dynamic:
        raise invalid_value(
            f"kernel {function.shown}: {shape.shared_bytes} bytes of dynamic shared memory are "
            f"above the limit of {function.max_dynamic}; raise it with "
            "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"
        )


def _check_shared_of_mode(
    function: KernelFunction, shape: Shape, device: DeviceState, mode: int
) -> None:
    """Check dynamic shared memory by a mode, in place of the function's limit.

    Source: CUsharedMemoryMode in the CUDA Driver API manual.
    """
    limits = [device.attributes[int(_MAX_SHARED)]]
    if mode != _REQUIRE_PORTABLE:
        limits.append(device.model.max_shared_per_block)
    if mode in _OVERSIZED:
        limits.append(device.attributes.get(_MAX_OVERSIZED, 0))
    limit = max(limits) - function.signature.shared_bytes
    if shape.shared_bytes > limit:
        raise invalid_value(
            f"kernel {function.shown}: {shape.shared_bytes} bytes of dynamic shared memory are "
            f"above the limit of {limit} by shared memory mode {mode}"
        )


def _check_named_cluster(function: KernelFunction, shape: Shape) -> None:
    """Reject a launch that names no cluster, of a kernel with `.explicitcluster`.

    A node of a graph has clusters of one block then. Measured on an H200 with driver 580.

    Raises:
        CallError: CUDA_ERROR_INVALID_CLUSTER_SIZE.
    """
    if "explicitcluster" in function.directives and function.cluster_of(shape) is None:
        raise CallError(
            CUresult.CUDA_ERROR_INVALID_CLUSTER_SIZE,
            f"kernel {function.shown} is .explicitcluster: a launch names its cluster",
        )


def _check_cluster(function: KernelFunction, shape: Shape, device: DeviceState) -> None:
    cluster = function.cluster_of(shape)
    if cluster is None:
        return
    portable = device.profile.architecture.max_cluster
    if not portable and cluster != NO_CLUSTER:
        raise CallError(
            CUresult.CUDA_ERROR_NOT_SUPPORTED,
            f"devices of compute capability {device.profile.compute_capability} have no clusters",
        )
    max_blocks = largest_cluster(function, shape, device)
    max_blocks = max(1, min((max_blocks, *function.directives.get("maxclusterrank", ()))))
    blocks = cluster[0] * cluster[1] * cluster[2]
    grid = function.blocks_of(shape.grid)
    if (
        not 1 <= blocks <= max_blocks
        or (any(function.cluster) and cluster != function.cluster)
        or any(extent % part for extent, part in zip(grid, cluster, strict=True))
    ):
        raise CallError(
            CUresult.CUDA_ERROR_INVALID_CLUSTER_SIZE,
            f"kernel {function.shown}: clusters of {cluster} do not divide the grid {grid} "
            f"or are not of 1 to {max_blocks} blocks"
            + (f"; the kernel requires {function.cluster}" if any(function.cluster) else ""),
        )


def clusters_fit(function: KernelFunction, shape: Shape, device: DeviceState) -> bool:
    """Check the clusters of a query, and return whether a multiprocessor has room for a block.

    Measured on an H200 with driver 580, in this order.

    Raises:
        CallError: CUDA_ERROR_INVALID_CLUSTER_SIZE; or CUDA_ERROR_INVALID_VALUE, as the grid or the
            block is empty.
    """
    if shape.cluster is not None and 0 in shape.cluster:
        raise CallError(
            CUresult.CUDA_ERROR_INVALID_CLUSTER_SIZE, f"clusters of {shape.cluster} are empty"
        )
    if 0 in shape.grid:
        raise invalid_value(f"the grid {shape.grid} is empty")
    if device.profile.architecture.max_cluster:
        _check_named_cluster(function, shape)
        _check_cluster(function, shape, device)
    if 0 in shape.block:
        raise invalid_value(f"the block {shape.block} is empty")
    try:
        _check_extents(function, shape, device)
        _check_shared(function, shape, device)
    except CallError:
        return False
    return True


def largest_cluster(function: KernelFunction, shape: Shape, device: DeviceState) -> int:
    """Return the most blocks of a cluster, 0 on a device without clusters."""
    portable = device.profile.architecture.max_cluster
    mode = shape.mode(CLUSTER_SIZE_MODE)
    is_large = mode == _ALLOW_NON_PORTABLE if mode else function.non_portable
    return _NON_PORTABLE_CLUSTER if is_large and portable else portable


def _check_cooperative(function: KernelFunction, shape: Shape, device: DeviceState) -> None:
    threads = shape.block[0] * shape.block[1] * shape.block[2]
    resident = function.module.context.sm_count * resident_blocks(
        function, device, threads, shape.shared_bytes
    )
    blocks = math.prod(function.blocks_of(shape.grid))
    if blocks > resident:
        raise CallError(
            CUresult.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
            f"kernel {function.shown}: a cooperative grid of {blocks} blocks, of which only "
            f"{resident} fit on the device at once",
        )


def read_parameters(
    function: KernelFunction, kernel_params: int, extra: int, *, is_checked: bool
) -> bytes:
    """Copy the parameter block from the caller's memory.

    `kernel_params` is the address of an array of pointers, one per parameter. `extra` is the
    address of a list with one packed buffer (CU_LAUNCH_PARAM_BUFFER_POINTER). `is_checked` is
    whether an address may be wrong.

    Raises:
        CallError: CUDA_ERROR_INVALID_VALUE, if parameters are missing or cannot be read.
    """
    signature = function.signature
    params = signature.params
    if kernel_params and extra:
        raise invalid_value(f"kernel {function.shown} is given both kernelParams and `extra`")
    if not params:
        return b""
    read = read_ranges if is_checked else copied_ranges
    if extra:
        return _packed(function, extra, read)
    if not kernel_params:
        raise invalid_value(
            f"kernel {function.shown} takes {len(params)} parameters, none were given"
        )
    words = [(kernel_params + _WORD * index, _WORD) for index in range(len(params))]
    pointers = struct.unpack(f"{len(params)}Q", _read_each(function, words, read))
    for param, pointer in zip(params, pointers, strict=True):
        if not pointer:
            raise invalid_value(
                f"kernel {function.shown}: the pointer to parameter {param.name} is null"
            )
    ranges = [(pointer, param.nbytes) for param, pointer in zip(params, pointers, strict=True)]
    values, block, start = _read_each(function, ranges, read), bytearray(signature.nbytes), 0
    for param in params:
        block[param.offset : param.offset + param.nbytes] = values[start : start + param.nbytes]
        start += param.nbytes
    return bytes(block)


def _read_each(function: KernelFunction, ranges: Sequence[Range], read: ReadRanges) -> bytes:
    """Return the bytes of one range for each parameter."""
    try:
        return read(ranges)
    except UnreadableError as error:
        params = function.signature.params
        raise invalid_value(
            f"kernel {function.shown} takes {len(params)} parameters; the pointer to parameter "
            f"{error.index} ({params[error.index].name}) cannot be read"
        ) from None


def _packed(function: KernelFunction, extra: int, read: ReadRanges) -> bytes:
    """Return the buffer in a list of `extra`."""
    pointer = size = 0
    try:
        while (key := _word_at(extra, read)) != _EXTRA_END:
            value = _word_at(extra + _WORD, read)
            if key == _EXTRA_POINTER:
                pointer = value
            elif key == _EXTRA_SIZE:
                size = _word_at(value, read)
            else:
                raise invalid_value(f"`extra` has an unknown key {key}")
            extra += 2 * _WORD
        if pointer and size == function.signature.nbytes:
            return read([(pointer, size)])
    except UnreadableError:
        raise invalid_value(
            f"kernel {function.shown}: an address in `extra` cannot be read"
        ) from None
    raise CallError(
        CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,  # as the driver does for a wrong size
        f"kernel {function.shown} takes {function.signature.nbytes} bytes of parameters, "
        f"`extra` gives {size if pointer else 0}",
    )


def _word_at(address: int, read: ReadRanges) -> int:
    (word,) = struct.unpack("Q", read([(address, _WORD)]))
    return int(word)


def execute(call: KernelCall, limits: Limits) -> None:
    """Run a launch to its end; a fault breaks the device.

    With counters, the launch is added to the device's counters.

    Raises:
        CallError: with the code of the kernel's error.
    """
    locks, memories = _reached(call)
    device = call.device
    _note_kernel(device)

    def run() -> None:
        _part(device, memories, lambda: _launch(call, limits))

    _holding(locks, run)


def execute_in_turns(call: KernelCall, limits: Limits, order: LaunchOrder) -> Turns:
    """Same in an order, turn by turn, so that others may run between them.

    No lock is held between turns. A counted launch has one turn, and no order.
    """
    locks, memories = _reached(call)
    device = call.device
    _note_kernel(device)
    turns: Turns | None = None
    waits: bool | None = None

    def begin_now() -> None:
        nonlocal turns
        turns = _part(device, memories, lambda: _begin(call, limits, order))

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
        if waits is not None and turns is not None:  # the launch is abandoned
            _holding(locks, turns.close)


def _note_kernel(device: DeviceState) -> None:
    """Call the device's `note_kernel`, once."""
    if device.note_kernel is not None:
        note, device.note_kernel = device.note_kernel, None
        note()


def _begin(call: KernelCall, limits: Limits, order: LaunchOrder) -> Turns | None:
    """Return the turns of a launch; None if it is counted, and so ran at once."""
    if call.device.counters:
        _launch(call, limits)
        return None
    return call.function.kernel().launch_in_turns(call.grid_call, limits=limits, order=order)


def _reached(call: KernelCall) -> tuple[list[threading.RLock], tuple[PeerMemory, ...]]:
    """Return the locks of the devices that a launch accesses, and the other ones' memories.

    Raises:
        CallError: the kernel has been destroyed.
    """
    function, context = call.function, call.function.module.context
    if context.destroyed:
        raise CallError(
            CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED,
            f"the context of kernel {function.shown} is destroyed",
        )
    if function.closed:
        raise invalid_handle(f"invalid resource handle: the module of {function.shown} is unloaded")
    peers = context.peer_memories()
    devices = sorted((context.device, *(peer for peer, _ in peers)), key=attrgetter("ordinal"))
    return [reached.lock for reached in devices], tuple(memory for _, memory in peers)


def _holding(locks: Sequence[threading.RLock], work: Callable[[], None]) -> None:
    """Run work under all of these locks.

    Each has a `with` of its own, so that no interrupt and no depth of calls leaves one locked.
    """
    if not locks:
        work()
        return
    with locks[0]:
        _holding(locks[1:], work)


def _part(device: DeviceState, memories: tuple[PeerMemory, ...], work: Callable[[], _T]) -> _T:
    """Run a part of a launch; the locks are held.

    Raises:
        CallError: with the code of the kernel's error, or of the fault that broke the device
            before.
    """
    device.reject_if_broken()
    model, former = device.model, device.model.peers
    try:
        model.peers = memories
        return work()
    except EmulationFault as error:
        raise _spoil(device, error) from None
    except ExecutionError as error:
        raise execution_error(error) from None
    except PtxSyntaxError as error:  # of a function called by its address
        raise CallError(CUresult.CUDA_ERROR_INVALID_PTX, str(error), error) from None
    finally:
        model.peers = former  # a finalizer in the middle of another launch may have other peers


def _launch(call: KernelCall, limits: Limits) -> None:
    kernel, device = call.function.kernel(), call.device
    counts: LaunchCounts | None = None
    if device.counters:
        from ptx.emulate.count.launch_counts import LaunchCounts  # only if launches are counted

        counts = LaunchCounts()

    def record(*, is_over: bool) -> None:
        if counts is not None:
            launch = _counted(call, counts.lines())
            for counters in device.counters:
                (counters.launches if is_over else counters.failed).append(launch)

    try:
        kernel.launch(call.grid_call, limits=limits, counts=counts)
    except EmulationFault:
        record(is_over=False)
        raise
    record(is_over=True)


def _counted(call: KernelCall, lines: Mapping[Line, Counts]) -> CountedLaunch:
    """Return the record of a launch that ran."""
    from ptx.emulate.count.counts import Counts  # only if launches are counted

    from .counters import CountedLaunch, Occupancy

    function, shape, device = call.function, call.shape, call.device
    x, y, z = shape.block
    warps = -(-(x * y * z) // device.model.warp_size)
    blocks = resident_blocks(function, device, x * y * z, shape.shared_bytes)
    return CountedLaunch(
        function.shown,
        device.ordinal,
        function.blocks_of(shape.grid),
        shape.block,
        shape.shared_bytes,
        Occupancy(
            blocks,
            blocks * warps,
            device.model.threads_per_sm // device.model.warp_size,
            registers_of(function, device),
        ),
        sum(lines.values(), Counts()),
        lines,
        function.module.program.module.text,
        function.name,
    )


def _spoil(device: DeviceState, error: EmulationFault) -> CallError:
    call_error = execution_error(error, _of_another_device(error, device))
    if device.keeps_faults:
        launched = f"\n  which was launched at {shown_call_site(user_call_site())}"
        text = f"{call_error.text}{launched}"
        device.fault = Failure("cuLaunchKernel", call_error.code, text, error)
    device.note_fault(error)
    return call_error


def _of_another_device(fault: EmulationFault, device: DeviceState) -> str:
    """Return advice for an access to another device's memory without permission."""
    if isinstance(fault, OutOfBounds):
        for other in device.others:
            allocation = other.memory.find(fault.address) if other.holds(fault.address) else None
            if allocation is not None:
                return (
                    f"\n  the address is in memory of device {other.ordinal}, {allocation}: its "
                    f"kernels alone reach it, unless Context.enable_peer_access opens it to device "
                    f"{device.ordinal}"
                )
    return ""
