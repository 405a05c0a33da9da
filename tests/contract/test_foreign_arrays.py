"""Arrays of other libraries taken over without copying, and ours given to them."""

from __future__ import annotations

import ctypes
import gc
import weakref
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.driver.driver_selection import current
from cudadrv.errors import (
    ArgumentError,
    ArgumentTypeError,
    CopyError,
    DTypeError,
    InvalidValueError,
    WrongDeviceError,
)
from cudadrv.memory.array import AnyDeviceArray
from tests.noted_calls import calls_of, failed_calls
from tests.rows import all_rows

from .conftest import compile_module
from .protocols import ByDlpack, ByInterface, pointer_of_capsule

HOST = np.arange(24, dtype="f4").reshape(2, 3, 4)
_set_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi)
)
USED = b"used_dltensor"


class Consumer:
    """What takes a capsule as the protocol wants it, and gives the tensor back."""

    def __init__(self, array: AnyDeviceArray) -> None:
        self._capsule = array.__dlpack__()
        self._address = pointer_of_capsule(self._capsule, b"dltensor")
        _set_name(self._capsule, USED)

    def release(self) -> None:
        deleter = ctypes.c_void_p.from_address(self._address + 56).value
        assert deleter is not None
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(self._address)


def test_memory_of_another_library_is_an_array_here(context: cudadrv.Context) -> None:
    with context.new_stream() as theirs, context.new_stream() as ours:
        array = theirs.to_device(HOST)
        forms = (
            array,
            ByDlpack(array),
            ByInterface(array),
            ByInterface(array, stream=None),
            ByInterface(array, stream=1),
            ByInterface(array, strides=HOST.strides),
            ByInterface(array, version=2),
        )
        for form in forms:
            taken = ours.import_array(form)
            assert (taken.ptr, taken.shape, taken.dtype) == (array.ptr, HOST.shape, HOST.dtype)
            assert np.array_equal(ours.to_host(taken[1, 2]), HOST[1, 2])
        ours.fill(taken, 7)
        theirs.wait(ours)
        assert (theirs.to_host(array) == 7).all()
        taken.close()
        assert not array.closed


@all_rows
@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1, 3), (2, 1, 2)])
def test_dlpack_keeps_dtype_and_shape(
    stream: cudadrv.Stream, dtype: str, shape: tuple[int, ...]
) -> None:
    taken = stream.import_array(ByDlpack(stream.zeros(shape, dtype)))
    assert (taken.shape, taken.dtype) == (shape, np.dtype(dtype))
    assert not stream.to_host(taken).any()


@pytest.mark.parametrize(
    ("name", "stand_in", "code"),
    [("bfloat16", "u2", 4), ("float8_e4m3fn", "u1", 10), ("float8_e5m2", "u1", 12)],
)
def test_dlpack_brings_small_floats_where_ml_dtypes_is(
    stream: cudadrv.Stream, name: str, stand_in: str, code: int
) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = np.dtype(getattr(ml_dtypes, name))
    bits = stream.to_device(np.array([1.5, -2], dtype).view(stand_in))
    taken = stream.import_array(ByDlpack(bits, code=code))
    assert taken.dtype == dtype
    assert stream.to_host(taken).astype("f4").tolist() == [1.5, -2.0]


def test_a_tensor_that_requires_a_gradient_is_accepted(stream: cudadrv.Stream) -> None:
    class Tensor(ByDlpack):
        requires_grad = True

        def __dlpack__(self, *, stream: int | None = None) -> object:
            raise BufferError("use tensor.detach()")

        def detach(self) -> ByDlpack:
            return ByDlpack(self._array)

    array = stream.to_device(HOST)
    taken = stream.import_array(Tensor(array))
    assert taken.ptr == array.ptr
    assert np.array_equal(stream.to_host(taken), HOST)


def test_structures_come_by_the_array_interface(stream: cudadrv.Stream) -> None:
    array = stream.to_device(np.array([b"ab", b"cde"], "S3"))
    assert stream.to_host(stream.import_array(ByInterface(array))).tolist() == [b"ab", b"cde"]


def test_structures_keep_their_fields(stream: cudadrv.Stream) -> None:
    host = np.array([(1, 2.5), (3, 4.5)], "i4,>f8")
    array = stream.to_device(host)
    taken = stream.import_array(ByInterface(array, typestr="|V12", descr=host.dtype.descr))
    assert taken.dtype == host.dtype
    assert stream.to_host(taken).tolist() == host.tolist()
    for typestr in ("|V16", None):
        with pytest.raises(ArgumentTypeError, match="cannot be read"):
            stream.import_array(ByInterface(array, typestr=typestr, descr=host.dtype.descr))


