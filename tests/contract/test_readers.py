"""Memory of other libraries' types that have a reader: where it is, on which device, after what."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from operator import attrgetter

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.errors import ArgumentError, WrongDeviceError
from cudadrv.interop import Reader, register
from cudadrv.interop.reader import found_for
from cudadrv.memory.array import AnyDeviceArray

from .conftest import compile_module

SOURCE = """
extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }
extern "C" __global__ void sum(float* a, const float* b, const float* c, int n) {
    *a += *b + *c + n;
}
"""


class Tensor:
    """An array of a library that has neither of the protocols."""

    def __init__(self, array: AnyDeviceArray, offset: int = 0, device: int | None = None) -> None:
        self.array = array
        self.pointer = array.ptr + offset
        self.place = array.context.ordinal if device is None else device


class Parameter(Tensor):
    """A type that inherits."""


register(Tensor, Reader(attrgetter("pointer"), attrgetter("place")))


@pytest.fixture
def twice(kernels: cudadrv.Module, stream: cudadrv.Stream) -> cudadrv.Launcher:
    return kernels.kernel("twice").bind(stream, LaunchConfig(1, 4))


def fresh_type() -> type[Tensor]:
    return type("Fresh", (Tensor,), {})


def ones(stream: cudadrv.Stream, count: int = 4) -> AnyDeviceArray:
    return stream.to_device(np.ones(count, "f4"))


def test_memory_is_found_where_it_is_at_each_launch(
    stream: cudadrv.Stream, twice: cudadrv.Launcher
) -> None:
    first, second = ones(stream), ones(stream, 8)
    tensor = Tensor(first)
    for _ in range(4):
        twice(tensor)
    tensor.pointer = second.ptr + 4 * 4  # it moved, and is a view with an offset now
    for _ in range(3):
        twice(tensor)
    assert stream.to_host(first).tolist() == [16.0] * 4
    assert stream.to_host(second).tolist() == [1.0] * 4 + [8.0] * 4


def test_other_types_may_take_the_same_place(
    stream: cudadrv.Stream, twice: cudadrv.Launcher
) -> None:
    array = ones(stream)
    values = (Tensor(array), Parameter(array), array, array.ptr, array.buffer)
    for value in itertools.chain.from_iterable([values] * 3):
        twice(value)
    assert stream.to_host(array).tolist() == [2.0**15] * 4
    with pytest.raises(ArgumentError, match="argument 0 of kernel 'twice' is of type str"):
        twice("text")


@pytest.mark.parametrize(
    "path", ["pointer", "inner.inner.pointer", "class", "inner.not a name", "é"]
)
def test_an_attribute_is_read_whatever_its_name(
    path: str, stream: cudadrv.Stream, twice: cudadrv.Launcher
) -> None:
    array, kind = ones(stream), fresh_type()
    tensor = kind(array)
    vars(tensor)["inner"] = tensor
    setattr(tensor, path.split(".")[-1], array.ptr)
    register(kind, Reader(attrgetter(path), attrgetter("place"), dtype=attrgetter("array.dtype")))
    for _ in range(4):
        twice(tensor)
    assert stream.to_host(array).tolist() == [16.0] * 4
    delattr(tensor, path.split(".")[-1])
    with pytest.raises(ArgumentError, match="argument 0 of kernel 'twice'"):
        twice(tensor)


@pytest.mark.parametrize(
    "address", [attrgetter("pointer", "place"), lambda _: -8, lambda _: 1 << 64, lambda _: 1.5]
)
def test_what_is_no_address_is_rejected(
    address: Callable[[object], int], stream: cudadrv.Stream, twice: cudadrv.Launcher
) -> None:
    kind = fresh_type()
    register(kind, Reader(address, attrgetter("place")))
    for _ in range(3):
        with pytest.raises(ArgumentError, match="argument 0 of kernel 'twice'"):
            twice(kind(ones(stream)))


def test_kernel_launch_accepts_them_too(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    array, config = ones(stream), LaunchConfig(1, 4)
    for _ in range(3):
        kernels.kernel("twice").launch(stream, config, Tensor(array))
    prepared = kernels.kernel("twice").bind(stream, config).prepare(Tensor(array))
    prepared()
    prepared()
    assert stream.to_host(array).tolist() == [32.0] * 4


def test_memory_of_another_device_or_of_the_host_is_rejected_at_any_launch(
    stream: cudadrv.Stream, twice: cudadrv.Launcher
) -> None:
    array = ones(stream)
    for _ in range(4):
        with pytest.raises(WrongDeviceError, match="a Tensor on device 7 was given to <Stream"):
            twice(Tensor(array, device=7))
        with pytest.raises(ArgumentError, match="argument 0 of kernel 'twice' is of type Tensor"):
            twice(Tensor(array, device=-1))
        twice(Tensor(array))
    assert stream.to_host(array).tolist() == [16.0] * 4


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (BufferError("was freed"), "argument 0 of kernel 'twice' is of type Fresh and was freed"),
        (RuntimeError("no storage"), r"cannot be read\n  RuntimeError\('no storage'\)"),
        (AttributeError("gone"), r"cannot be read\n  AttributeError\('gone'\)"),
    ],
)
def test_what_a_reader_raises_is_reported_of_the_argument(
    stream: cudadrv.Stream, twice: cudadrv.Launcher, error: Exception, text: str
) -> None:
    kind, fails = fresh_type(), False

    def address(tensor: Tensor) -> int:
        if fails:
            raise error
        return tensor.pointer

    register(kind, Reader(address, attrgetter("place")))
    array = ones(stream)
    for fails in (False, False, False, True, False):
        if fails:
            with pytest.raises(ArgumentError, match=text) as raised:
                twice(kind(array))
            assert raised.value.position == 0
            assert raised.value.__cause__ is not None
        else:
            twice(kind(array))
    assert stream.to_host(array).tolist() == [16.0] * 4


def test_a_reader_may_leave_an_object_to_the_protocols(
    stream: cudadrv.Stream, twice: cudadrv.Launcher
) -> None:
    class Export(Tensor):
        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

        def __dlpack__(self, *, stream: int | None = None) -> object:
            asked.append(stream)
            return self.array.__dlpack__(stream=stream)

    asked: list[int | None] = []
    leaves = [False]
    register(
        Export,
        Reader(
            lambda x: None if leaves[0] else x.pointer,
            attrgetter("place"),
            is_contiguous=attrgetter("array.is_contiguous"),
        ),
    )
    array = ones(stream)
    for leaves[0] in (False, False, False, True, True, False):
        twice(Export(array))
    assert asked == [int(stream.handle)] * 2
    assert stream.to_host(array).tolist() == [64.0] * 4


@pytest.mark.parametrize("protocol", ["dlpack", "interface"])
def test_the_protocols_report_strides_that_a_reader_does_not(
    protocol: str, stream: cudadrv.Stream, twice: cudadrv.Launcher
) -> None:
    names = ["__cuda_array_interface__"]
    if protocol == "dlpack":
        names = ["__dlpack__", "__dlpack_device__"]
    members = {name: property(attrgetter(f"array.{name}")) for name in names}
    kind = type("Export", (Tensor,), members)
    register(kind, Reader(attrgetter("pointer"), attrgetter("place")))
    array = ones(stream, 8)
    for _ in range(4):
        twice(kind(array))
        with pytest.raises(ArgumentError, match="of type Export and is not C-contiguous"):
            twice(kind(array[::2]))
    assert stream.to_host(array).tolist() == [16.0] * 4 + [1.0] * 4


def test_no_elements_are_a_null_pointer(stream: cudadrv.Stream, context: cudadrv.Context) -> None:
    source = 'extern "C" __global__ void is_null(int* out, void* p) { *out += p == nullptr; }'
    launcher = compile_module(context, source).kernel("is_null").bind(stream, LaunchConfig(1, 1))
    out = stream.zeros(1, "i4")
    empty = Tensor(out)
    empty.pointer = 0
    for _ in range(4):
        launcher(out, empty)
    assert stream.to_host(out).tolist() == [4]


def test_a_later_reader_replaces_the_former() -> None:
    kind = fresh_type()
    register(kind, Reader(attrgetter("pointer"), attrgetter("place")))
    known = found_for(kind)
    register(kind, Reader(attrgetter("pointer"), attrgetter("place")))
    later, child = found_for(kind), found_for(type("Child", (kind,), {}))
    assert known is not None
    assert later is not None
    assert later.reader is not known.reader
    assert child == later
    assert found_for(int) is None


def test_what_is_no_type_or_no_reader_is_rejected() -> None:
    with pytest.raises(TypeError, match="interop.register: type"):
        register(3, Reader(attrgetter("x"), attrgetter("y")))  # type: ignore[arg-type]  # tested
    with pytest.raises(TypeError, match="interop.register: reader"):
        register(Tensor, attrgetter("x"))  # type: ignore[arg-type]  # what is tested


@pytest.fixture
def producer(context: cudadrv.Context) -> Iterator[cudadrv.Stream]:
    with context.new_stream() as producer:
        yield producer
        producer.synchronize()


def type_of_stream(current: Callable[[int], int]) -> type[Tensor]:
    """A type whose library queues its work on what is its current stream."""
    kind = fresh_type()
    register(kind, Reader(attrgetter("pointer"), attrgetter("place"), current))
    return kind


def test_a_launch_queries_the_stream_once_and_waits_for_it(
    kernels: cudadrv.Module, stream: cudadrv.Stream, producer: cudadrv.Stream
) -> None:
    asked: list[int] = []

    def current(ordinal: int) -> int:
        asked.append(ordinal)
        return int(producer.handle)

    kind = type_of_stream(current)
    launcher = kernels.kernel("sum").bind(stream, LaunchConfig(1, 1))
    a, b, c = (producer.zeros(1 << 20, "f4") for _ in "abc")
    launcher(*map(kind, (a, b, c)), 0)
    launcher(*map(kind, (a, b, c)), 0)
    stream.synchronize()  # who writes next is not ordered after what reads
    asked.clear()
    for n in range(1, 5):
        producer.fill(b, n)
        producer.fill(c, 10 * n)
        launcher(*map(kind, (a, b, c)), n)
        stream.synchronize()
    assert asked == [0] * 4
    assert stream.to_host(a[:1]).tolist() == [12.0 * 10]


class Promise(Tensor):
    """An array that is still computed, as JAX's are; DLPack would let the stream wait for it."""

    is_ready = False

    def block_until_ready(self) -> None:
        self.is_ready = True

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, *, stream: int) -> object:
        raise AssertionError(f"stream {stream} would wait for what no capture may wait for")


