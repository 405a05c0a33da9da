"""Streams, memory and descriptors of other owners: opened twice, and used after the owner's end."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, Final, Protocol, cast

import numpy as np
import pytest

import cudadrv
from cudadrv import DeviceArray, DeviceBuffer
from cudadrv.driver.driver_selection import current
from cudadrv.errors import ClosedError, CudadrvError
from cudadrv.interop import ExternalMemory
from cudadrv.memory import MappedBuffer, MemoryPool, PhysicalMemory


class Opened(Protocol):
    """An object of the library over something of another owner."""

    @property
    def closed(self) -> bool:
        """Whether it was closed."""

    def close(self) -> None:
        """Close it."""


@dataclass(frozen=True)
class Descriptor:
    """A way to open a descriptor, with the object that exports it."""

    export: Callable[[cudadrv.Context], tuple[object, int, int]]
    """The object, a descriptor that the caller owns, and the bytes."""
    open: Callable[[cudadrv.Context, int, int], Opened]
    use: Callable[[cudadrv.Stream, Opened], object]


def _exported(context: cudadrv.Context) -> tuple[object, int, int]:
    memory = PhysicalMemory(1, handle_type="posix_fd")
    return memory, memory.export_descriptor(), memory.nbytes


def _shared_pool(context: cudadrv.Context) -> tuple[object, int, int]:
    pool = MemoryPool(context.device, shareable=True)
    return pool, os.dup(pool.descriptor), 0


def _use_physical(stream: cudadrv.Stream, opened: Opened) -> None:
    assert isinstance(opened, PhysicalMemory)
    with MappedBuffer(stream, [opened]) as buffer:
        _use_buffer(stream, buffer)


def _use_external(stream: cudadrv.Stream, opened: Opened) -> None:
    assert isinstance(opened, ExternalMemory)
    with opened.buffer(stream) as buffer:
        _use_buffer(stream, buffer)


def _use_buffer(stream: cudadrv.Stream, opened: Opened) -> None:
    assert isinstance(opened, DeviceBuffer)
    stream.fill(opened, 5)
    array: DeviceArray[np.uint8] = DeviceArray(opened, 4, np.uint8)
    assert stream.to_host(array).tolist() == [5] * 4


def _use_pool(_: cudadrv.Stream, opened: Opened) -> None:
    assert isinstance(opened, MemoryPool)
    assert int(opened.handle)
    assert opened.is_foreign


DESCRIPTORS: Final = {
    "PhysicalMemory": Descriptor(
        _exported,
        lambda context, number, nbytes: PhysicalMemory.from_descriptor(
            number, nbytes, context.device
        ),
        _use_physical,
    ),
    "ExternalMemory": Descriptor(_exported, ExternalMemory, _use_external),
    "MemoryPool": Descriptor(
        _shared_pool,
        lambda context, number, _: MemoryPool.from_descriptor(context.device, number),
        _use_pool,
    ),
}


def _open(way: Descriptor, context: cudadrv.Context, number: int, nbytes: int, name: str) -> Opened:
    try:
        return way.open(context, number, nbytes)
    except CudadrvError:
        if current().is_emulated or name != "ExternalMemory":
            raise
        pytest.skip("the driver imports no memory of its own as another interface's")


@pytest.fixture
def file() -> Iterator[IO[bytes]]:
    """A file that takes the number of a closed descriptor."""
    with tempfile.TemporaryFile() as opened:
        yield opened


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_a_descriptor_stays_its_owners(
    context: cudadrv.Context, stream: cudadrv.Stream, name: str, file: IO[bytes]
) -> None:
    way = DESCRIPTORS[name]
    owner, number, nbytes = way.export(context)
    first, second = (_open(way, context, number, nbytes, name) for _ in range(2))
    first.close()
    first.close()
    os.fstat(number)
    with pytest.raises(ClosedError):
        way.use(stream, first)
    way.use(stream, second)
    os.close(number)
    way.use(stream, second)  # the owner's descriptor is closed
    os.dup2(file.fileno(), number)  # its number is of another file now
    with pytest.raises((CudadrvError, OSError)):
        way.open(context, number, max(nbytes, 1))
    second.close()
    del second, owner
    gc.collect()
    assert os.path.sameopenfile(file.fileno(), number)
    os.close(number)
    with pytest.raises(OSError, match="is not open in this process"):
        way.open(context, number, max(nbytes, 1))


@pytest.mark.parametrize("name", [each for each in DESCRIPTORS if each != "MemoryPool"])
def test_memory_of_a_descriptor_outlives_the_owners_object(
    context: cudadrv.Context, stream: cudadrv.Stream, name: str
) -> None:
    way = DESCRIPTORS[name]
    owner, number, nbytes = way.export(context)
    opened = _open(way, context, number, nbytes, name)
    os.close(number)
    assert isinstance(owner, PhysicalMemory)
    owner.close()
    way.use(stream, opened)
    opened.close()
    assert opened.closed


@pytest.fixture
def theirs(context: cudadrv.Context) -> Iterator[int]:
    """A stream that the driver made without the library."""
    api: Any = current().api
    with context.bound():
        code, stream = api.cuStreamCreateWithPriority(0, 0)
        assert not code
        yield int(stream)
        with suppress(ValueError):
            api.cuStreamDestroy(stream)


def test_a_raw_stream_is_never_destroyed(context: cudadrv.Context, theirs: int) -> None:
    first, second = (context.external_stream(theirs) for _ in range(2))
    array = first.to_device(np.arange(3, dtype=np.int32))
    first.close()
    first.close()
    assert second.to_host(array).tolist() == [0, 1, 2]
    second.close()
    array.close()
    gc.collect()
    code, context_of = cast("Any", current().api).cuStreamGetCtx(theirs)
    assert not code
    assert int(context_of) == int(context.handle)


def test_borrowed_memory_is_never_freed(context: cudadrv.Context, stream: cudadrv.Stream) -> None:
    api: Any = current().api
    with context.bound():
        code, pointer = api.cuMemAlloc(64)
    assert not code
    first, second = (DeviceBuffer.borrowed(stream, int(pointer), 64, None) for _ in range(2))
    first.close()
    first.close()
    _use_buffer(stream, second)
    second.close()
    gc.collect()
    stream.synchronize()
    with context.bound():
        assert not api.cuMemFree(pointer)[0]


def test_adopted_memory_is_released_once_also_if_the_release_raises(
    stream: cudadrv.Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    released: list[int] = []
    reported: list[str] = []

    def release(address: int, *_: object) -> None:
        released.append(address)
        raise RuntimeError("the owner's free failed")

    def report(unraisable: Any) -> None:
        reported.append(str(unraisable.exc_value))

    monkeypatch.setattr("sys.unraisablehook", report)

    with stream.alloc(64) as owner:
        buffer = DeviceBuffer.adopted(stream, owner.ptr, 64, release)
        buffer.close()
        buffer.close()
        del buffer
        gc.collect()
        assert released == [owner.ptr]
        assert reported == ["the owner's free failed"]
        _use_buffer(stream, owner)


def test_work_on_a_stream_after_its_owners_end_raises(context: cudadrv.Context) -> None:
    if not current().is_emulated:
        pytest.skip("a driver may end the process: the owner promised that the stream lives")
    api: Any = current().api
    with context.bound():
        code, stream = api.cuStreamCreateWithPriority(0, 0)
    assert not code
    ours = context.external_stream(int(stream))
    assert not api.cuStreamDestroy(stream)[0]
    for act in (ours.synchronize, ours.record, lambda: ours.zeros(4, np.int32), ours.is_done):
        with pytest.raises(CudadrvError):
            act()
    ours.close()
    ours.close()


def test_memory_after_its_owners_end_raises(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    if not current().is_emulated:
        pytest.skip("a driver may end the process or break the context")
    with context.bound():
        code, pointer = current().api.cuMemAlloc(64)
        assert not code
        ours = DeviceBuffer.borrowed(stream, int(pointer), 64, None)
        assert not current().api.cuMemFree(pointer)[0]
    with pytest.raises(CudadrvError):
        _use_buffer(stream, ours)
    ours.close()
    assert stream.to_host(stream.zeros(1, np.int32)).tolist() == [0]
