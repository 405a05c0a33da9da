"""Many copies at once: `Stream.copy_batch`.

A kernel makes the small ones. CUDA Driver API, cuMemcpyBatchAsync: CUDA 12.8 and newer.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from functools import cache
from itertools import islice
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from .. import border
from ..driver._api import (
    CUDA_MEMCPY3D_BATCH_OP,
    CUdeviceptr,
    CUmemcpyAttributes,
    CUmemcpySrcAccessOrder,
)
from ..driver.deferred_release import run_deferred
from ..driver.device import needs_version
from ..driver.driver_selection import failure
from ..driver.stream import BaseStream
from ..driver.stream_handle import StreamHandle
from ..errors import CopyError, StreamCaptureUnsupportedError, WrongDeviceError
from .array import DeviceArray, StridedArray
from .buffer import DeviceBuffer
from .copy import (
    as_array,
    check_alike,
    do_overlap,
    open_pools,
    require_apart,
    watched_copies,
)
from .copy_kernel import COPY_KERNEL, copy_kernel
from .host_copy import (
    ArrayOrBuffer,
    HostArray,
    host_address,
    is_reachable,
    opened,
    ready,
    require_plain,
)
from .managed import mem_location, on_device
from .order import AnyMemory, order_access
from .strided_copy import box_operations, side_of

CopySide: TypeAlias = ArrayOrBuffer | HostArray
SourceOrder: TypeAlias = Literal["stream", "call", "any"]

_ORDERS: Final = {
    "stream": CUmemcpySrcAccessOrder.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
    "call": CUmemcpySrcAccessOrder.CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL,
    "any": CUmemcpySrcAccessOrder.CU_MEMCPY_SRC_ACCESS_ORDER_ANY,
}
_SIDES: Final = (DeviceArray, DeviceBuffer, np.ndarray)
_MOST_BOXES: Final = 1024
"""The most copies of one pair; a kernel is faster from far fewer on."""

# The driver takes 5 microseconds for each copy of a batch (H100, driver 580), and so does the
# launch of a kernel that makes many small ones.
_FEWEST_BY_KERNEL: Final = 8
_MOST_BYTES_BY_KERNEL: Final = 64 << 10
# Each block makes a copy, whose addresses and size are in the parameter: 4,096 bytes at most.
_MOST_BLOCKS: Final = 160
_PARAMETER_BYTES: Final = 24 * _MOST_BLOCKS
_WIDTHS: Final = {16: "v4.b32", 8: "v2.b32", 4: "b32", 2: "b16", 1: "u8"}
_PTX: Final = """
.version 6.0
.target sm_50
.address_size 64

