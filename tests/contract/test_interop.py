from __future__ import annotations

import ctypes

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.errors import DTypeError, WrongDeviceError

from .conftest import compile_module
from .protocols import ByDlpack, ByInterface, pointer_of_capsule


@pytest.fixture(scope="module")
def double(context: cudadrv.Context) -> cudadrv.Kernel:
    source = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }'
    return compile_module(context, source).kernel("twice")


def test_the_array_interface_describes_the_memory(stream: cudadrv.Stream) -> None:
    array = stream.zeros((2, 3), "<f4")
    assert array.__cuda_array_interface__ == {
        "shape": (2, 3),
        "typestr": "<f4",
        "data": (array.ptr, False),
        "strides": None,
        "stream": int(stream.handle),
        "version": 3,
    }


def test_foreign_memory_is_a_pointer(
    context: cudadrv.Context, stream: cudadrv.Stream, double: cudadrv.Kernel
) -> None:
    launcher = double.bind(stream, LaunchConfig(1, 4))
    with context.new_stream() as producer:
        array = producer.to_device(np.ones(4, "f4"))
        for foreign in (
            ByInterface(array, stream=int(producer.handle)),
            ByInterface(array, stream=1),
            ByInterface(array, stream=None),
            ByDlpack(array),
            array,
        ):
            launcher(foreign)
        assert stream.to_host(array).tolist() == [32.0] * 4


def test_a_launch_waits_for_each_stream_that_its_memory_comes_from(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    source = 'extern "C" __global__ void sum(int* a, int* b, int* c, int n) { *a += *b + *c + n; }'
    launcher = compile_module(context, source).kernel("sum").bind(stream, LaunchConfig(1, 1))
    with context.new_stream() as one, context.new_stream() as other:
        a, b, c = one.zeros(1, "i4"), one.zeros(1, "i4"), other.zeros(1, "i4")
        for n in range(1, 6):
            one.fill(b, n)
            other.fill(c, 10 * n)
            launcher(*(ByInterface(each, stream=int(each.stream.handle)) for each in (a, b, c)), n)
            stream.synchronize()
        assert stream.to_host(a).tolist() == [12 * 15]


def test_what_follows_foreign_memory_may_be_anything_that_fits(
    stream: cudadrv.Stream, context: cudadrv.Context
) -> None:
    source = 'extern "C" __global__ void is_null(int* out, void* p) { *out = p == nullptr; }'
    launcher = compile_module(context, source).kernel("is_null").bind(stream, LaunchConfig(1, 1))
    out = stream.zeros(1, "i4")
    for value, expected in ((ByInterface(out, stream=None), 0), (None, 1), (out, 0), (0, 1)) * 2:
        launcher(out, value)
        assert stream.to_host(out).tolist() == [expected]
    with pytest.raises(cudadrv.ArgumentError, match="argument 1 of kernel 'is_null'"):
        launcher(out, "text")


def test_foreign_memory_of_another_device_is_rejected(
    stream: cudadrv.Stream, double: cudadrv.Kernel, second_context: cudadrv.Context
) -> None:
    array = second_context.default_stream.zeros(4, "f4")
    with pytest.raises(WrongDeviceError, match="ByInterface on device 1"):
        double.launch(stream, LaunchConfig(1, 4), ByInterface(array, stream=None))


@pytest.mark.parametrize(
    ("dtype", "code", "bits"),
    [("f4", 2, 32), ("i8", 0, 64), ("u1", 1, 8), ("c8", 5, 64), ("?", 6, 8)],
)
def test_a_dlpack_capsule_describes_the_memory(
    stream: cudadrv.Stream, dtype: str, code: int, bits: int
) -> None:
    array = stream.zeros((3, 5), dtype)
    capsule = array.__dlpack__(stream=-1)
    address = pointer_of_capsule(capsule, b"dltensor")
    data, device, ndim, kind = (
        ctypes.c_uint64.from_address(address).value,
        tuple((ctypes.c_int32 * 2).from_address(address + 8)),
        ctypes.c_int32.from_address(address + 16).value,
        tuple((ctypes.c_uint8 * 4).from_address(address + 20)),
    )
    shape = ctypes.cast(
        ctypes.c_uint64.from_address(address + 24).value, ctypes.POINTER(ctypes.c_int64)
    )
    assert (data, device, ndim) == (array.ptr, (2, 0), 2)
    assert kind == (code, bits, 1, 0)
    assert shape[:2] == [3, 5]


def test_dlpack_rejects_what_it_has_no_words_for(stream: cudadrv.Stream) -> None:
    with pytest.raises(DTypeError, match="DLPack has no dtype"):
        stream.zeros(3, "S3").__dlpack__()
    with pytest.raises(DTypeError, match="DLPack has no dtype"):
        stream.zeros(3, ">f4").__dlpack__()
    with pytest.raises(BufferError):
        stream.zeros(3, "f4").__dlpack__(copy=True)
