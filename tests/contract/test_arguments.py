"""Kernel arguments of every kind that other libraries take, seen by the kernel itself."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cuda.bindings.driver import CUdeviceptr

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.errors import ArgumentError, WrongDeviceError

from .conftest import compile_module

ONE = LaunchConfig(1, 1)
CPP = {
    "?": "bool", "i1": "signed char", "u1": "unsigned char", "i2": "short", "u2": "unsigned short",
    "i4": "int", "u4": "unsigned", "i8": "long long", "u8": "unsigned long long", "f4": "float",
    "f8": "double", "c8": "Complex64", "c16": "Complex128", "V12": "Float3",
}  # fmt: skip
VALUES: dict[str, complex] = {
    "?": True, "i1": -42, "u1": 200, "i2": -1234, "u2": 60000, "i4": -123456, "u4": 3_000_000_000,
    "i8": -(1 << 40), "u8": 1 << 63, "f4": 3.14, "f8": 2.718, "c8": 1 + 2j, "c16": -3 - 4j,
}  # fmt: skip
# Each takes the values of its own range only.
CTYPES: dict[str, Callable[[Any], object]] = {
    "?": ctypes.c_bool, "i1": ctypes.c_int8, "u1": ctypes.c_uint8, "i2": ctypes.c_int16,
    "u2": ctypes.c_uint16, "i4": ctypes.c_int32, "u4": ctypes.c_uint32, "i8": ctypes.c_int64,
    "u8": ctypes.c_uint64, "f4": ctypes.c_float, "f8": ctypes.c_double,
}  # fmt: skip
SOURCE = """
struct Complex64 { float re, im; };
struct Complex128 { double re, im; };
struct Float3 { float x, y, z; };
template <typename T> __global__ void put(T* out, T value) { *out = value; }
__global__ void add_one(float* x) { x[threadIdx.x] += 1; }
"""


@pytest.fixture(scope="module")
def kernels(context: cudadrv.Context) -> cudadrv.Module:
    return compile_module(context, SOURCE, *(f"put<{name}>" for name in CPP.values()), "add_one")


class Put:
    """What a kernel finds in a parameter of a type."""

    def __init__(self, stream: cudadrv.Stream, kernels: cudadrv.Module, dtype: str) -> None:
        self._stream = stream
        self._out = stream.zeros(1, dtype)
        # A launcher of its own: what was launched before must not matter.
        self._launch = kernels.kernel(f"put<{CPP[dtype]}>").bind(stream, ONE)

    def __call__(self, value: object) -> object:
        self._launch(self._out, value)
        result: object = self._stream.to_host(self._out)[0]
        return result


@pytest.mark.parametrize("dtype", VALUES)
def test_a_number_may_be_pythons_or_numpys_or_an_array_of_no_dimensions(
    stream: cudadrv.Stream, kernels: cudadrv.Module, dtype: str
) -> None:
    value = VALUES[dtype]
    expected = np.array(value, dtype)[()]
    for form in (value, expected, np.array(value, dtype)):
        put = Put(stream, kernels, dtype)
        assert [put(form) for _ in range(3)] == [expected] * 3


@pytest.mark.parametrize("dtype", CTYPES)
def test_a_number_may_be_one_of_ctypes(
    stream: cudadrv.Stream, kernels: cudadrv.Module, dtype: str
) -> None:
    put = Put(stream, kernels, dtype)
    expected = np.array(VALUES[dtype], dtype)[()]
    assert [put(CTYPES[dtype](VALUES[dtype])) for _ in range(3)] == [expected] * 3
    with pytest.raises(ArgumentError, match="argument 1 of kernel"):
        put(ctypes.c_char_p(b"text"))


def test_forms_may_change_from_launch_to_launch(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    class Number(IntEnum):
        SEVEN = 7

    put = Put(stream, kernels, "i4")
    forms = (7, np.int8(7), ctypes.c_uint16(7), np.array(7), Number.SEVEN, np.uint64(7))
    for form in (*forms, *reversed(forms), *forms):
        assert put(form) == 7
    put = Put(stream, kernels, "f8")
    for real in (0.5, Fraction(1, 2), Decimal("0.5"), np.float32(0.5), ctypes.c_float(0.5)) * 2:
        assert put(real) == 0.5


def test_what_is_taken_does_not_depend_on_what_came_before(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    taken = (
        1, True, np.int64(1), np.array(1), Fraction(1), ctypes.c_int(1), np.bool_(True), Address(1),
    )  # fmt: skip
    refused = ("1", None, 1 + 0j, [1.0], np.array([1.0]), np.complex64(1), stream.zeros((), "f4"))
    for warm_up in range(3):
        for value in (*taken, *refused):
            put = Put(stream, kernels, "f4")
            for _ in range(warm_up):
                put(2.0)
            if any(value is one for one in taken):
                assert put(value) == 1
            else:
                with pytest.raises(ArgumentError, match="but the parameter is float32"):
                    put(value)


@pytest.mark.parametrize("before", [(), (1.0,) * 3, (float("inf"), 1.0), (1, 2.0, 3)])
def test_a_float_out_of_range_raises_whatever_was_launched_before(
    stream: cudadrv.Stream, kernels: cudadrv.Module, before: tuple[float, ...]
) -> None:
    most = float(np.finfo("f4").max)
    taken = (most, -most, most * (1 + 2**-26), float("inf"), -float("inf"), 2**24 + 1, 1e-60)
    wide = (
        1e39,
        -1e39,
        2**200,
        10**400,
        np.float64(1e300),
        most + 2.0**103,
        Fraction(10) ** 400,
    )
    put = Put(stream, kernels, "f4")
    for earlier in before:
        put(earlier)
    for value in taken * 2:
        assert put(value) == np.float32(value)
        for wrong in wide:
            with pytest.raises(ArgumentError, match="out of range for float32"):
                put(wrong)
    put = Put(stream, kernels, "f8")
    for number in (10**400, np.longdouble("1e4000"), Decimal("1e400"), -(Fraction(10) ** 400)) * 2:
        if not np.isinf(float(np.longdouble("1e4000"))) or not isinstance(number, np.longdouble):
            with pytest.raises(ArgumentError, match="out of range for float64"):
                put(number)
        assert put(Decimal("Infinity")) == np.inf


def test_a_number_is_rounded_once(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    put = Put(stream, kernels, "f4")
    # Above the middle of two neighbours by less than a float64 has digits for.
    above, third = 2**60 + 2**36 + 1, Fraction(1, 3)
    for value in (above, np.int64(above), -above, Fraction(above), Decimal(above)) * 3:
        assert abs(put(value)) == 2**60 + 2**37  # type: ignore[arg-type]  # a float32
    assert put(third) == np.float32(1) / np.float32(3)


def test_a_bool_goes_into_a_bool_alone(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    bools = (True, np.True_, np.array(True), ctypes.c_bool(True))
    for dtype in ("i1", "u1", "i4", "u8"):
        put = Put(stream, kernels, dtype)
        for _ in range(3):
            for wrong in bools:
                with pytest.raises(
                    ArgumentError, match="is bool True, but .*integer\n  give 1, or"
                ):
                    put(wrong)
            assert put(1) == 1
    put = Put(stream, kernels, "?")
    for value in (*bools, 1, np.int64(1), False, 0, np.uint8(0), *bools) * 2:
        assert put(value) == bool(value)
        for number in (2, -1, 255, np.int8(2), 1.0):
            with pytest.raises(ArgumentError, match="bool"):
                put(number)


SMALL = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
struct Count { int n; };
using real = __half;
extern "C" {
__global__ void h(unsigned char* out, half v) { memcpy(out, &v, 2); }
__global__ void b(unsigned char* out, nv_bfloat16 v) { memcpy(out, &v, 2); }
__global__ void e(unsigned char* out, __nv_fp8_e4m3 v) { memcpy(out, &v, 1); }
__global__ void f(unsigned char* out, __nv_fp8_e5m2 v) { memcpy(out, &v, 1); }
__global__ void c(unsigned char* out, Count v) { memcpy(out, &v, 4); }
__global__ void r(unsigned char* out, real v) { memcpy(out, &v, 2); }
}
"""


