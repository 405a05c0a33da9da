"""Strided views with streams, captures, devices and kernels: lifetimes, order, refusals."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv import DeviceArray, LaunchConfig
from cudadrv.errors import (
    ArgumentError,
    ClosedError,
    CopyError,
    DTypeError,
    InvalidValueError,
    TextureError,
    WrongDeviceError,
)

from ..conftest import compile_module

DATA = np.arange(6 * 8 * 10, dtype="f4").reshape(6, 8, 10)
SUM = """
extern "C" __global__ void add(const float* x, long long row, long long column, float* out) {
    const char* at = (const char*)x + blockIdx.x * row + threadIdx.x * column;
    atomicAdd(out, *(const float*)at);
}
"""


def test_a_view_keeps_its_memory_and_closes_alone(stream: cudadrv.Stream) -> None:
    array = stream.to_device(DATA)
    part = array[::2, 1].T
    address = part.ptr
    del array
    gc.collect()
    assert np.array_equal(stream.to_host(part), DATA[::2, 1].T)
    assert part.ptr == address
    other = part[1:]
    part.close()
    assert part.closed
    for use in (lambda: part.ptr, lambda: stream.to_host(part), lambda: part[0]):
        with pytest.raises(ClosedError, match=r"shape \(.*float32 was closed"):
            use()
    assert np.array_equal(stream.to_host(other), DATA[::2, 1].T[1:])


def test_a_copy_of_a_view_on_another_stream_comes_after_the_work_before(
    context: cudadrv.Context,
) -> None:
    with context.new_stream() as first, context.new_stream() as second:
        for turn in range(5):
            array = first.zeros((64, 64), "i4")
            first.fill(array[:, ::2], turn + 1)
            copied = second.contiguous(array.T)
            second.fill(array[::3], -1)
            expected = np.zeros((64, 64), "i4")
            expected[:, ::2] = turn + 1
            assert np.array_equal(first.to_host(copied), expected.T)
            expected[::3] = -1
            assert np.array_equal(first.to_host(array), expected)
            array.close()


def test_copies_fills_and_assignments_of_views_are_captured(stream: cudadrv.Stream) -> None:
    source, target = stream.to_device(DATA), stream.zeros((10, 8, 6), "f4")
    values = np.arange(8, dtype="f4")[:, None]
    with stream.capture() as graph:
        stream.copy(target, source.T)
        stream.fill(target[::3, 1], 0.5)
        stream.assign(target[5], values)
        target[6, :, ::-1] = target[4]
    values[:] = 99  # the graph has its own
    expected = np.zeros((10, 8, 6), "f4")
    with graph.instantiate() as run:
        for turn in range(3):
            stream.fill(source, turn)
            run.launch(stream)
            expected[...] = turn
            expected[::3, 1] = 0.5
            expected[5] = np.arange(8)[:, None]
            expected[6, :, ::-1] = expected[4]
            assert np.array_equal(stream.to_host(target), expected)


@pytest.mark.parametrize("part", ["turned", "box", "reversed"])
def test_views_are_copied_between_devices(
    context: cudadrv.Context, second_context: cudadrv.Context, part: str
) -> None:
    views: dict[str, Callable[[Any], Any]] = {
        "turned": lambda array: array.T,
        "box": lambda array: array[1:5, ::2, 3:7],
        "reversed": lambda array: array[::-1, :, 2],
    }
    with context.new_stream() as here, second_context.new_stream() as there:
        source, expected = here.to_device(DATA), np.asarray(views[part](DATA))
        for stream in (here, there):
            target = there.zeros((*expected.shape, 2), "f4")
            stream.copy(target[..., 1], views[part](source))
            found = there.to_host(target)
            assert np.array_equal(found[..., 1], expected)
            assert not found[..., 0].any()
        with pytest.raises(WrongDeviceError, match="use a stream of its own context"):
            there.contiguous(source.T)


def test_a_kernel_accepts_a_view_only_where_its_strides_are_requested(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    kernel = compile_module(context, SUM).kernel("add")
    array, out = stream.to_device(DATA[0]), stream.zeros(1, "f4")
    launcher = kernel.bind(stream, LaunchConfig(8, 10))
    for _ in range(3):
        launcher(array, 40, 4, out)
        part = array[::2, ::-3]
        with pytest.raises(
            ArgumentError, match=r"argument 0 .*strides \(80, -12\).* is not C-contiguous"
        ):
            launcher(part, *part.strides, out)
    stream.fill(out, 0)
    kernel.launch(
        stream, LaunchConfig(part.shape[0], part.shape[1]), part.origin, *part.strides, out
    )
    assert stream.to_host(out).tolist() == [DATA[0, ::2, ::-3].sum()]
    assert part.origin.ptr == part.ptr
    part.origin.close()
    assert not array.closed
    origin = part.origin
    array.close()
    assert origin.closed


def test_a_function_for_arrays_in_c_order_rejects_a_view(stream: cudadrv.Stream) -> None:
    from cudadrv.blas import LinearAlgebra

    square = stream.zeros((32, 32), "f4")
    algebra = LinearAlgebra(stream)
    with pytest.raises(InvalidValueError, match="is not C-contiguous"):
        algebra.gemm(square.T, square, stream.zeros((32, 32), "f4"))
    for view in (square.T, square[:, ::2]):
        with pytest.raises(TextureError, match="the texels of a row are not contiguous"):
            cudadrv.texture.Texture(view)


def test_texels_are_copied_from_views_and_to_them(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    host = np.arange(32 * 16, dtype="f4").reshape(32, 16)
    array, texels = stream.to_device(host), cudadrv.texture.CudaArray(context, (16, 32), "f4")
    texels.copy_from(stream, array.T)
    assert np.array_equal(texels.copy_to(stream), host.T)
    out = stream.zeros((16, 32, 2), "f4")
    texels.copy_to(stream, out[..., 1])
    assert np.array_equal(stream.to_host(out)[..., 1], host.T)
    assert not stream.to_host(out)[..., 0].any()


def test_a_texture_reads_a_pitched_array(context: cudadrv.Context, stream: cudadrv.Stream) -> None:
    source = """
    extern "C" __global__ void read(cudaTextureObject_t t, float* out) {
        out[blockIdx.x * 7 + threadIdx.x] = tex2D<float>(t, threadIdx.x, blockIdx.x);
    }"""
    kernel = compile_module(context, source).kernel("read")
    array, out = stream.empty_pitched((5, 7), "f4"), stream.zeros((5, 7), "f4")
    array[...] = np.arange(35).reshape(5, 7)
    with cudadrv.texture.Texture(array) as texture:
        kernel.launch(stream, LaunchConfig(5, 7), texture, out)
        assert np.array_equal(stream.to_host(out), np.arange(35).reshape(5, 7))


def test_new_arrays_in_fortran_order(stream: cudadrv.Stream) -> None:
    for array in (
        stream.empty((2, 3, 4), "f8", "F"),
        stream.zeros((2, 3, 4), "f8", order="F"),
        stream.to_device(np.arange(24.0).reshape(2, 3, 4), order="F"),
    ):
        assert array.shape == (2, 3, 4)
        assert array.strides == (8, 16, 48)
        assert array.T.is_contiguous
    assert np.array_equal(stream.to_host(array), np.arange(24.0).reshape(2, 3, 4))
    assert stream.empty(5, "f4", "F").is_contiguous
    with pytest.raises(TypeError, match='the order of an array .* give "C" or "F"'):
        stream.zeros((2, 2), "f4", order="K")


def test_rows_of_a_pitched_array_begin_aligned(stream: cudadrv.Stream) -> None:
    array = stream.empty_pitched((3, 5, 7), "f4")
    assert array.shape == (3, 5, 7)
    assert array.strides == (5 * 512, 512, 4)
    assert array.ptr % 256 == 0
    host = np.arange(105, dtype="f4").reshape(3, 5, 7)
    stream.copy(array, host)
    assert np.array_equal(stream.to_host(array), host)
    assert stream.empty_pitched((2, 5), "V12").strides == (1536, 12)
    assert stream.empty_pitched((4, 128), "f4").is_contiguous
    assert stream.empty_pitched(0, "f4").size == 0
    with pytest.raises(InvalidValueError, match="no dimensions has no rows"):
        stream.empty_pitched((), "f4")


def test_a_pinned_array_is_copied_without_a_wait_where_that_is_requested(
    stream: cudadrv.Stream,
) -> None:
    pinned = cudadrv.pinned_empty((300, 200), "f4")
    pinned[...] = np.arange(60000).reshape(300, 200)
    array = stream.zeros((300, 400), "f4")
    stream.copy(array[:, ::2], pinned, wait=False)
    back = cudadrv.pinned_empty((200, 300), "f4")
    stream.to_host(array[:, ::2].T, out=back, wait=False)
    stream.synchronize()
    assert np.array_equal(back, pinned.T)


def test_elements_that_overlap_are_read_and_not_written(stream: cudadrv.Stream) -> None:
    buffer = stream.to_device(np.arange(10, dtype="i4")).buffer
    windows: DeviceArray[Any] = DeviceArray(buffer, (8, 3), "i4", 0, (4, 4))
    expected = np.lib.stride_tricks.sliding_window_view(np.arange(10, dtype="i4"), 3)
    assert np.array_equal(stream.to_host(windows), expected)
    writes: tuple[Callable[[], None], ...] = (
        lambda: stream.copy(windows, expected),
        lambda: stream.copy(windows, stream.zeros((8, 3), "i4")),
        lambda: stream.assign(windows, [1, 2, 3]),
    )
    for write in writes:
        with pytest.raises(InvalidValueError, match="its elements overlap each other"):
            write()
    stream.fill(windows[1:5], 7)  # of one value it does not matter
    assert stream.to_host(windows).tolist()[0::7] == [[0, 7, 7], [7, 8, 9]]
    with pytest.raises(InvalidValueError, match=r"44 bytes at offset 0 does not fit"):
        DeviceArray(buffer, (9, 3), "i4", 0, (4, 4))
    with pytest.raises(InvalidValueError, match=r"at offset -4 does not fit"):
        DeviceArray(buffer, 2, "i4", 0, (-4,))
    with pytest.raises(InvalidValueError, match=r"strides \(4,\) for the shape \(2, 2\)"):
        DeviceArray(buffer, (2, 2), "i4", 0, (4,))


def test_what_does_not_fit_is_not_assigned(stream: cudadrv.Stream) -> None:
    array = stream.zeros((4, 6), "i4")
    with pytest.raises(CopyError, match=r"shape \(5,\) do not fit an array of \(4, 3\)"):
        array[:, ::2] = np.arange(5)
    with pytest.raises(CopyError, match=r"shape \(4, 1, 3\) do not fit"):
        array[:, ::2] = np.zeros((4, 1, 3), "i4")
    with pytest.raises(DTypeError, match="values of float64 do not become int32"):
        array[0] = np.linspace(0, 1, 6)
    with pytest.raises(DTypeError, match="not all of the values of int64 are int32"):
        array[0] = [2**40] * 6
    with pytest.raises(DTypeError, match="a kernel converts elements"):
        array[0] = stream.zeros(6, "i8")
    with pytest.raises(InvalidValueError, match="not an integer"):
        array[0, ::2] = 1.5
    with pytest.raises(TypeError, match="becomes no NumPy array|is no host array"):
        array[0] = stream.alloc(24)
    assert not stream.to_host(array).any()


def test_fields_of_structures_are_views(stream: cudadrv.Stream) -> None:
    point = np.dtype([("tag", "u1"), ("at", "<f4", (3,)), ("inner", [("n", "<i8"), ("m", "<i2")])])
    host = np.zeros((2, 5), point)
    array = stream.to_device(host)
    array["at"][:, 1] = [1, 2, 3]
    array["inner"]["n"] = np.arange(5)
    array["tag"][1] = 7
    array[0, 0] = (9, (4, 5, 6), (8, 7))
    host["at"][:, 1] = [1, 2, 3]
    host["inner"]["n"] = np.arange(5)
    host["tag"][1] = 7
    host[0, 0] = (9, (4, 5, 6), (8, 7))
    assert stream.to_host(array).tobytes() == host.tobytes()
    with pytest.raises(IndexError, match="has no field 'size'"):
        array["size"]
    with pytest.raises(IndexError, match="has no field 'x'"):
        stream.zeros(3, "f4")["x"]


def test_axes_that_are_none_are_rejected(stream: cudadrv.Stream) -> None:
    array = stream.zeros((2, 3, 4), "f4")
    assert array.transpose(1, -1, 0).shape == (3, 4, 2)
    with pytest.raises(IndexError, match=r"axes \(0, 1\) are not each of the 3 axes once"):
        array.transpose(0, 1)
    with pytest.raises(IndexError, match="not each of the 3 axes once"):
        array.transpose(0, 1, 1)
    with pytest.raises(IndexError, match="one ellipsis"):
        array[..., 0, ...]
    with pytest.raises(TypeError, match="not bool"):
        array[True]


def test_copies_between_views_and_the_host_are_captured(stream: cudadrv.Stream) -> None:
    array, host = stream.zeros((6, 5), "f4"), np.ones((3, 5), "f4")
    pinned = cudadrv.pinned_empty((5, 6), "f4")
    with stream.capture() as graph:
        stream.copy(array[::2], host)
        stream.copy(pinned, array.T, wait=False)
    with graph.instantiate() as run:
        for value in (1, 2):
            host[...] = value
            run.launch(stream)
            stream.synchronize()
            assert pinned.tolist() == [[value, 0] * 3] * 5
    with pytest.raises(CopyError, match="a strided array cannot be captured"), stream.capture():
        stream.copy(array[::2], np.ones((5, 3), "f4").T)


def test_arrays_of_many_axes_are_turned_round(stream: cudadrv.Stream) -> None:
    host = np.arange(2**10, dtype="u2").reshape((2,) * 10)
    order = (3, 1, 4, 0, 5, 9, 2, 6, 8, 7)
    turned = stream.contiguous(stream.to_device(host).transpose(*order)[:, ::-1])
    assert np.array_equal(stream.to_host(turned), host.transpose(order)[:, ::-1])


def test_a_buffer_accepts_a_view_in_c_order_and_exports_it(stream: cudadrv.Stream) -> None:
    array, buffer = stream.to_device(DATA), stream.alloc(DATA.nbytes)
    stream.copy(buffer, array.T)
    assert np.array_equal(stream.to_host(DeviceArray(buffer, (10, 8, 6), "f4")), DATA.T)
    target = stream.zeros((10, 8, 12), "f4")
    stream.copy(target[..., ::2], buffer)
    assert np.array_equal(stream.to_host(target)[..., ::2], DATA.T)


def test_a_large_array_is_reversed_in_place(stream: cudadrv.Stream) -> None:
    """More elements than run at once: without other memory in between some are written too soon."""
    host = np.arange(200_000, dtype="i4")
    array = stream.to_device(host)
    array[...] = array[::-1]
    assert np.array_equal(stream.to_host(array), host[::-1])