STRUCTURES = {
    "aligned": np.dtype([("a", "i1"), ("b", "f8")], align=True),
    "nested": np.dtype([("a", "i2"), ("b", [("c", "f4"), ("d", "u1", (3,))], (2,))]),
    "swapped": np.dtype(">f4,>i4"),
}


@pytest.mark.parametrize("dtype", STRUCTURES.values(), ids=STRUCTURES)
def test_the_array_interface_has_the_fields_of_structures(
    stream: cudadrv.Stream, dtype: np.dtype[Any]
) -> None:
    taken = stream.import_array(ByInterface(stream.zeros(3, dtype)))
    assert taken.dtype == dtype
    assert taken.dtype.names == dtype.names


def test_the_array_interface_leaves_out_fields_that_overlap(stream: cudadrv.Stream) -> None:
    dtype = np.dtype({"names": ["a", "b"], "formats": ["i4", "i2"], "offsets": [0, 2]})
    assert "descr" not in stream.zeros(3, dtype).__cuda_array_interface__
    assert "descr" not in stream.zeros(3, "f4").__cuda_array_interface__


def test_where_a_host_array_is_due_the_error_names_the_import(stream: cudadrv.Stream) -> None:
    array = stream.to_device(HOST)
    foreign: Any = ByInterface(array)  # the type checker rejects it, too
    for use in (stream.to_device, cudadrv.In, lambda value: array.__setitem__(..., value)):
        with pytest.raises(ArgumentTypeError, match="give Stream.import_array"):
            use(foreign)
    with pytest.raises(InvalidValueError, match="give Stream.import_array"):
        stream.fill(array, foreign)


def test_a_taken_array_keeps_its_owner(stream: cudadrv.Stream) -> None:
    for make in (ByDlpack, ByInterface):
        owner = make(stream.to_device(HOST))
        alive = weakref.ref(owner)
        part = stream.import_array(owner)[1]
        del owner
        gc.collect()
        assert alive() is not None
        assert np.array_equal(stream.to_host(part), HOST[1])
        del part
        gc.collect()
        assert alive() is None


def test_what_has_no_counterpart_here_is_rejected(stream: cudadrv.Stream) -> None:
    array = stream.to_device(HOST)
    with pytest.raises(CopyError, match="with a mask"):
        stream.import_array(ByInterface(array, mask=array))
    with pytest.raises(DTypeError, match="type code 4 with 8 bits"):
        stream.import_array(ByDlpack(array, code=4, bits=8))
    with pytest.raises(DTypeError, match="with 4 bits"):
        stream.import_array(ByDlpack(array, code=1, bits=4))
    for thing in (HOST, 3, None, object()):
        with pytest.raises(TypeError, match="is not a device array"):
            stream.import_array(thing)


def test_memory_of_another_device_is_rejected(
    stream: cudadrv.Stream, second_context: cudadrv.Context
) -> None:
    array = second_context.default_stream.zeros(4, "f4")
    for form in (ByInterface(array, stream=None), ByDlpack(array)):
        with pytest.raises(WrongDeviceError, match="on device 1"):
            stream.import_array(form)


def test_memory_of_a_pool_of_another_device_is_rejected(
    stream: cudadrv.Stream, second_context: cudadrv.Context
) -> None:
    if not current().is_emulated and version("cuda-bindings") < "13.4":
        pytest.skip("needs cuda-bindings that tell the device of memory (13.4)")
    with cudadrv.MemoryPool(second_context.device) as pool, cudadrv.using_memory(pool):
        array = second_context.default_stream.zeros(4, "f4")
    with pytest.raises(WrongDeviceError, match="on device 1"):
        stream.import_array(ByInterface(array, stream=None))
    array.close()


def test_the_device_of_memory_is_found_by_one_query_after_memory_of_its_kind(
    stream: cudadrv.Stream, second_context: cudadrv.Context
) -> None:
    with cudadrv.using_memory(cudadrv.memory.UnpooledMemory()):
        of_context = ByInterface(stream.zeros(4, "f4"), stream=None)
    of_pool = ByInterface(stream.zeros(4, "f4"), stream=None)
    for kind in (of_pool, of_context, of_pool):
        stream.import_array(kind)
        with calls_of("cuPointerGetAttributes") as queries:
            stream.import_array(kind)
        assert len(queries) == 1


