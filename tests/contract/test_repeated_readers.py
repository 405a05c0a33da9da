"""Launches again with the same memory of other libraries: what is packed is known, nothing else."""

from __future__ import annotations

import weakref
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.errors import ArgumentError, ClosedError, WrongDeviceError
from cudadrv.interop import Reader, register
from cudadrv.memory.array import AnyDeviceArray

SOURCE = """
extern "C" __global__ void put(float* x, int n, float scale) { *x = copysignf(n, scale) * *x; }
extern "C" __global__ void add(float* x, const float* y, int n) { *x += *y + n; }
"""
FLOAT, DOUBLE = np.dtype("f4"), np.dtype("f8")
# The streams that the library says are current, and the devices that it was asked for.
_current = {0: 0}
_asked: list[int] = []


class Tensor:
    """An array of a library that has neither of the protocols."""

    def __init__(self, array: AnyDeviceArray) -> None:
        self.pointer: int | None = array.ptr
        self.place, self.dtype, self.lazy = array.context.ordinal, FLOAT, False


class Stranger(Tensor):
    """Of a type that the quick code does not know, and lies elsewhere."""


def _examined(tensor: Tensor) -> bool:
    if tensor.lazy:
        raise BufferError("is negated only when it is read")
    return True


def _current_stream(ordinal: int) -> int:
    _asked.append(ordinal)
    return _current[0]


for _kind, _place in ((Tensor, attrgetter("place")), (Stranger, lambda _: -1)):
    register(
        _kind,
        Reader(
            attrgetter("pointer"),
            _place,
            _current_stream,
            attrgetter("dtype"),
            attrgetter("lazy"),
            _examined,
        ),
    )


@pytest.fixture
def put(kernels: cudadrv.Module, stream: cudadrv.Stream) -> cudadrv.Launcher:
    return kernels.kernel("put").bind(stream, LaunchConfig(1, 1))


@pytest.fixture
def add(kernels: cudadrv.Module, stream: cudadrv.Stream) -> cudadrv.Launcher:
    return kernels.kernel("add").bind(stream, LaunchConfig(1, 1))


def ones(stream: cudadrv.Stream) -> AnyDeviceArray:
    return stream.to_device(np.ones(1, "f4"))


def values(stream: cudadrv.Stream, *arrays: AnyDeviceArray) -> list[float]:
    return [float(stream.to_host(array)[0]) for array in arrays]


def test_each_launch_has_the_arguments_of_its_own(
    stream: cudadrv.Stream, put: cudadrv.Launcher
) -> None:
    arrays = [ones(stream) for _ in "ab"]
    first, second = map(Tensor, arrays)
    expected = [1.0, 1.0]
    steps: list[tuple[int, Tensor, Any, Any]] = [
        (0, first, 2, 1.0), (0, first, 3, 1.0), (0, first, 3, -1.0), (1, second, 3, -1.0),
        (0, first, 3, -1.0), (0, first, 2, 0.0), (0, first, 2, -0.0), (0, first, 2, np.float32(1)),
        (1, second, np.int32(2), 1.0), (1, second, np.int8(1), 1.0), (1, second, 1, 1),
    ]  # fmt: skip
    for _ in range(2):
        for at, tensor, n, scale in steps:
            for _ in range(3):
                put(tensor, n, scale)
                expected[at] *= np.copysign(float(n), scale)
            assert values(stream, *arrays) == expected
            expected = [1.0, 1.0]
            for array in arrays:
                stream.fill(array, 1)


def test_memory_that_moved_is_found_where_it_is(
    stream: cudadrv.Stream, put: cudadrv.Launcher
) -> None:
    arrays = [ones(stream) for _ in "abc"]
    tensor = Tensor(arrays[0])
    for array in arrays * 2:
        tensor.pointer = array.ptr
        for _ in range(3):
            put(tensor, 2, 1.0)
    assert values(stream, *arrays) == [64.0] * 3


