"""Closing an array and its views in every order.

The oracle: closing a base closes all, closing a view closes that view alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import permutations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

import cudadrv
from cudadrv import DeviceArray, DeviceBuffer, LaunchConfig
from cudadrv.errors import ClosedError
from cudadrv.memory.resource import MemoryStream

from .conftest import compile_module

DATA = np.arange(24, dtype=np.int32).reshape(4, 6)
AnyArray: TypeAlias = DeviceArray[Any]
_SOURCE = """
__device__ int table[24];
extern "C" __global__ void add(int* x, int n) { if (threadIdx.x == 0) x[n] += 1; }
"""


class Owner:
    """An object of another library, which owns device memory."""

    def __init__(self, array: AnyArray) -> None:
        self.array = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def _in_buffer(stream: cudadrv.Stream, _: cudadrv.Module | None) -> tuple[DeviceBuffer, AnyArray]:
    buffer = stream.alloc(DATA.nbytes)
    array: AnyArray = DeviceArray(buffer, DATA.shape, DATA.dtype)
    stream.copy(array, DATA)
    return buffer, array


def _fortran(stream: cudadrv.Stream, _: cudadrv.Module | None) -> tuple[AnyArray, AnyArray]:
    array = stream.to_device(DATA, order="F")
    return array, array


def _pitched(stream: cudadrv.Stream, _: cudadrv.Module | None) -> tuple[AnyArray, AnyArray]:
    array = stream.empty_pitched(DATA.shape, DATA.dtype)
    stream.copy(array, DATA)
    return array, array


def _usual(stream: cudadrv.Stream, _: cudadrv.Module | None) -> tuple[AnyArray, AnyArray]:
    array = stream.to_device(DATA)
    return array, array


def _imported(stream: cudadrv.Stream, _: cudadrv.Module | None) -> tuple[AnyArray, AnyArray]:
    array = stream.import_array(Owner(stream.to_device(DATA)))
    return array, array


def _pinned(stream: cudadrv.Stream, _: cudadrv.Module | None) -> tuple[AnyArray, AnyArray]:
    host = cudadrv.pinned_empty(DATA.shape, DATA.dtype)
    host[...] = DATA
    array = stream.in_place(host)
    return array, array


def _global(stream: cudadrv.Stream, module: cudadrv.Module) -> tuple[AnyArray, AnyArray]:
    array = module.global_array("table", DATA.shape, DATA.dtype)
    stream.copy(array, DATA)
    return array, array


BASES = (_usual, _fortran, _pitched, _in_buffer, _imported, _pinned, _global)
WAYS: dict[str, Callable[[Any], None]] = {"close": lambda x: x.close(), "with": lambda x: _leave(x)}


def _leave(closeable: Any) -> None:
    with closeable as entered:
        assert entered is closeable


def _family(base: Any, array: AnyArray) -> dict[str, tuple[Any, npt.NDArray[Any] | None]]:
    """Return a base and its views, with their values; a buffer has none."""
    view = array[1:]
    return {
        "base": (base, None if base is not array else DATA),
        "view": (view, DATA[1:]),
        "nested": (view[1:, 2:4], DATA[2:, 2:4]),
        "reordered": (array.T, DATA.T),
    }


def _problems(
    stream: cudadrv.Stream,
    family: dict[str, tuple[Any, npt.NDArray[Any] | None]],
    open_names: set[str],
) -> list[str]:
    problems = []
    for name, (one, values) in family.items():
        if one.closed is (name in open_names):
            problems.append(f"{name}.closed is {one.closed}")
        if values is None:
            continue
        try:
            found = stream.to_host(one)
            if name not in open_names:
                problems.append(f"{name} is closed and was read")
            elif not np.array_equal(found, values):
                problems.append(f"{name} is {found}")
        except ClosedError:
            if name in open_names:
                problems.append(f"{name} is open and was not read")
    return problems


@pytest.mark.slow
def test_closing_a_view_closes_it_alone_and_closing_the_base_closes_all(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    problems, cells = [], 0
    names = ("base", "view", "nested", "reordered")
    orders = [order for count in (1, 2, 3) for order in permutations(names, count)]
    with compile_module(context, _SOURCE) as module:
        for make in BASES:
            for number, order in enumerate(orders):
                base, array = make(stream, module)
                family = _family(base, array)
                del array
                expected = set(names)
                for step, name in enumerate(order):
                    way = ("close", "with")[(number + step) % 2]
                    WAYS[way](family[name][0])
                    expected = set() if name == "base" else expected - {name}
                    cells += 1
                    problems += [
                        f"{make.__name__}, {order[: step + 1]}, {way}: {problem}"
                        for problem in _problems(stream, family, expected)
                    ]
                stream.synchronize()
    assert not problems, "\n".join(problems)
    assert cells == len(BASES) * (4 + 2 * 12 + 3 * 24)


# What is made from an array, by its name.
DERIVED: dict[str, Callable[[cudadrv.Stream, AnyArray], Any]] = {
    "contiguous": lambda stream, x: stream.contiguous(x),
    "contiguous of a copy": lambda stream, x: stream.contiguous(x[:, ::2]),
    "buffer": lambda stream, x: x.buffer,
    "buffer of a buffer": lambda stream, x: x.buffer.buffer,
    "part": lambda stream, x: x[...],
    "reshape": lambda stream, x: x.reshape(x.shape),
    "view": lambda stream, x: x.view(x.dtype),
    "transpose": lambda stream, x: x.transpose(0, 1),
    "import_array": lambda stream, x: stream.import_array(x),
}


@pytest.mark.parametrize("name", DERIVED)
def test_leaving_a_block_of_what_was_made_from_an_array_leaves_the_array_open(
    stream: cudadrv.Stream, name: str
) -> None:
    for make in (_usual, _in_buffer, _imported, _pinned):
        base, array = make(stream, None)
        with DERIVED[name](stream, array):
            pass
        assert not base.closed
        assert np.array_equal(stream.to_host(array), DATA), make.__name__
        stream.synchronize()


def test_a_buffer_of_a_buffer_is_a_view(stream: cudadrv.Stream) -> None:
    buffer = stream.alloc(16)
    with buffer.buffer as same:
        assert (same.ptr, same.nbytes) == (buffer.ptr, 16)
    assert (same.closed, buffer.closed) == (True, False)


def test_the_contiguous_form_of_a_contiguous_array_is_a_view(stream: cudadrv.Stream) -> None:
    array = stream.to_device(DATA)
    dense = stream.contiguous(array)
    assert (dense.ptr, dense.shape, dense.dtype) == (array.ptr, array.shape, array.dtype)
    array.close()
    with pytest.raises(ClosedError, match="was closed"):
        stream.to_host(dense)


def test_a_closed_view_is_in_no_launch_though_it_was_before(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    config = LaunchConfig(1, 32)
    with compile_module(context, _SOURCE) as module:
        add = module.kernel("add")
        x = stream.to_device(DATA)
        view = x[1:]
        launcher = add.bind(stream, config)
        prepared = launcher.prepare(view, 3)
        launches: list[Callable[[], object]] = [
            lambda: add.launch(stream, config, view, 3),
            lambda: launcher(view, 3),
            prepared,
        ]
        for _ in range(20):
            for launch in launches:
                launch()
        view.close()
        for launch in launches:
            with pytest.raises(ClosedError, match="was closed"):
                launch()
        for _ in range(20):
            add.launch(stream, config, x, 9)
        expected = DATA.copy()
        expected[1, 3] += 80
        assert np.array_equal(stream.to_host(x), expected)


def test_memory_is_freed_once_its_last_view_was_closed(
    stream: cudadrv.Stream,
) -> None:
    released: list[int] = []

    def release(pointer: int, nbytes: int, place: MemoryStream) -> None:
        released.append(nbytes)

    held = stream.alloc(DATA.nbytes)
    buffer = DeviceBuffer.adopted(stream, held.ptr, held.nbytes, release)
    array: AnyArray = DeviceArray(buffer, DATA.shape, DATA.dtype)
    view, nested = array[1:], array[1:][1:]
    stream.copy(array, DATA)
    del buffer
    array.close()
    view.close()
    assert not released
    assert np.array_equal(stream.to_host(nested), DATA[2:])
    nested.close()
    assert released == [DATA.nbytes]


def test_a_closed_view_has_its_shape_and_no_memory(stream: cudadrv.Stream) -> None:
    x = stream.to_device(DATA)
    view = x[1:]
    view.close()
    view.close()
    assert (view.closed, view.shape, view.dtype, view.nbytes) == (True, (3, 6), DATA.dtype, 72)
    assert view.stream is stream
    assert view.context is stream.context
    assert "closed" in repr(view)
    assert view.buffer.closed
    with pytest.raises(ClosedError, match=r"the device array of shape \(3, 6\) int32 was closed"):
        _ = view.ptr
    with x.buffer as whole:
        assert whole.nbytes == x.nbytes
    assert np.array_equal(stream.to_host(x), DATA)


def test_comparing_arrays_by_equals_raises_and_sets_find_them(stream: cudadrv.Stream) -> None:
    a, b = stream.to_device(DATA), stream.to_device(DATA)
    pairs: list[tuple[object, object]] = [
        (a, b), (b, a), (a, a[:]), (a, 1.0), (1.0, a), (a, [1]), (a, DATA), (DATA, a),
        (a.T, a), (a.buffer, a.buffer), (stream.alloc(4), stream.alloc(4)), (a, np.float32(1)),
    ]  # fmt: skip
    for left, right in pairs:
        for compare in (lambda x, y: x == y, lambda x, y: x != y, lambda x, y: y in [x]):
            with pytest.raises(TypeError, match="Stream.to_host"):
                compare(left, right)
    for other in (None, stream, "a", object()):
        assert (a == other, a != other, other == a) == (False, True, False)
    # Any: NumPy's types know no device arrays.
    numpy: Any = np
    for function in (numpy.array_equal, numpy.array_equiv, numpy.allclose):
        for left, right in pairs[:9]:
            with pytest.raises(TypeError, match="Stream.to_host"):
                function(left, right)
    with pytest.raises(TypeError, match="Stream.to_host"):
        bytes(a)
    # The other functions are those of NumPy.
    assert (numpy.shape(a.T), numpy.size(a), numpy.ndim(a)) == (DATA.T.shape, DATA.size, DATA.ndim)
    assert {a, b, a} == {b, a}
    assert {a: 1, b: 2}[b] == 2
    assert a in [b, a][1:]
    assert [a, b].index(a) == 0


def test_looking_for_an_array_in_a_list_raises_with_what_to_write_instead(
    stream: cudadrv.Stream,
) -> None:
    a, b = stream.to_device(DATA), stream.to_device(DATA)
    searches: tuple[Callable[[], object], ...] = (
        lambda: b in [a], lambda: b in (a, b), lambda: b not in deque([a]), lambda: [a].index(b),
        lambda: [a].count(b), lambda: [a].remove(b), lambda: [a] == [b], lambda: {1: a} == {1: b},
        lambda: a.buffer in [b], lambda: a[:] in [a],
    )  # fmt: skip
    for search in searches:
        with pytest.raises(TypeError, match=r"use `is`; any\(a is each for each in arrays\)"):
            search()
    arrays = [a, b]
    assert any(b is each for each in arrays)
    assert b in {*arrays}
