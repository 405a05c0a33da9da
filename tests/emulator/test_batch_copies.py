"""Batches of copies: what they copy, when they read, what they refuse."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from cudadrv.driver._api import (
    CUDA_MEMCPY3D_BATCH_OP,
    CUdeviceptr,
    CUmemcpyAttributes,
    CUresult,
    CUstream,
    driver,
)
from cudadrv.emulator import Emulator, OrderWarning
from cudadrv.emulator.timeline.schedule import OrderName

from .calls import LEGACY, code, ok
from .descriptors import SURFACE, described
from .handles import RELAXED, a_stream

IN_STREAM, DURING_CALL, ANY_TIME = 1, 2, 3
POINTER, ARRAY = 1, 2


def opened(order: OrderName) -> Emulator:
    emulator = Emulator(1, order=order)
    ok(emulator.cuInit(0))
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    return emulator


@pytest.fixture(params=["immediate", "late"])
def api(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    emulator = opened(request.param)
    yield emulator
    emulator.finish()


@pytest.fixture
def late() -> Iterator[Emulator]:
    emulator = opened("late")
    yield emulator
    emulator.finish()


def attributes(order: int, flags: int = 0) -> CUmemcpyAttributes:
    found = CUmemcpyAttributes()
    found.srcAccessOrder = driver.CUmemcpySrcAccessOrder(order)
    found.flags = flags
    return found


def batch(
    api: Emulator,
    stream: CUstream,
    copies: Sequence[tuple[CUdeviceptr, CUdeviceptr, int]],
    order: int = IN_STREAM,
) -> tuple[CUresult]:
    targets, sources, sizes = map(list, zip(*copies, strict=True))
    return api.cuMemcpyBatchAsync(
        targets, sources, sizes, len(copies), [attributes(order)], [0], 1, stream
    )


def told(api: Emulator, code: CUresult) -> bytes:
    return api.cuGetErrorString(code)[1] or b""


def at(array: NDArray[np.uint8]) -> CUdeviceptr:
    return CUdeviceptr(array.ctypes.data)


def host(value: int, nbytes: int = 64) -> NDArray[np.uint8]:
    return np.full(nbytes, value, np.uint8)


def on_device(api: Emulator, value: int, stream: CUstream) -> CUdeviceptr:
    memory = ok(api.cuMemAlloc(64))
    ok(api.cuMemsetD8Async(memory, value, 64, stream))
    return memory


def read(api: Emulator, memory: CUdeviceptr, stream: CUstream) -> list[int]:
    found = host(0)
    ok(api.cuMemcpyDtoHAsync(found.ctypes.data, memory, 64, stream))
    ok(api.cuStreamSynchronize(stream))
    return sorted(set(found.tolist()))


@pytest.mark.parametrize("order", [IN_STREAM, DURING_CALL, ANY_TIME])
def test_a_batch_copies_between_host_and_device_in_every_direction(
    api: Emulator, order: int
) -> None:
    stream = a_stream(api)
    first, second, third = (on_device(api, value, stream) for value in (1, 2, 3))
    ok(api.cuStreamSynchronize(stream))
    given, taken, other = host(9), host(0), host(0)
    ok(
        batch(
            api,
            stream,
            [
                (second, first, 64),
                (third, at(given), 64),
                (at(taken), first, 32),
                (at(other), at(given), 8),
            ],
            order,
        )
    )
    ok(api.cuStreamSynchronize(stream))
    assert [read(api, each, stream) for each in (first, second, third)] == [[1], [1], [9]]
    assert (taken[:32] == 1).all()
    assert not taken[32:].any()
    assert (other[:8] == 9).all()


def test_a_batch_is_between_what_is_before_and_after_it_in_its_stream(api: Emulator) -> None:
    stream = a_stream(api)
    source, target = on_device(api, 1, stream), on_device(api, 2, stream)
    ok(batch(api, stream, [(target, source, 64)]))
    ok(api.cuMemsetD8Async(source, 3, 64, stream))
    assert read(api, target, stream) == [1]
    assert read(api, source, stream) == [3]


def test_each_copy_has_the_attributes_of_its_part(late: Emulator) -> None:
    stream = a_stream(late)
    source, targets = on_device(late, 1, stream), [on_device(late, 0, stream) for _ in range(3)]
    ok(late.cuStreamSynchronize(stream))
    ok(late.cuMemsetD8Async(source, 5, 64, stream))
    every = [attributes(IN_STREAM), attributes(DURING_CALL)]
    ok(late.cuMemcpyBatchAsync(targets, [source] * 3, [64] * 3, 3, every, [0, 2], 2, stream))
    # What is read during the call comes before what is queued.
    assert [read(late, each, stream) for each in targets] == [[5], [5], [1]]


def test_a_source_that_is_read_during_the_call_may_change_at_once(late: Emulator) -> None:
    stream, given = a_stream(late), host(4)
    target = on_device(late, 0, stream)
    ok(batch(late, stream, [(target, at(given), 64)], DURING_CALL))
    given[:] = 6
    assert read(late, target, stream) == [4]


def test_a_source_of_the_host_that_changes_too_early_is_reported(late: Emulator) -> None:
    """As driver 580, a batch waits for ordinary memory that is read in the order of the stream."""
    stream, given = a_stream(late), host(4)
    pinned = ok(late.cuMemAllocHost(64))
    target = on_device(late, 0, stream)
    for source, order in ((int(pinned), IN_STREAM), (int(pinned), ANY_TIME), (int(at(given)), 3)):
        ok(batch(late, stream, [(target, CUdeviceptr(source), 64)], order))
        ctypes.memset(source, 6, 64)
        with pytest.warns(OrderWarning):
            ok(late.cuStreamSynchronize(stream))
        ctypes.memset(source, 4, 64)


def test_a_batch_of_nothing_or_without_right_attributes_is_rejected(api: Emulator) -> None:
    stream = a_stream(api)
    one, two = on_device(api, 1, stream), on_device(api, 2, stream)
    pair = [one, two], [two, one], [64, 64]
    good = attributes(IN_STREAM)
    assert code(api.cuMemcpyBatchAsync(None, None, [], 0, [good], [0], 1, stream)) == 1
    assert code(api.cuMemcpyBatchAsync(*pair, 3, [good], [0], 1, stream)) == 1
    assert code(api.cuMemcpyBatchAsync(*pair, 2, None, [], 0, stream)) == 1
    assert code(api.cuMemcpyBatchAsync(*pair, 2, [good], [1], 1, stream)) == 1
    assert code(api.cuMemcpyBatchAsync(*pair, 2, [good] * 2, [0, 0], 2, stream)) == 1
    assert code(api.cuMemcpyBatchAsync(*pair, 2, [good] * 2, [0, 2], 2, stream)) == 1
    assert code(api.cuMemcpyBatchAsync(*pair, 2, [good] * 3, [0, 1, 2], 3, stream)) == 1
    for bad in (attributes(0), attributes(IN_STREAM, flags=4)):
        assert code(api.cuMemcpyBatchAsync(*pair, 2, [bad], [0], 1, stream)) == 1
    assert code(api.cuMemcpyBatchAsync(*pair, 2, [good], [0], 1, LEGACY)) == 1
    assert code(api.cuMemcpyBatchAsync(*pair, 2, [good], [0], 1, CUstream(7))) == 400


def test_a_batch_with_one_wrong_copy_copies_nothing(api: Emulator) -> None:
    stream = a_stream(api)
    one, two = on_device(api, 1, stream), on_device(api, 2, stream)
    assert code(batch(api, stream, [(one, two, 64), (two, CUdeviceptr(0), 64)])) == 1
    assert code(batch(api, stream, [(one, two, 64), (two, one, 65)])) == 1
    assert code(batch(api, stream, [(one, two, 64), (two, one, 0)])) == 1
    assert b"copy 1 of a batch has no bytes" in told(api, CUresult.CUDA_ERROR_INVALID_VALUE)
    assert read(api, one, stream) == [1]


def test_a_capture_rejects_a_batch(api: Emulator) -> None:
    stream = a_stream(api)
    one, two = on_device(api, 1, stream), on_device(api, 2, stream)
    ok(api.cuStreamBeginCapture(stream, RELAXED))
    assert code(batch(api, stream, [(one, two, 64)])) == 900
    unsupported = CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
    assert b"the capture goes on" in told(api, unsupported)
    ok(api.cuStreamEndCapture(stream))


def test_a_single_copy_has_attributes(api: Emulator) -> None:
    stream = a_stream(api)
    one, two = on_device(api, 1, stream), on_device(api, 2, stream)
    good = attributes(IN_STREAM)
    ok(api.cuMemcpyWithAttributesAsync(one, two, 64, good, stream))
    assert read(api, one, stream) == [2]
    assert code(api.cuMemcpyWithAttributesAsync(one, two, 64, None, stream)) == 1
    assert code(api.cuMemcpyWithAttributesAsync(one, two, 64, attributes(0), stream)) == 1
    assert code(api.cuMemcpyWithAttributesAsync(one, two, 64, good, LEGACY)) == 1
    ok(api.cuStreamBeginCapture(stream, RELAXED))
    assert code(api.cuMemcpyWithAttributesAsync(one, two, 64, good, stream)) == 900
    ok(api.cuStreamEndCapture(stream))


def box(extent: tuple[int, int, int], order: int = IN_STREAM) -> CUDA_MEMCPY3D_BATCH_OP:
    found = CUDA_MEMCPY3D_BATCH_OP()
    found.extent.width, found.extent.height, found.extent.depth = extent
    found.srcAccessOrder = driver.CUmemcpySrcAccessOrder(order)
    return found


def as_pointer(side: driver.CUmemcpy3DOperand, address: int, row: int = 0, rows: int = 0) -> None:
    side.type = driver.CUmemcpy3DOperandType(POINTER)
    side.op.ptr.ptr = CUdeviceptr(address)
    side.op.ptr.rowLength, side.op.ptr.layerHeight = row, rows


def test_a_batch_of_boxes_copies_rows_layers_and_arrays(api: Emulator) -> None:
    stream = a_stream(api)
    cube = np.arange(4 * 6 * 8, dtype=np.uint8).reshape(4, 6, 8)
    found = np.zeros((2, 3, 5), np.uint8)
    memory = box((5, 3, 2))
    as_pointer(memory.src, cube.ctypes.data + 9, row=8, rows=6)
    as_pointer(memory.dst, found.ctypes.data)
    # Elements of an array have its size: those of 4 bytes here.
    array = ok(api.cuArray3DCreate(described(16, 8, 0, SURFACE)))
    sheet = np.arange(3 * 4, dtype=np.uint32).reshape(3, 4)
    into = box((4, 3, 1))
    as_pointer(into.src, sheet.ctypes.data)
    into.dst.type = driver.CUmemcpy3DOperandType(ARRAY)
    into.dst.op.array.array = array
    into.dst.op.array.offset.x, into.dst.op.array.offset.y = 2, 1
    ok(api.cuMemcpy3DBatchAsync(2, [memory, into], 0, stream))
    ok(api.cuStreamSynchronize(stream))
    assert (found == cube[:2, 1:4, 1:6]).all()
    back = np.zeros((2, 2), np.uint32)
    out = box((2, 2, 1))
    out.src.type = driver.CUmemcpy3DOperandType(ARRAY)
    out.src.op.array.array = array
    out.src.op.array.offset.x, out.src.op.array.offset.y = 3, 2
    as_pointer(out.dst, back.ctypes.data)
    ok(api.cuMemcpy3DWithAttributesAsync(out, 0, stream))
    ok(api.cuStreamSynchronize(stream))
    assert (back == sheet[1:3, 1:3]).all()


def test_boxes_that_do_not_fit_are_rejected(api: Emulator) -> None:
    stream, memory = a_stream(api), ok(api.cuMemAlloc(64))
    good, empty, narrow, none = box((8, 4, 1)), box((8, 0, 1)), box((8, 4, 1)), box((8, 4, 1))
    for each in (good, empty):
        as_pointer(each.src, int(memory))
        as_pointer(each.dst, int(memory) + 32)
    as_pointer(narrow.src, int(memory), row=7)
    as_pointer(narrow.dst, int(memory))
    as_pointer(none.src, 0)
    as_pointer(none.dst, int(memory))
    for each in (empty, narrow, none, box((8, 4, 1))):
        assert code(api.cuMemcpy3DBatchAsync(1, [each], 0, stream)) == 1
    assert code(api.cuMemcpy3DBatchAsync(1, [good], 1, stream)) == 1
    assert code(api.cuMemcpy3DBatchAsync(0, [good], 0, stream)) == 1
    assert code(api.cuMemcpy3DBatchAsync(1, None, 0, stream)) == 1
    assert code(api.cuMemcpy3DBatchAsync(1, [good], 0, LEGACY)) == 1
    assert code(api.cuMemcpy3DWithAttributesAsync(None, 0, stream)) == 1
    ok(api.cuMemcpy3DBatchAsync(1, [good], 0, stream))
    ok(api.cuStreamSynchronize(stream))