def test_a_small_float_is_rounded_to_the_type_of_the_parameter(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    module = compile_module(context, SMALL)
    types = {
        "h": np.float16,
        "b": ml_dtypes.bfloat16,
        "e": ml_dtypes.float8_e4m3fn,
        "f": ml_dtypes.float8_e5m2,
    }
    numbers = (
        1.5,
        -0.0,
        3,
        np.int16(3),
        np.float32(0.3),
        1e-9,
        *(kind(2.5) for kind in types.values()),
    )
    for name, kind in types.items():
        out, launcher = stream.zeros(2, "u1"), module.kernel(name).bind(stream, ONE)
        for value in numbers * 2:
            launcher(out, value)
            expected = np.array(value).astype("f8").astype(kind).tobytes()
            assert stream.to_host(out).tobytes()[: len(expected)] == expected, (name, value)
        for value in (
            1e39,
            -1e39,
            10**400,
            1j,
            "1",
            b"123",
            np.array([1.5]),
            stream.zeros((), "f4"),
        ):
            with pytest.raises(ArgumentError, match="argument 1 of kernel"):
                launcher(out, value)


def test_a_number_is_no_structure(context: cudadrv.Context, stream: cudadrv.Stream) -> None:
    module, out = compile_module(context, SMALL), stream.zeros(4, "u1")
    for name, values in {
        "c": (np.float32(5), np.int32(5), 5, 5.0, np.array([5], "i4"), np.array([5.0], "f4")),
        "r": (np.float16(1.5), np.int16(3), 1.5, 1),  # a name that does not tell the type
    }.items():
        launcher = module.kernel(name).bind(stream, ONE)
        for value in values * 2:
            with pytest.raises(ArgumentError, match="a structure of . bytes\n  give bytes"):
                launcher(out, value)
    module.kernel("c").launch(stream, ONE, out, np.int32(5).tobytes())
    assert stream.to_host(out).tolist() == [5, 0, 0, 0]
    half = np.float16(1.5)
    with pytest.raises(ArgumentError, match=r"numpy\.float16\(\.\.\.\)\.tobytes\(\)"):
        module.kernel("r").launch(stream, ONE, out, half)
    module.kernel("r").launch(stream, ONE, out, half.tobytes())
    assert stream.to_host(out)[:2].tobytes() == half.tobytes()


def test_memory_for_a_number_is_rejected_whatever_came_before(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    for dtype in ("i4", "i8", "f8"):
        put = Put(stream, kernels, dtype)
        for _ in range(3):
            assert put(5) == 5
        # A buffer of no bytes has address 0, which fits any integer.
        for memory in (stream.alloc(0), stream.zeros(3, "i4")):
            if dtype != "i8":  # PTX up to sm_90 does not tell a long long from a pointer
                with pytest.raises(ArgumentError, match="a Device"):
                    put(memory)


def test_memory_of_another_device_is_rejected_where_an_address_was_taken(
    stream: cudadrv.Stream, kernels: cudadrv.Module, second_context: cudadrv.Context
) -> None:
    array = stream.zeros(1, "f4")
    launch = kernels.kernel("add_one").bind(stream, ONE)
    for _ in range(3):
        launch(array.ptr)
    with pytest.raises(WrongDeviceError):
        launch(second_context.default_stream.zeros(1, "f4"))
    assert stream.to_host(array)[0] == 3


def test_complex_numbers_are_as_wide_as_the_parameter(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    assert Put(stream, kernels, "c8")(np.complex128(0.1 + 2j)) == np.complex64(0.1 + 2j)
    with pytest.raises(ArgumentError, match="out of range for complex64"):
        Put(stream, kernels, "c8")(1e300 + 0j)
    with pytest.raises(ArgumentError, match="of 8 bytes, but .* a structure of 16 bytes"):
        Put(stream, kernels, "c16")(np.complex64(1))
    with pytest.raises(ArgumentError, match="a structure of 12 bytes"):
        Put(stream, kernels, "V12")(1 + 2j)


def test_integers_out_of_range_are_rejected_in_every_form(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    put = Put(stream, kernels, "u1")
    for value in (256, -129, np.int16(300), ctypes.c_int(1000), np.array(-1000)):
        for _ in range(2):
            with pytest.raises(ArgumentError, match="out of range for an unsigned 8-bit integer"):
                put(value)


class Address:
    """What other libraries' allocations are: an address by ``__index__``."""

    def __init__(self, address: int) -> None:
        self._address = address

    def __index__(self) -> int:
        return self._address


def test_a_pointer_may_be_any_form_of_address(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    array = stream.zeros(4, "f4")
    address = array.ptr
    forms = (
        array, address, np.uint64(address), np.intp(address), np.array(address), Address(address),
        CUdeviceptr(address), ctypes.c_void_p(address), ctypes.c_uint64(address), array.buffer,
    )  # fmt: skip
    for form in forms:
        launcher = kernels.kernel("add_one").bind(stream, LaunchConfig(1, 4))
        for _ in range(3):
            launcher(form)
    assert stream.to_host(array).tolist() == [3.0 * len(forms)] * 4


def test_a_pinned_array_is_a_pointer_and_an_ordinary_one_is_not(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    launcher = kernels.kernel("add_one").bind(stream, LaunchConfig(1, 4))
    pinned = cudadrv.pinned_empty((3, 4), "f4")
    pinned[...] = 5
    for _ in range(3):
        launcher(pinned[1])
    stream.synchronize()
    assert pinned.tolist() == [[5.0] * 4, [8.0] * 4, [5.0] * 4]
    for host in (np.zeros(4, "f4"), pinned[:, 1], pinned.T):
        with pytest.raises(ArgumentError, match=r"Stream.to_device first, .*pinned_empty"):
            launcher(host)


def test_managed_memory_is_of_host_and_device(
    context: cudadrv.Context, stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    if not context.device.attribute(cudadrv.driver.DeviceAttribute.MANAGED_MEMORY):
        pytest.skip("needs a device with managed memory")
    launcher = kernels.kernel("add_one").bind(stream, LaunchConfig(1, 4))
    managed = cudadrv.managed_empty((3, 4), "f4")
    managed[...] = np.arange(12).reshape(3, 4)
    for _ in range(3):
        launcher(managed[1])
        stream.synchronize()
        managed[2] += 1
    assert managed.tolist() == [[0, 1, 2, 3], [7, 8, 9, 10], [11, 12, 13, 14]]
    device = stream.to_device(managed)
    managed[...] = 0
    stream.to_host(device[1], managed[0])
    assert managed.tolist() == [[7, 8, 9, 10], [0] * 4, [0] * 4]
    part = managed[0, 1:3]
    del managed
    gc.collect()
    assert part.tolist() == [8, 9]
    assert cudadrv.managed_empty((0, 3), "f4").shape == (0, 3)
    with pytest.raises(cudadrv.OutOfMemoryError):
        cudadrv.managed_empty(1 << 60, "u1")


def test_an_array_interface_that_is_none_is_named(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    class Broken:
        def __init__(self, interface: object) -> None:
            self.__cuda_array_interface__ = interface

    launcher = kernels.kernel("add_one").bind(stream, LaunchConfig(1, 4))
    for interface in ({}, None, {"data": None}, {"data": ("x", False)}):
        with pytest.raises(ArgumentError, match="argument 0 of kernel 'add_one' is of type Broken"):
            launcher(Broken(interface))


LINE = np.dtype([("tag", "i1"), ("value", "f8")], align=True)
LINES = """
struct Line { char tag; double value; };
__global__ void read(Line line, double* out) { *out = line.tag + line.value; }
"""


@pytest.fixture(scope="module")
def read_line(context: cudadrv.Context) -> cudadrv.Kernel:
    return compile_module(context, LINES, "read").kernel("read")


def test_a_structure_may_be_an_array_of_one_element(
    stream: cudadrv.Stream, read_line: cudadrv.Kernel
) -> None:
    out = stream.zeros(1, np.float64)
    for line in (
        np.array([(1, 2.5)], LINE),
        np.array((1, 2.5), LINE),
        np.array([[(1, 2.5)]], LINE),
    ):
        stream.fill(out, 0)
        read_line.launch(stream, ONE, line, out)
        assert stream.to_host(out).tolist() == [3.5], line.shape


def test_a_structure_of_another_layout_is_reported_in_few_words(
    stream: cudadrv.Stream, read_line: cudadrv.Kernel
) -> None:
    packed = np.array((1, 2.5), [("tag", "i1"), ("value", "f8")])
    with pytest.raises(ArgumentError) as caught:
        read_line.launch(stream, ONE, packed[()], stream.zeros(1, np.float64))
    assert str(caught.value) == (
        "argument 0 of kernel 'read' is a NumPy structure of 9 bytes, but the parameter is a "
        "structure of 16 bytes\n  a dtype made with align=True has C's layout"
    )
    with pytest.raises(ArgumentError, match=r"is a host array \(2,\) of structures, but"):
        read_line.launch(stream, ONE, np.zeros(2, LINE), stream.zeros(1, np.float64))


def test_errors_about_arguments_in_one_sequence_and_lists_for_arrays_have_the_remedy(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    put = kernels.kernel("put<int>")
    out = stream.zeros(1, np.int32)
    with pytest.raises(ArgumentError, match=r"(?s)2 arguments, 1 was given.*\*args\)"):
        put.launch(stream, ONE, (out, 1))
    with pytest.raises(ArgumentError, match=r"(?s)is of type list.*to_device\(numpy.array"):
        put.launch(stream, ONE, [1.0], 1)