def test_an_exported_array_lives_until_it_is_released(stream: cudadrv.Stream) -> None:
    array = stream.to_device(HOST)
    alive = weakref.ref(array)
    consumer = Consumer(array)
    del array
    gc.collect()
    assert alive() is not None
    consumer.release()
    gc.collect()
    assert alive() is None


def test_a_capsule_without_a_consumer_releases_its_array(stream: cudadrv.Stream) -> None:
    array = stream.to_device(HOST)
    alive = weakref.ref(array)
    capsules = [array.__dlpack__() for _ in range(3)]
    del array
    gc.collect()
    assert alive() is not None
    del capsules
    gc.collect()
    assert alive() is None


def test_an_exception_on_its_way_outlives_what_is_dropped_with_it(stream: cudadrv.Stream) -> None:
    def drop(array: AnyDeviceArray) -> object:
        # The capsule goes while the exception unwinds the list.
        return [array.__dlpack__(), 1 / 0]

    array = stream.to_device(HOST)
    alive = weakref.ref(array)
    with pytest.raises(ZeroDivisionError):
        drop(array)
    del array
    gc.collect()
    assert alive() is None


def test_a_consumer_that_accepts_no_device_memory_reports_it(stream: cudadrv.Stream) -> None:
    with pytest.raises((BufferError, RuntimeError), match="Unsupported device"):  # NumPy 2 and 1
        np.from_dlpack(stream.zeros(3, "f4"))  # type: ignore[arg-type]  # what is tested


def test_a_capture_accepts_memory_that_another_stream_has_just_written(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    source = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }'
    launcher = compile_module(context, source).kernel("twice").bind(stream, LaunchConfig(1, 24))
    with context.new_stream() as theirs:
        array = theirs.to_device(HOST)
        by_stream, by_legacy = ByInterface(array), ByInterface(array, stream=1)
        with stream.capture() as graph:
            launcher(by_stream)
            launcher(by_legacy)
            stream.fill(stream.import_array(by_stream)[0], 5)
        graph.instantiate().launch(stream)
        assert np.array_equal(stream.to_host(array)[1], 4 * HOST[1])
        assert (stream.to_host(array[0]) == 5).all()


def test_an_array_of_another_context_of_the_device_is_waited_for(context: cudadrv.Context) -> None:
    theirs = ByInterface(context.default_stream.to_device(HOST))
    legacy = ByInterface(context.default_stream.to_device(HOST), stream=1)
    with cudadrv.Context.create(0) as own, own.new_stream() as stream:
        with failed_calls() as failed:
            for array in (theirs, legacy, theirs, legacy):
                assert np.array_equal(stream.to_host(stream.import_array(array)), HOST)
        assert failed == []