def test_a_capture_waits_on_the_host_for_what_is_still_computed(
    stream: cudadrv.Stream, twice: cudadrv.Launcher
) -> None:
    def address(promise: Promise) -> int | None:
        return promise.pointer if promise.is_ready else None

    is_contiguous = attrgetter("array.is_contiguous")
    register(Promise, Reader(address, attrgetter("place"), is_contiguous=is_contiguous))
    array = ones(stream)
    promise = Promise(array)
    with stream.capture() as graph:
        twice(promise)
    assert promise.is_ready
    graph.instantiate().launch(stream)
    assert stream.to_host(array).tolist() == [2.0] * 4
    with pytest.raises(ArgumentError, match="would wait"):
        twice(Promise(array))


def test_a_capture_waits_on_the_host_for_what_was_written(
    kernels: cudadrv.Module, stream: cudadrv.Stream, producer: cudadrv.Stream
) -> None:
    kind = type_of_stream(lambda ordinal: int(producer.handle))
    launcher = kernels.kernel("twice").bind(stream, LaunchConfig(1, 4))
    array = producer.zeros(4, "f4")
    launcher(kind(array))
    launcher(kind(array))
    stream.synchronize()  # as above
    producer.fill(array, 3)
    with stream.capture() as graph:
        launcher(kind(array))
    graph.instantiate().launch(stream)
    launcher(kind(array))
    assert stream.to_host(array).tolist() == [12.0] * 4