.visible .entry {name}(.param .align 8 .b8 copies[{nbytes}])
{{
    .reg .pred %done;
    .reg .b16 %h0;
    .reg .b32 %block, %thread, %threads, %w<4>;
    .reg .b64 %copy, %to, %of, %size, %at, %step, %target, %source;

    mov.b64 %copy, copies;
    mov.u32 %block, %ctaid.x;
    mad.wide.u32 %copy, %block, 24, %copy;
    ld.param.u64 %to, [%copy];
    ld.param.u64 %of, [%copy+8];
    ld.param.u64 %size, [%copy+16];
    mov.u32 %thread, %tid.x;
    mul.wide.u32 %at, %thread, {width};
    mov.u32 %threads, %ntid.x;
    mul.wide.u32 %step, %threads, {width};
NEXT:
    setp.ge.u64 %done, %at, %size;
    @%done bra END;
    add.s64 %source, %of, %at;
    add.s64 %target, %to, %at;
    ld.global.{kind} {registers}, [%source];
    st.global.{kind} [%target], {registers};
    add.s64 %at, %at, %step;
    bra NEXT;
END:
    ret;
}}
"""


class _Batch(NamedTuple):
    """The copies of a batch, as the driver takes them.

    Attributes:
        most_small: the most bytes of a copy for the kernel; 0 if it may not be used.
        small: target, source and size of each copy for the kernel.
        targets: where each other copy writes.
        sources: where each other copy reads.
        sizes: the bytes of each other copy.
        memory: the handles of the device memory, held until the copies are queued.
        read: the host arrays that are read.
        written: the host arrays that are written.
        copied: the device memory that they are copied from.
        boxes: the copies of strided arrays.
    """

    most_small: int
    small: list[int]
    targets: list[CUdeviceptr]
    sources: list[CUdeviceptr]
    sizes: list[int]
    memory: list[AnyMemory]
    read: list[HostArray]
    written: list[HostArray]
    copied: list[ArrayOrBuffer]
    boxes: list[CUDA_MEMCPY3D_BATCH_OP]

    def add_to_driver(self, copies: list[int]) -> None:
        """Add copies, each a target, a source and a size, to those that the driver makes."""
        self.targets.extend(map(CUdeviceptr, copies[0::3]))
        self.sources.extend(map(CUdeviceptr, copies[1::3]))
        self.sizes.extend(copies[2::3])


def copy_batch(
    stream: BaseStream,
    pairs: Iterable[tuple[CopySide, CopySide]],
    *,
    source_order: SourceOrder = "stream",
    source_location: int | str | None = None,
    target_location: int | str | None = None,
    wait: bool = True,
) -> None:
    """Implement `Stream.copy_batch`."""
    attributes = _attributes(source_order, source_location, target_location)
    queue = opened(stream._handle)
    if queue.capture is not None:
        raise StreamCaptureUnsupportedError(
            "Stream.copy_batch: a graph records no batch of copies\n"
            "  use Stream.copy for each pair in a capture",
            explained=True,
        )
    # The kernel reads in the order of the stream. The driver alone knows the locations.
    by_kernel = source_order != "call" and source_location is target_location is None
    batch = _batch_of(stream, queue, pairs, _MOST_BYTES_BY_KERNEL if by_kernel else 0)
    if len(batch.small) >= 3 * _FEWEST_BY_KERNEL:
        _copy_by_kernel(stream, queue, batch.small)
    else:
        batch.add_to_driver(batch.small)
    if batch.boxes:
        _copy_boxes(stream, queue, batch.boxes, attributes)
    if batch.sizes:
        # The driver may still read or write ordinary host memory after its call returns.
        host_arrays = [*batch.written, *(() if source_order == "call" else batch.read)]
        _copy_by_driver(stream, queue, batch, attributes, host_arrays, wait=wait)


def _copy_by_driver(
    stream: BaseStream,
    queue: StreamHandle,
    batch: _Batch,
    attributes: CUmemcpyAttributes,
    host_arrays: list[HostArray],
    *,
    wait: bool,
) -> None:
    """Copy by one call of the driver; wait for ordinary host arrays, and pinned ones by `wait`."""
    count = len(batch.sizes)
    waits = bool(host_arrays) and (
        wait or not all(is_reachable(queue, array) for array in host_arrays)
    )
    context, function = queue.context, queue.api.cuMemcpyBatchAsync
    lists = batch.targets, batch.sources, batch.sizes, count, [attributes], [0], 1, queue.raw
    try:
        with needs_version("Stream.copy_batch", (12, 8)), watched_copies(queue, batch.copied):
            # The driver requires a current context, and copies by the stream all the same.
            # Before CUDA 13 the result has one more value, the copy that failed.
            code, *_ = queue.submit(context.call, function, *lists)
        if code:
            doing = f"copying a batch of {count} pairs, {sum(batch.sizes)} bytes, on {stream!r}"
            raise failure(queue.api, code, "cuMemcpyBatchAsync", doing)
        if waits:
            (code,) = queue.wait_for_work()
            if code:
                doing = f"waiting for a batch of {count} copies"
                raise failure(queue.api, code, "cuStreamSynchronize", doing)
            run_deferred()
    except BaseException:
        if host_arrays:
            queue.wait_for_work()  # nothing goes on using the caller's arrays
        raise


def _copy_by_kernel(stream: BaseStream, queue: StreamHandle, copies: list[int]) -> None:
    """Copy within the memory of the stream's context, by as many kernels as it takes."""
    numbers = np.frombuffer(array("Q", copies), np.uint64)
    for start in range(0, len(numbers), 3 * _MOST_BLOCKS):
        part = numbers[start : start + 3 * _MOST_BLOCKS]
        # With `keepdims`: NumPy 2.5's types have no scalar result.
        width = math.gcd(16, int(np.bitwise_or.reduce(part, keepdims=True)[0]))
        kernel = copy_kernel(stream.context, queue.context, _ptx(width))
        parameter = part.tobytes().ljust(_PARAMETER_BYTES, b"\0")
        kernel.launch(queue, len(part) // 3, parameter, _PARAMETER_BYTES)


@cache
def _ptx(width: int) -> bytes:
    kind = _WIDTHS[width]
    registers = {16: "{%w0, %w1, %w2, %w3}", 8: "{%w0, %w1}", 4: "%w0"}.get(width, "%h0")
    text = _PTX.format(
        name=COPY_KERNEL, nbytes=_PARAMETER_BYTES, width=width, kind=kind, registers=registers
    )
    return text.encode() + b"\0"


def _copy_boxes(
    stream: BaseStream,
    queue: StreamHandle,
    boxes: list[CUDA_MEMCPY3D_BATCH_OP],
    attributes: CUmemcpyAttributes,
) -> None:
    """Copy between strided device arrays."""
    for copy_box in boxes:
        copy_box.srcAccessOrder = attributes.srcAccessOrder
        copy_box.src.op.ptr.locHint = attributes.srcLocHint
        copy_box.dst.op.ptr.locHint = attributes.dstLocHint
    function, count = queue.api.cuMemcpy3DBatchAsync, len(boxes)
    with needs_version("Stream.copy_batch", (12, 8)):
        code, *_ = queue.submit(queue.context.call, function, count, boxes, 0, queue.raw)
    if code:
        doing = f"copying a batch of {count} boxes of strided arrays on {stream!r}"
        raise failure(queue.api, code, "cuMemcpy3DBatchAsync", doing)


def _attributes(
    source_order: object, source: int | str | None, target: int | str | None
) -> CUmemcpyAttributes:
    order = _ORDERS.get(source_order) if isinstance(source_order, str) else None
    if order is None:
        remedy = 'give "stream", "call" or "any"'
        raise border.wrong_type("Stream.copy_batch: source_order", source_order, remedy)
    attributes = CUmemcpyAttributes()
    attributes.srcAccessOrder = order
    if source is not None:
        attributes.srcLocHint = mem_location("Stream.copy_batch: source_location", source)
    if target is not None:
        attributes.dstLocHint = mem_location("Stream.copy_batch: target_location", target)
    return attributes


def _batch_of(
    stream: BaseStream,
    queue: StreamHandle,
    pairs: Iterable[tuple[CopySide, CopySide]],
    most_small: int,
) -> _Batch:
    """Return the copies of pairs, with the stream ordered after other work on their memory.

    Small ones are of at most a number of bytes, within the stream's context.
    """
    border.instance_of("Stream.copy_batch: pairs", pairs, Iterable)
    batch = _Batch(most_small, [], [], [], [], [], [], [], [], [])
    # Lists of numbers and pointers: a tuple for each copy would cost more, by collections.
    add_target, add_source = batch.targets.append, batch.sources.append
    add_size, hold, add_small = batch.sizes.append, batch.memory.append, batch.small.append
    for pair in pairs:
        try:
            dst, src = pair
        except (TypeError, ValueError):
            remedy = "give tuples of a destination and a source"
            raise border.wrong_type("Stream.copy_batch: pairs: an item", pair, remedy) from None
        # Arrays that are ordered on this stream need nothing: inline, as a call costs as much.
        if dst.__class__ is DeviceArray and src.__class__ is DeviceArray:
            target_memory, source_memory = dst._handle, src._handle
            if target_memory.ordered_on is queue is source_memory.ordered_on:
                if dst._shape != src._shape or dst._dtype is not src._dtype:
                    check_alike(dst, src)
                nbytes = dst._nbytes
                if nbytes and not -nbytes < dst._address - src._address < nbytes:
                    hold(target_memory)
                    hold(source_memory)
                    if nbytes <= most_small:
                        add_small(dst._address)
                        add_small(src._address)
                        add_small(nbytes)
                        continue
                    add_target(dst._pointer or dst._make_pointer())
                    add_source(src._pointer or src._make_pointer())
                    add_size(nbytes)
                    continue
        _add(stream, queue, batch, dst, src)
    return batch


def _add(
    stream: BaseStream, queue: StreamHandle, batch: _Batch, dst: CopySide, src: CopySide
) -> None:
    """Add a copy of any arrays or buffers, and order the stream after other work on them."""
    border.instance_of("Stream.copy_batch: a destination", dst, _SIDES)
    border.instance_of("Stream.copy_batch: a source", src, _SIDES)
    if StridedArray in (dst.__class__, src.__class__):
        _add_strided(stream, queue, batch, dst, src)
        return
    _require_dense("destination", dst)
    _require_dense("source", src)
    check_alike(dst, src)
    if isinstance(dst, np.ndarray) and not dst.flags.writeable:
        raise CopyError("the host array to copy to is read-only")
    if isinstance(dst, np.ndarray) and isinstance(src, np.ndarray):
        if not dst.nbytes:
            return
        dst, src = _one_on_device(stream, queue, batch, dst, src)
    if isinstance(dst, np.ndarray):
        assert not isinstance(src, np.ndarray)
        target_memory = source_memory = ready(stream, src, writes=False)
        batch.written.append(dst)
        batch.copied.append(src)
        target, source = host_address(dst), src._address
    elif isinstance(src, np.ndarray):
        target_memory = source_memory = ready(stream, dst, writes=True)
        batch.read.append(src)
        target, source = dst._address, host_address(src)
    else:
        target, source = dst._address, src._address
        if target != source and -dst.nbytes < target - source < dst.nbytes:
            raise _overlap_error(dst, src)
        target_memory, source_memory = _order_device_copy(stream, queue, dst, src)
        is_local = target_memory.context is source_memory.context is queue.context
        if is_local and 0 < dst.nbytes <= batch.most_small and target != source:
            batch.memory.extend((target_memory, source_memory))
            batch.small.extend((target, source, dst.nbytes))
            return
    if dst.nbytes and target != source:
        batch.memory.extend((target_memory, source_memory))
        batch.targets.append(CUdeviceptr(target))
        batch.sources.append(CUdeviceptr(source))
        batch.sizes.append(dst.nbytes)


def _one_on_device(
    stream: BaseStream,
    queue: StreamHandle,
    batch: _Batch,
    dst: HostArray,
    src: HostArray,
) -> tuple[CopySide, CopySide]:
    """Return two host arrays, one of them as the device reaches it."""
    if is_reachable(queue, dst):
        batch.written.append(dst)
        return on_device(stream, dst), src
    if is_reachable(queue, src):
        return dst, on_device(stream, src)
    raise CopyError("both sides are ordinary host arrays: NumPy copies those")


def _add_strided(
    stream: BaseStream, queue: StreamHandle, batch: _Batch, dst: CopySide, src: CopySide
) -> None:
    """Add the copies between device arrays, at least one of them strided."""
    if isinstance(dst, np.ndarray) or isinstance(src, np.ndarray):
        _require_dense("destination", dst)
        _require_dense("source", src)
    assert not isinstance(dst, np.ndarray)
    assert not isinstance(src, np.ndarray)
    check_alike(dst, src)
    target, source = as_array(dst, src), as_array(src, dst)
    require_apart(target)
    if not dst.nbytes:
        return
    if do_overlap(target, source):
        raise _overlap_error(target, source)
    target_memory, source_memory = _order_device_copy(stream, queue, dst, src)
    batch.memory.extend((target_memory, source_memory))
    sides = side_of(target), side_of(source)
    operations = box_operations(target.shape, target.dtype.itemsize, *sides)
    boxes = list(islice(operations, _MOST_BOXES + 1))
    if len(boxes) > _MOST_BOXES:
        raise CopyError(
            f"a copy of a batch is of more than {_MOST_BOXES} boxes: {target!r}\n"
            "  copy it by Stream.copy, which uses a kernel"
        )
    batch.boxes.extend(boxes)


def _require_dense(name: str, side: CopySide) -> None:
    if isinstance(side, np.ndarray):
        require_plain(side)
        is_dense = side.flags.c_contiguous
    else:
        is_dense = side.__class__ is not StridedArray
    if not is_dense:
        raise CopyError(
            f"the {name} of a copy from or to the host is strided: {border.described(side)}\n"
            "  copy it by Stream.copy, or make it contiguous"
        )


def _order_device_copy(
    stream: BaseStream, queue: StreamHandle, dst: ArrayOrBuffer, src: ArrayOrBuffer
) -> tuple[AnyMemory, AnyMemory]:
    """Return the handles of memory of one device or two, with the stream ordered after others."""
    if stream.context not in (dst.context, src.context):
        raise WrongDeviceError(
            f"{stream!r} copies from {src!r} to {dst!r}: use a stream of one of the two devices"
        )
    target, source = dst._memory, src._memory
    dst._require_writable()
    if dst.nbytes and dst.ptr != src.ptr:
        order_access(source, queue, writes=False)
        order_access(target, queue)
        if dst.context is not src.context:
            open_pools(dst, src)
    return target, source


def _overlap_error(dst: ArrayOrBuffer, src: ArrayOrBuffer) -> CopyError:
    return CopyError(
        f"a copy of a batch overlaps itself: from {src!r} to {dst!r}, "
        f"{dst.ptr - src.ptr} bytes further\n"
        "  copy it by Stream.copy, which copies through temporary memory"
    )