def test_a_stream_of_the_own_context_is_queried_once_for_its_context(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    with context.new_stream() as other, failed_calls() as failed:
        theirs = ByInterface(other.to_device(HOST))
        stream.import_array(theirs)
        with calls_of("cuStreamGetCtx") as asked:
            assert np.array_equal(stream.to_host(stream.import_array(theirs)), HOST)
        assert (asked, failed) == ([], [])


def test_the_number_of_a_stream_may_be_that_of_one_in_another_context_later(
    context: cudadrv.Context,
) -> None:
    theirs = context.default_stream.to_device(HOST)
    with cudadrv.Context.create(0) as own, own.new_stream() as stream:
        of_another = context.default_stream.handle
        own._handle.known_streams[int(of_another)] = of_another
        taken = stream.import_array(ByInterface(theirs))
        assert np.array_equal(stream.to_host(taken), HOST)
        with failed_calls() as failed:
            stream.import_array(ByInterface(theirs))
        assert failed == []


def test_an_imported_array_closes_with_a_context_of_ones_own(context: cudadrv.Context) -> None:
    theirs = ByInterface(context.default_stream.to_device(HOST))
    with (
        failed_calls() as failed,
        cudadrv.Context.create(0) as own,
        own.new_stream() as stream,
    ):
        taken = stream.import_array(theirs)
    assert (taken.closed, failed) == (True, [])
    with pytest.raises(cudadrv.ClosedError):
        _ = taken.ptr


def test_a_tensor_of_the_host_is_rejected_with_the_way_to_copy_it(stream: cudadrv.Stream) -> None:
    class OfHost:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

        def __dlpack__(self, **options: object) -> object:
            raise AssertionError("its device tells enough")

    kernel = stream.context.compile_kernel('extern "C" __global__ void k(float* x) {}')
    with pytest.raises(cudadrv.ArgumentError, match=r"on no CUDA device: .* Stream\.to_device"):
        kernel.launch(stream, cudadrv.LaunchConfig(1, 1), OfHost())


class ExportsCopies:
    """Has its values in no memory of its own: each export is a new copy, which its tensor keeps."""

    def __init__(self, stream: cudadrv.Stream, number: int) -> None:
        self._stream, self._number = stream, number

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self._stream.context.ordinal

    def __dlpack__(self, **options: Any) -> object:
        return self._stream.to_device(np.full(64, self._number, "i4")).__dlpack__(**options)


def launched(kernel: cudadrv.Kernel, stream: cudadrv.Stream, *args: object) -> None:
    kernel.launch(stream, LaunchConfig(1, 64), *args)


def bound(kernel: cudadrv.Kernel, stream: cudadrv.Stream, *args: object) -> None:
    launcher = kernel.bind(stream, LaunchConfig(1, 64))
    launcher(*args)
    launcher(*args)


def prepared(kernel: cudadrv.Kernel, stream: cudadrv.Stream, *args: object) -> None:
    ready = kernel.bind(stream, LaunchConfig(1, 64)).prepare(*args)
    gc.collect()
    ready()
    ready()


def prepared_and_captured(kernel: cudadrv.Kernel, stream: cudadrv.Stream, *args: object) -> None:
    ready = kernel.bind(stream, LaunchConfig(1, 64)).prepare(*args)
    with stream.capture() as graph:
        ready()
    del ready
    replayed(graph, stream)


def captured(kernel: cudadrv.Kernel, stream: cudadrv.Stream, *args: object) -> None:
    with stream.capture() as graph:
        kernel.launch(stream, LaunchConfig(1, 64), *args)
    replayed(graph, stream)


def built(kernel: cudadrv.Kernel, stream: cudadrv.Stream, *args: object) -> None:
    graph = stream.context.new_graph()
    graph.add_kernel(kernel, LaunchConfig(1, 64), *args)
    replayed(graph, stream)


def updated(kernel: cudadrv.Kernel, stream: cudadrv.Stream, *args: object) -> None:
    graph = stream.context.new_graph()
    unused = stream.zeros(64, "i4")
    node = graph.add_kernel(kernel, LaunchConfig(1, 64), unused, unused)
    node.update(kernel, LaunchConfig(1, 64), *args)
    replayed(graph, stream)


def replayed(graph: cudadrv.Graph, stream: cudadrv.Stream) -> None:
    with graph.instantiate() as executable:
        gc.collect()
        executable.launch(stream)
        executable.launch(stream)


@pytest.mark.parametrize(
    "way", [launched, bound, prepared, prepared_and_captured, captured, built, updated]
)
def test_memory_of_a_tensor_alone_lives_until_its_kernel_has_run(
    stream: cudadrv.Stream, way: Any
) -> None:
    """An export may be a copy, which is freed with the tensor that the consumer took."""
    kernel = stream.context.compile_kernel(
        'extern "C" __global__ void k(int* to, const int* from)'
        "{ to[threadIdx.x] = from[threadIdx.x]; }"
    )
    copied = stream.empty(64, "i4")
    way(kernel, stream, copied, ExportsCopies(stream, 7))
    stream.fill(stream.empty(64, "i4"), 9)  # takes the memory if it was freed too early
    assert stream.to_host(copied).tolist() == [7] * 64


class Contradiction:
    """Names the GPU, and exports memory of another place."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, **options: object) -> object:
        return np.zeros(4, "f4").__dlpack__()


def test_a_tensor_that_is_not_where_its_library_says_is_reported_with_both_places(
    stream: cudadrv.Stream,
) -> None:
    words = (
        "memory of DLPack's device type 1 in its capsule, but its __dlpack_device__ is (2, 0)\n"
        "  let both of them name the device of the memory"
    )
    with pytest.raises(ArgumentTypeError) as imported:
        stream.import_array(Contradiction())
    assert str(imported.value) == f"a Contradiction has {words}"
    kernel = stream.context.compile_kernel('extern "C" __global__ void k(int n, float* x) {}')
    with pytest.raises(ArgumentError) as launched:
        kernel.launch(stream, LaunchConfig(1, 1), 3, Contradiction())
    assert str(launched.value) == (
        f"argument 1 of kernel 'k' is of type Contradiction and has {words}"
    )