class Place:
    """An address that may change, as an array of NumPy without dimensions is."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number


def test_an_address_that_is_no_number_is_read_anew_and_released(
    stream: cudadrv.Stream, put: cudadrv.Launcher
) -> None:
    arrays = [ones(stream) for _ in "ab"]
    tensor, place = Tensor(arrays[0]), Place(0)
    vars(tensor)["pointer"] = place
    for array in arrays * 2:
        place.number = array.ptr
        for _ in range(3):
            put(tensor, 2, 1.0)
    assert values(stream, *arrays) == [64.0] * 2
    known = weakref.ref(place)
    del place, tensor
    assert known() is None


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("place", 7, WrongDeviceError),
        ("place", -1, ArgumentError),
        ("dtype", DOUBLE, ArgumentError),
        ("lazy", True, ArgumentError),
        ("pointer", None, ArgumentError),
        ("pointer", -8, ArgumentError),
        ("__class__", Stranger, ArgumentError),
    ],
)
@pytest.mark.parametrize("is_new", [False, True])
def test_what_changed_at_the_same_address_is_rejected(
    stream: cudadrv.Stream,
    put: cudadrv.Launcher,
    name: str,
    value: object,
    error: type[Exception],
    is_new: bool,
) -> None:
    array = ones(stream)
    tensor = Tensor(array)
    for _ in range(4):
        put(tensor, 2, 1.0)
    if is_new:
        del tensor  # the next object has its place in memory
        tensor = Tensor(array)
    former = getattr(tensor, name)
    setattr(tensor, name, value)
    for _ in range(2):
        with pytest.raises(error):
            put(tensor, 2, 1.0)
    setattr(tensor, name, former)
    put(tensor, 2, 1.0)
    assert values(stream, array) == [32.0]


class Five:
    """Equal to 5, and no number."""

    def __eq__(self, other: object) -> bool:
        return other == 5

    __hash__ = None  # type: ignore[assignment]  # as of what only compares


@pytest.mark.parametrize(
    ("n", "scale"),
    [(Five(), 1.0), (5.0, 1.0), (1 << 40, 1.0), ("5", 1.0), (None, 1.0), (5, np.complex64(1 + 2j))],
)
@pytest.mark.filterwarnings("ignore")  # as NumPy may warn of a part that is lost
def test_a_number_that_is_none_is_rejected_beside_the_same_memory(
    stream: cudadrv.Stream, put: cudadrv.Launcher, n: object, scale: object
) -> None:
    array = ones(stream)
    tensor = Tensor(array)
    for _ in range(4):
        put(tensor, 5, 1.0)
    for _ in range(2):
        with pytest.raises(ArgumentError):
            put(tensor, n, scale)
    put(tensor, 5, 1.0)
    assert values(stream, array) == [5.0**5]


def test_memory_of_ours_beside_theirs_is_looked_at_too(
    stream: cudadrv.Stream, add: cudadrv.Launcher
) -> None:
    arrays = [ones(stream) for _ in "abc"]
    tensor = Tensor(arrays[0])
    stream.fill(arrays[1], 10)
    stream.fill(arrays[2], 100)
    for ours, n in ((arrays[1], 1), (arrays[2], 1), (arrays[2], 2)):
        for _ in range(3):
            add(tensor, ours, n)
    assert values(stream, arrays[0]) == [1.0 + 3 * (11 + 101 + 102)]
    arrays[1].close()
    for _ in range(2):
        with pytest.raises(ClosedError):
            add(tensor, arrays[1], 2)
    add(tensor, arrays[2], 2)
    assert values(stream, arrays[0]) == [1.0 + 3 * 214 + 102]


def test_the_librarys_stream_is_requested_and_waited_for_at_each_launch(
    context: cudadrv.Context,
    stream: cudadrv.Stream,
    add: cudadrv.Launcher,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with context.new_stream() as one, context.new_stream() as other:
        x, y = ones(one), ones(one)
        one.synchronize()
        theirs = Tensor(x), Tensor(y)
        for _ in range(3):
            add(*theirs, 0)
        for n, producer in enumerate((one, other, other, one, one)):
            stream.synchronize()  # who writes next is not ordered after what reads
            monkeypatch.setitem(_current, 0, int(producer.handle))
            producer.fill(x, 7)
            producer.fill(y, n)
            _asked.clear()
            add(*theirs, 0)
            assert _asked == [0]
            assert values(stream, x) == [7.0 + n]


def test_a_capture_between_has_the_arguments_of_its_own(
    stream: cudadrv.Stream, put: cudadrv.Launcher
) -> None:
    arrays = [ones(stream) for _ in "ab"]
    first, second = map(Tensor, arrays)
    stream.synchronize()
    for _ in range(4):
        put(first, 2, 1.0)
    with stream.capture() as graph:
        put(second, 3, 1.0)
        put(first, 2, 1.0)
    put(first, 2, 1.0)
    assert values(stream, *arrays) == [32.0, 1.0]
    graph.instantiate().launch(stream)
    put(first, 2, 1.0)
    assert values(stream, *arrays) == [128.0, 3.0]


def test_nothing_holds_an_object_that_was_launched_with(
    kernels: cudadrv.Module, stream: cudadrv.Stream, put: cudadrv.Launcher
) -> None:
    array = ones(stream)
    tensor = Tensor(array)
    attributes = dict(vars(tensor))
    config = LaunchConfig(1, 1)
    for _ in range(5):
        kernels.kernel("put").launch(stream, config, tensor, 2, 1.0)
        put(tensor, 2, 1.0)
    # Some libraries exchange an object's inside only while there is no weak reference to it.
    assert weakref.getweakrefcount(tensor) == 0
    assert vars(tensor) == attributes
    known = weakref.ref(tensor)
    del tensor
    assert known() is None
