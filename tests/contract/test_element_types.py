"""What a kernel knows of its parameters' types, and which arguments it refuses for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import LaunchConfig
from cudadrv.errors import ArgumentError

from .conftest import compile_module, ptx_for_driver
from .protocols import ByDlpack, ByInterface

SOURCE = """
struct Pair { float a; int b; };
extern "C" {
__global__ void floats(float* x) {}
__global__ void constants(const float* x) {}
__global__ void doubles(double* x) {}
__global__ void ints(int* x) {}
__global__ void shorts(unsigned short* x) {}
__global__ void longs(unsigned long long* x) {}
__global__ void bools(bool* x) {}
__global__ void bytes(unsigned char* x) {}
__global__ void chars(char* x) {}
__global__ void nothing(void* x) {}
__global__ void pairs(Pair* x) {}
__global__ void vectors(const float4* x) {}
__global__ void triples(int3* x) {}
__global__ void pointers(float** x) {}
__global__ void number(int* out, int n) { *out = n; }
__global__ void unsigned_number(unsigned int* out, unsigned int n) { *out = n; }
__global__ void long_number(unsigned long long* out, unsigned long long n) { *out = n; }
__global__ void signed_long(long long* out, long long n) { *out = n; }
__global__ void twice(float* x) { x[threadIdx.x] *= 2; }
}
template <class T> __global__ void of(const T* x) {}
__global__ void mangled(const double* x, float4* y) {}
"""
ONE = LaunchConfig(1, 1)
ALL = ("f2", "f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?", "c8", "c16", "S3",
       "V16", "f4,i4")  # fmt: skip
# Of the plain types, those that a parameter takes.
TAKEN = {
    "floats": {"f4", "c8"},
    "constants": {"f4", "c8"},
    "doubles": {"f8", "c16"},
    "ints": {"i4", "u4"},
    "shorts": {"i2", "u2", "f2"},
    "longs": {"i8", "u8"},
    "bools": {"i1", "u1", "?"},
    "vectors": {"f4", "c8"},
    "of<float>": {"f4", "c8"},
    "of<const int>": {"i4", "u4"},
}
# Bytes, structures and vectors of integers may be anything.
ANYTHING = {"S3", "V16", "f4,i4"}
TAKES_ALL = ("bytes", "chars", "nothing", "pairs", "pointers", "triples", "of<unsigned char>")


@pytest.fixture(scope="module")
def kernels(context: cudadrv.Context) -> cudadrv.Module:
    names = ("of<float>", "of<const int>", "of<unsigned char>", "mangled")
    return compile_module(context, SOURCE, *names)


@pytest.mark.parametrize("name", [*TAKEN, *TAKES_ALL])
def test_a_pointer_accepts_arrays_of_the_type_that_it_points_to(
    stream: cudadrv.Stream, kernels: cudadrv.Module, name: str
) -> None:
    launcher = kernels.kernel(name).bind(stream, ONE)
    arrays = {kind: stream.zeros(48, kind) for kind in ALL}
    for _ in range(2):
        for kind, array in arrays.items():
            forms: tuple[Any, ...] = (array, ByInterface(array))
            if array.dtype.kind not in "SV":
                forms = (*forms, ByDlpack(array))
            for form in forms:
                if name in TAKES_ALL or kind in ANYTHING | TAKEN[name]:
                    launcher(form)
                    launcher(form)
                else:
                    with pytest.raises(ArgumentError, match=f"{array.dtype}, but the parameter is"):
                        launcher(form)


def test_an_array_of_another_type_is_rejected_by_code_that_has_seen_a_right_one(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    launcher, right = (
        kernels.kernel("twice").bind(stream, LaunchConfig(1, 4)),
        stream.zeros(4, "f4"),
    )
    wrong = stream.zeros(4, "f8")
    stream.fill(right, 1)
    text = (
        r"argument 0 of kernel 'twice' is a DeviceArray and has elements of float64, but the "
        r"parameter is a device pointer to float\n  give float32, or the address as a number"
    )
    for value in (right, right, right, right.buffer, right.buffer, right.ptr, right.reshape(2, 2)):
        launcher(value)
        with pytest.raises(ArgumentError, match=text):
            launcher(wrong)
        launcher(wrong.view("f4"))  # the same bytes, said to be meant
        kernels.kernel("twice").launch(stream, LaunchConfig(1, 4), right)
        with pytest.raises(ArgumentError, match="has elements of float64"):
            kernels.kernel("twice").launch(stream, LaunchConfig(1, 4), wrong)
    assert stream.to_host(right).tolist() == [2.0**14] * 4


def test_addresses_and_buffers_are_always_accepted(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    array = stream.zeros(4, "f8")
    for name in ("floats", "ints", "vectors", "nothing"):
        launcher = kernels.kernel(name).bind(stream, ONE)
        for value in (array.ptr, array.buffer, np.uint64(array.ptr), None, 0) * 2:
            launcher(value)


def test_vectors_take_whole_ones(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    launcher = kernels.kernel("vectors").bind(stream, ONE)
    fits, too_short = stream.zeros((3, 4), "f4"), stream.zeros(10, "f4")
    for _ in range(3):
        launcher(fits)
        with pytest.raises(ArgumentError, match="its 40 bytes are not a multiple of an element"):
            launcher(too_short)
    assert "pointer to const float4" in kernels.kernel("vectors").describe_parameters()
    kernels.kernel("triples").launch(stream, ONE, stream.zeros(9, "i4"))


def test_the_mangled_name_says_it_too(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    kernel = kernels.kernel("mangled")
    assert kernel.describe_parameters() == (
        "a device pointer to const double, a device pointer to float4"
    )
    kernel.launch(stream, ONE, stream.zeros(2, "f8"), stream.zeros(4, "f4"))
    with pytest.raises(ArgumentError, match="argument 0 .* has elements of float32"):
        kernel.launch(stream, ONE, stream.zeros(2, "f4"), stream.zeros(4, "f4"))


def test_what_may_only_be_read_goes_to_const_pointers(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    array = stream.zeros(4, "f4")
    pinned = cudadrv.pinned_empty(4, "f4")
    pinned.flags.writeable = False
    for value in (ByInterface(array, data=(array.ptr, True)), pinned):
        for name in ("floats", "nothing", "bytes"):
            launcher = kernels.kernel(name).bind(stream, ONE)
            for _ in range(3):
                with pytest.raises(ArgumentError, match="may only be read, but the parameter is"):
                    launcher(value)
        launcher = kernels.kernel("constants").bind(stream, ONE)
        for _ in range(3):
            launcher(value)
    with pytest.raises(ArgumentError, match="has elements of float64"):
        kernels.kernel("floats").launch(stream, ONE, cudadrv.pinned_empty(4, "f8"))
    stream.synchronize()


@pytest.mark.parametrize(
    ("name", "dtype", "taken", "refused"),
    [
        ("number", "i4", (0, -1, 2**31 - 1, -(2**31), np.uint8(200)), (2**31, -(2**31) - 1)),
        ("unsigned_number", "u4", (0, 2**32 - 1, np.int64(7)), (-1, 2**32, np.int32(-1))),
        ("long_number", "u8", (0, 2**64 - 1, 7), (-1, 2**64, np.int64(-5))),
        ("signed_long", "i8", (0, -1, 2**63 - 1, -(2**63)), (2**63, -(2**63) - 1)),
    ],
)
def test_integers_keep_the_range_of_their_type(
    stream: cudadrv.Stream,
    kernels: cudadrv.Module,
    name: str,
    dtype: str,
    taken: tuple[int, ...],
    refused: tuple[int, ...],
) -> None:
    out = stream.zeros(1, dtype)
    launcher = kernels.kernel(name).bind(stream, ONE)
    for _ in range(2):
        for value in taken:
            launcher(out, value)
            assert stream.to_host(out).tolist() == [int(value)]
        for value in refused:
            with pytest.raises(ArgumentError, match="argument 1 .* out of range for an? .*signed"):
                launcher(out, value)


def test_bare_ptx_accepts_arrays_of_every_type(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    module = context.load_module(ptx.Image.from_ptx(ptx_for_driver(context, SOURCE)))
    for kind in ALL:
        module.kernel("floats").launch(stream, ONE, stream.zeros(4, kind))
    module.kernel("number").launch(stream, ONE, stream.zeros(1, "i4"), 2**32 - 1)


def test_bfloat16_and_small_floats_are_arrays_like_others(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    source = """
    #include <cuda_bf16.h>
    #include <cuda_fp8.h>
    extern "C" __global__ void twice(__nv_bfloat16* x) {
        x[threadIdx.x] = __float2bfloat16(2 * __bfloat162float(x[threadIdx.x]));
    }
    extern "C" __global__ void small(__nv_fp8_e4m3* x, __nv_fp8_e5m2* y) {
        x[threadIdx.x] = __nv_fp8_e4m3(1.5f);
        y[threadIdx.x] = __nv_fp8_e5m2(3.0f);
    }
    """
    module = compile_module(context, source)
    host = np.arange(4).astype(ml_dtypes.bfloat16)
    array = stream.to_device(host)
    launcher = module.kernel("twice").bind(stream, LaunchConfig(1, 4))
    for _ in range(3):
        launcher(array)
        with pytest.raises(ArgumentError, match="has elements of float16"):
            launcher(stream.zeros(4, "f2"))
    launcher(array.view("u2"))
    assert stream.to_host(array).dtype == host.dtype
    assert stream.to_host(array).astype("f4").tolist() == [0.0, 16.0, 32.0, 48.0]
    x = stream.zeros(4, ml_dtypes.float8_e4m3fn)
    y = stream.zeros(4, ml_dtypes.float8_e5m2)
    for _ in range(3):
        module.kernel("small").launch(stream, LaunchConfig(1, 4), x, y)
        with pytest.raises(ArgumentError, match="has elements of float8_e5m2, but .*fp8_e4m3"):
            module.kernel("small").launch(stream, LaunchConfig(1, 4), y, x)
    assert stream.to_host(x).astype("f4").tolist() == [1.5] * 4
    assert stream.to_host(y).astype("f4").tolist() == [3.0] * 4
    stream.fill(array, 2.5)
    assert stream.to_host(array).astype("f4").tolist() == [2.5] * 4


@pytest.mark.parametrize("wrapped", [lambda array: array, ByInterface], ids=["ours", "foreign"])
def test_structures_of_another_byte_order_are_reported_with_the_way_to_convert_them(
    stream: cudadrv.Stream, kernels: cudadrv.Module, wrapped: Any
) -> None:
    array = wrapped(stream.zeros(2, ">f4,>i4"))
    with pytest.raises(ArgumentError) as raised:
        kernels.kernel("pairs").launch(stream, LaunchConfig(1, 1), array)
    first, remedy = str(raised.value).split("\n")
    assert first.startswith("argument 0 of kernel 'pairs' is ")
    assert first.endswith(
        "has elements of another byte order, but the parameter is a device pointer to Pair"
    )
    assert remedy == (
        "  give one of the device's, by array.astype(array.dtype.newbyteorder('=')) on the host, "
        "or the address as a number"
    )
    values = np.array([(1.5, -2)], ">f4,>i4")
    assert values.astype(values.dtype.newbyteorder("=")).tobytes() == b"\0\0\xc0?\xfe\xff\xff\xff"


def test_a_structure_of_another_byte_order_is_reported_with_the_way_to_convert_it(
    stream: cudadrv.Stream,
) -> None:
    kernel = compile_module(
        stream.context, "struct P { float a; int b; }; __global__ void k(P p) {}", "k"
    ).kernel("k")
    with pytest.raises(ArgumentError) as raised:
        kernel.launch(stream, LaunchConfig(1, 1), np.zeros((), ">f4,>i4")[()])
    assert str(raised.value) == (
        "argument 0 of kernel 'k' is a NumPy structure of another byte order, but the parameter is "
        "a structure of 8 bytes\n"
        "  convert it: NumPy's is array.astype(dtype.newbyteorder('='))"
    )
