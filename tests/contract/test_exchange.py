"""Arrays of libraries with DLPack's exchange functions, as arrays here and in launches."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.errors import ArgumentError, ArgumentTypeError, CopyError, WrongDeviceError
from cudadrv.interop import Reader, register
from cudadrv.memory.array import AnyDeviceArray
from tests.contract.interop.exchanging_library import Array, Library, address_of, silent_failure

HOST = np.arange(24, dtype="f4").reshape(2, 3, 4)
SOURCE = """
extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }
extern "C" __global__ void copy(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }
"""
# Functions of C with the right arguments that fail and set an exception.
NO_LENGTH = address_of(ctypes.pythonapi.PyObject_Size)
BAD_ARGUMENT = address_of(ctypes.pythonapi.PyErr_BadArgument)


@pytest.fixture
def twice(kernels: cudadrv.Module, stream: cudadrv.Stream) -> cudadrv.Launcher:
    return kernels.kernel("twice").bind(stream, LaunchConfig(1, 4))


@pytest.fixture
def library(stream: cudadrv.Stream) -> Library:
    library = Library()
    library.current = int(stream.handle)
    return library


def test_an_array_is_imported_by_the_exchange_functions(
    stream: cudadrv.Stream, library: Library
) -> None:
    array = stream.to_device(HOST)
    taken = stream.import_array(library.kind(array))
    assert (taken.ptr, taken.shape, taken.dtype) == (array.ptr, HOST.shape, HOST.dtype)
    assert np.array_equal(stream.to_host(taken), HOST)
    assert (library.loans, library.by_method, library.asked) == (1, 0, [(2, 0)])


def test_strides_and_an_offset_are_retained(stream: cudadrv.Stream, library: Library) -> None:
    array = stream.to_device(HOST)
    for part, host in (
        (array.T, HOST.T),
        (array[::2, ::-1, 1::2], HOST[::2, ::-1, 1::2]),
        (array[1, 2, 3], HOST[1, 2, 3]),
        (array[:0], HOST[:0]),
    ):
        taken = stream.import_array(library.kind(part))
        assert np.array_equal(stream.to_host(taken), host)
    compact = stream.import_array(library.kind(array, strides=0, byte_offset=0))
    assert np.array_equal(stream.to_host(compact), HOST)
    offset = stream.import_array(library.kind(array[0], byte_offset=48))
    assert np.array_equal(stream.to_host(offset), HOST[1])


@pytest.mark.parametrize(
    ("name", "stand_in", "code"),
    [("bfloat16", "u2", 4), ("float8_e4m3fn", "u1", 10), ("float8_e5m2", "u1", 12)],
)
def test_small_floats_come_by_the_exchange_functions(
    stream: cudadrv.Stream, library: Library, name: str, stand_in: str, code: int
) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = np.dtype(getattr(ml_dtypes, name))
    bits = stream.to_device(np.array([1.5, -2], dtype).view(stand_in))
    taken = stream.import_array(library.kind(bits, code=code))
    assert taken.dtype == dtype
    assert stream.to_host(taken).astype("f4").tolist() == [1.5, -2.0]


def test_a_launch_accepts_an_array_and_returns_its_tensor(
    stream: cudadrv.Stream, library: Library, twice: cudadrv.Launcher
) -> None:
    first, second = stream.to_device(HOST[0]), stream.to_device(HOST[1])
    for count in range(1, 5):
        twice(library.kind(first))
        twice(library.kind(second, byte_offset=16))
        assert library.loans == 2 * count
        assert not library.lent
    assert stream.to_host(first)[0].tolist() == (HOST[0, 0] * 16).tolist()
    assert stream.to_host(second)[:2].tolist() == [HOST[1, 0].tolist(), (HOST[1, 1] * 16).tolist()]
    assert library.by_method == 0


def test_a_launch_rejects_another_type_and_what_may_only_be_read(
    kernels: cudadrv.Module, stream: cudadrv.Stream, library: Library, twice: cudadrv.Launcher
) -> None:
    array, out = stream.to_device(HOST[0]), stream.zeros(4, "f4")
    with pytest.raises(ArgumentError, match="argument 0 .* has elements of float64"):
        twice(library.kind(stream.zeros(4, "f8")))
    with pytest.raises(ArgumentError, match="has elements of bfloat16"):
        twice(library.kind(stream.zeros(4, "u2"), code=4))
    with pytest.raises(ArgumentError, match="may only be read"):
        twice(library.kind(array, flags=1))
    copy = kernels.kernel("copy").bind(stream, LaunchConfig(1, 4))
    copy(library.kind(array, flags=1), library.kind(out))
    assert stream.to_host(out).tolist() == HOST[0, 0].tolist()
    assert not library.lent


def test_a_tensor_and_its_object_stay_as_long_as_the_array(
    stream: cudadrv.Stream, library: Library
) -> None:
    part = stream.import_array(library.kind(stream.to_device(HOST)))[1]
    gc.collect()
    assert len(library.lent) == 1
    assert np.array_equal(stream.to_host(part), HOST[1])
    del part
    stream.synchronize()
    gc.collect()
    assert not library.lent
    for _ in range(2):
        with stream.import_array(library.kind(stream.to_device(HOST))):
            assert len(library.lent) == 1
        stream.synchronize()
        gc.collect()
        assert not library.lent


def test_an_exception_on_its_way_outlives_a_tensor_that_is_released(
    stream: cudadrv.Stream, library: Library
) -> None:
    def drop(array: AnyDeviceArray) -> object:
        return [stream.import_array(library.kind(array)), 1 / 0]

    with pytest.raises(ZeroDivisionError):
        drop(stream.to_device(HOST))
    stream.synchronize()
    gc.collect()
    assert not library.lent


def test_a_tensor_without_a_deleter_is_accepted(stream: cudadrv.Stream, library: Library) -> None:
    taken = stream.import_array(library.kind(stream.to_device(HOST), deleter=0))
    assert np.array_equal(stream.to_host(taken), HOST)


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(lambda: Library(major=2), id="newer"),
        pytest.param(lambda: Library(major=0), id="older"),
        pytest.param(lambda: Library(from_object=None), id="no-tensor"),
        pytest.param(lambda: Library(work_stream=None), id="no-stream"),
        pytest.param(lambda: Library(b"another"), id="another-capsule"),
        pytest.param(lambda: Library(major=2, prev_api=Library(major=0).table), id="newer-older"),
    ],
)
def test_functions_that_are_not_whole_leave_it_to_the_method(
    stream: cudadrv.Stream, twice: cudadrv.Launcher, made: Callable[[], Library]
) -> None:
    library, array = made(), stream.to_device(HOST)
    twice(library.kind(array[0]))
    taken = stream.import_array(library.kind(array))
    assert (library.loans, library.by_method) == (0, 2)
    assert stream.to_host(taken)[0, 0].tolist() == (HOST[0, 0] * 2).tolist()


def test_functions_of_the_known_version_are_found_after_newer_ones(
    stream: cudadrv.Stream, library: Library
) -> None:
    newer = Library(major=3, prev_api=Library(major=2, prev_api=library.table).table)
    taken = stream.import_array(newer.kind(stream.to_device(HOST)))
    assert np.array_equal(stream.to_host(taken), HOST)
    assert (library.loans, newer.loans, newer.by_method) == (1, 0, 0)


def test_a_class_that_exports_otherwise_than_its_base_is_queried_by_its_method(
    stream: cudadrv.Stream, library: Library
) -> None:
    other = stream.to_device(HOST + 1)

    class Otherwise(library.kind):  # type: ignore[name-defined, misc]  # a class of this library's
        def __dlpack__(self, **asked: Any) -> object:
            return other.__dlpack__(**asked)

    class Likewise(library.kind):  # type: ignore[name-defined, misc]  # the same
        pass

    array = stream.to_device(HOST)
    assert stream.import_array(Otherwise(array)).ptr == other.ptr
    assert library.loans == 0
    assert stream.import_array(Likewise(array)).ptr == array.ptr
    assert library.loans == 1


def test_a_tensor_of_another_version_is_rejected_and_released(
    stream: cudadrv.Stream, library: Library, twice: cudadrv.Launcher
) -> None:
    theirs = library.kind(stream.to_device(HOST), major=2)
    with pytest.raises(ArgumentTypeError, match=r"is of DLPack 2\.3, of which 1 is known"):
        stream.import_array(theirs)
    with pytest.raises(ArgumentError, match=r"is of DLPack 2\.3"):
        twice(theirs)
    assert library.loans == 2
    assert not library.lent


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"from_object": NO_LENGTH}, r"has no len\(\)"),
        ({"work_stream": BAD_ARGUMENT}, "bad argument type"),
        ({"from_object": silent_failure(2)}, "managed_tensor_from_py_object_no_sync"),
        ({"work_stream": silent_failure(3)}, "current_work_stream of a library's"),
    ],
)
def test_the_error_of_a_function_is_in_an_argument_error(
    stream: cudadrv.Stream, twice: cudadrv.Launcher, changed: dict[str, int], words: str
) -> None:
    library, array = Library(**changed), stream.to_device(HOST)
    with pytest.raises(ArgumentTypeError, match=f"has memory that cannot be read\n.*{words}"):
        stream.import_array(library.kind(array))
    with pytest.raises(ArgumentError, match=f"(?s)argument 0 of kernel 'twice' .*{words}"):
        twice(library.kind(array))
    gc.collect()
    assert not library.lent
    assert library.by_method == 0


def test_a_tensor_on_another_device_is_rejected(
    stream: cudadrv.Stream, library: Library, twice: cudadrv.Launcher
) -> None:
    theirs = library.kind(stream.to_device(HOST), device_id=1)
    with pytest.raises(WrongDeviceError, match="a Array on device 1 was given to <Stream"):
        stream.import_array(theirs)
    with pytest.raises(WrongDeviceError, match="a Array on device 1 was given to <Stream"):
        twice(theirs)
    assert library.asked == []
    assert not library.lent


def test_memory_of_the_host_is_rejected_and_its_functions_are_not_queried(
    stream: cudadrv.Stream, library: Library, twice: cudadrv.Launcher
) -> None:
    theirs = library.kind(stream.to_device(HOST), device_type=1)
    with pytest.raises(TypeError, match="a Array is not a device array"):
        stream.import_array(theirs)
    with pytest.raises(ArgumentError, match="argument 0 of kernel 'twice' is of type Array"):
        twice(theirs)
    assert library.loans == 0


def test_functions_alone_are_enough(stream: cudadrv.Stream, library: Library) -> None:
    class Bare:
        __dlpack_c_exchange_api__ = vars(library.kind)["__dlpack_c_exchange_api__"]

        def __init__(self, array: AnyDeviceArray, **edit: int) -> None:
            self.array, self.edit = array, edit

    array = stream.to_device(HOST)
    assert np.array_equal(stream.to_host(stream.import_array(Bare(array))), HOST)
    with pytest.raises(TypeError, match="a Bare is not a device array"):
        stream.import_array(Bare(array, device_type=1))
    gc.collect()
    assert not library.lent


def test_a_reader_reports_whether_the_functions_know_enough(stream: cudadrv.Stream) -> None:
    def pointer(value: Array) -> int:
        return value.array.ptr

    def reject(value: Array) -> bool:
        raise BufferError("is negated only when it is read")

    def on_this(value: Array) -> int:
        return 0

    def current(ordinal: int) -> int:
        return int(stream.handle)

    array = stream.to_device(HOST)
    counts = {
        Reader(pointer, on_this, current): (1, 0),
        Reader(pointer, on_this): (0, 1),
        Reader(pointer, lambda _: -1, current): (0, 1),
    }
    for reader, expected in counts.items():
        library = Library()
        register(library.kind, reader)
        assert stream.import_array(library.kind(array)).ptr == array.ptr
        assert (library.loans, library.by_method) == expected
    for reader in (
        Reader(pointer, on_this, current, examine=reject),
        Reader(pointer, on_this, examine=reject),
    ):
        library = Library()
        register(library.kind, reader)
        with pytest.raises(CopyError, match="a Array is negated only when it is read"):
            stream.import_array(library.kind(array))
        gc.collect()
        assert not library.lent
