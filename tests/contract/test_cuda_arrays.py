"""CUDA arrays: what is copied to and from them, their memory, and what there cannot be."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv import pinned_empty
from cudadrv.errors import (
    ClosedError,
    CopyError,
    DTypeError,
    OutOfMemoryError,
    TextureError,
    WrongDeviceError,
)
from cudadrv.texture import CudaArray, MipmappedArray
from tests.rows import all_rows

rng = np.random.default_rng(7)


@all_rows
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((17,), {}),
        ((5, 17), {}),
        ((3, 5, 17), {}),
        ((3, 17), {"layered": True}),
        ((3, 5, 17), {"layered": True, "surface": True}),
        ((6, 5, 5), {"cubemap": True}),
        ((12, 5, 5), {"cubemap": True, "layered": True}),
        ((5, 17), {"gather": True}),
    ],
)
@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4"])
def test_what_goes_in_comes_out(
    stream: cudadrv.Stream, shape: tuple[int, ...], options: Any, channels: int, dtype: str
) -> None:
    full = (*shape, channels) if channels > 1 else shape
    data = rng.integers(0, 100, full).astype(dtype)
    array = CudaArray.from_host(stream, data, channels=channels, **options)
    assert (array.shape, array.host_shape, array.dtype) == (shape, full, data.dtype)
    assert (array.channels, array.nbytes) == (channels, data.nbytes)
    assert array.context is stream.context
    assert np.array_equal(array.copy_to(stream), data)


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "i1", "i2", "i4", "f2", "f4"])
def test_channels_are_of_eight_types(stream: cudadrv.Stream, dtype: str) -> None:
    data = rng.integers(0, 100, 10).astype(dtype)
    assert np.array_equal(CudaArray.from_host(stream, data).copy_to(stream), data)


def test_host_arrays_of_any_strides(stream: cudadrv.Stream) -> None:
    big = rng.random((8, 20), np.float32)
    array = CudaArray(stream.context, (4, 10), np.float32)
    for part in (big[::2, ::2], big[::-2, 10:], np.asfortranarray(big[:4, :10])):
        array.copy_from(stream, part)
        assert np.array_equal(array.copy_to(stream), part)
        out = np.zeros((8, 20), np.float32)[::2, ::2]
        assert array.copy_to(stream, out) is out
        assert np.array_equal(out, part)


def test_the_source_may_be_changed_at_once(stream: cudadrv.Stream) -> None:
    for shape in ((4, 16), (512, 1024)):
        for data in (np.ones(shape, np.float32), pinned_empty(shape, np.float32)):
            data[...] = 1
            array = CudaArray.from_host(stream, data)
            data[...] = 2
            assert (array.copy_to(stream) == 1).all()


def test_a_pinned_array_need_not_be_waited_for(stream: cudadrv.Stream) -> None:
    data, out = (pinned_empty((64, 64), np.float32) for _ in range(2))
    data[...] = rng.random((64, 64))
    array = CudaArray(stream.context, (64, 64), np.float32)
    array.copy_from(stream, data, wait=False)
    array.copy_to(stream, out, wait=False)
    stream.synchronize()
    assert np.array_equal(out, data)


def test_device_arrays_on_either_side(stream: cudadrv.Stream) -> None:
    data = rng.random((3, 5, 7, 2), np.float32)
    array = CudaArray(stream.context, (3, 5, 7), np.float32, channels=2)
    array.copy_from(stream, stream.to_device(data))
    out = stream.zeros(data.shape, np.float32)
    assert array.copy_to(stream, out) is out
    assert np.array_equal(stream.to_host(out), data)


def test_memory_of_another_stream_is_waited_for(stream: cudadrv.Stream) -> None:
    with stream.context.new_stream() as other:
        data = rng.random((64, 64), np.float32)
        array = CudaArray(stream.context, (64, 64), np.float32)
        array.copy_from(stream, other.to_device(data))
        out = other.zeros((64, 64), np.float32)
        array.copy_to(stream, out)
        assert np.array_equal(stream.to_host(out), data)


def test_boxes_go_to_their_targets(stream: cudadrv.Stream) -> None:
    expected = np.zeros((4, 6, 8), np.float32)
    array = CudaArray.from_host(stream, expected)
    box = rng.random((2, 3, 4), np.float32)
    for origin, source in (((1, 2, 3), box), ((2, 3, 4), stream.to_device(box))):
        array.copy_from(stream, source, origin=origin)
        z, y, x = origin
        expected[z : z + 2, y : y + 3, x : x + 4] = box
    assert np.array_equal(array.copy_to(stream), expected)
    assert np.array_equal(
        array.copy_to(stream, np.zeros((1, 2, 5), np.float32), origin=(3, 4, 2)),
        expected[3:4, 4:6, 2:7],
    )
    assert np.array_equal(array.copy_to(stream, origin=(1, 1, 1)), expected[1:, 1:, 1:])


def test_a_layer_is_filled_alone(stream: cudadrv.Stream) -> None:
    array = CudaArray.from_host(stream, np.zeros((3, 4, 5), np.uint8), layered=True)
    image = rng.integers(0, 255, (4, 5), np.uint8)
    array.copy_from(stream, image[None], origin=(1, 0, 0))
    assert np.array_equal(array.copy_to(stream)[1], image)
    assert not array.copy_to(stream)[::2].any()
    lines = CudaArray.from_host(stream, np.zeros((3, 5), np.uint8), layered=True)
    lines.copy_from(stream, image[:1], origin=(2, 0))
    assert np.array_equal(lines.copy_to(stream)[2], image[0])


def test_arrays_are_copied_to_each_other(stream: cudadrv.Stream) -> None:
    data = rng.random((4, 6), np.float32)
    source = CudaArray.from_host(stream, data)
    target = CudaArray.from_host(stream, np.zeros((5, 8), np.float32), surface=True)
    target.copy_from(stream, source, origin=(1, 2))
    assert np.array_equal(target.copy_to(stream)[1:, 2:], data)


def test_what_does_not_match_is_not_copied(stream: cudadrv.Stream) -> None:
    array = CudaArray(stream.context, (4, 6), np.float32)
    colours = CudaArray(stream.context, (4, 6), np.float32, channels=4)
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: array.copy_from(stream, np.zeros((4, 6))), "is float64, .* of float32"),
        (lambda: array.copy_from(stream, np.zeros(6, "f4")), "does not have the axes of"),
        (lambda: array.copy_from(stream, np.zeros((5, 6), "f4")), r"\(5, 6\) does not fit"),
        (
            lambda: array.copy_from(stream, np.zeros((4, 6), "f4"), origin=(0, 1)),
            r"at \(0, 1\) does not fit",
        ),
        (lambda: array.copy_from(stream, np.zeros((1, 1), "f4"), origin=(-1, 0)), "does not fit"),
        (lambda: array.copy_from(stream, np.zeros((1, 1), "f4"), origin=(0,)), "is not of 2 axes"),
        (lambda: colours.copy_from(stream, np.zeros((4, 6, 3), "f4")), r"shape \(4, 6, 4\)"),
        (lambda: array.copy_from(stream, colours), "does not have the texels"),
        (lambda: array.copy_to(stream, stream.zeros((4, 7), "f4")), "does not fit"),
        (lambda: array.copy_to(stream, np.broadcast_to(np.float32(0), (4, 6))), "read-only"),
    ]
    for call, what in cases:
        with pytest.raises(CopyError, match=what):
            call()
    with pytest.raises(TextureError, match="its last extent counts the channels"):
        CudaArray.from_host(stream, np.zeros((4, 6), "f4"), channels=4)
    array.copy_from(stream, np.zeros((0, 6), "f4"))


def test_contexts_are_not_mixed(stream: cudadrv.Stream) -> None:
    with cudadrv.Context.create(0) as own, own.new_stream() as other:
        array = CudaArray(own, 8, np.float32)
        with pytest.raises(WrongDeviceError, match="use a stream of its context"):
            array.copy_from(stream, np.zeros(8, "f4"))
        with pytest.raises(WrongDeviceError, match="copy through a DeviceArray"):
            array.copy_from(other, stream.zeros(8, "f4"))
        with pytest.raises(WrongDeviceError, match="copy through a DeviceArray"):
            array.copy_from(other, CudaArray(stream.context, 8, np.float32))
        array.copy_from(other, np.zeros(8, "f4"))
        mipmapped = MipmappedArray(own, 8, np.float32)
        level = mipmapped.level(1)
    with pytest.raises(ClosedError):
        mipmapped.level(1)
    for item in (array, mipmapped, level):
        assert item.closed
        with pytest.raises(ClosedError):
            _ = item.handle
        item.close()


def test_each_device_has_its_arrays(
    context: cudadrv.Context, second_context: cudadrv.Context
) -> None:
    data = rng.random((4, 6), np.float32)
    with context.new_stream() as first, second_context.new_stream() as second:
        array = CudaArray.from_host(first, data)
        there = second.empty((4, 6), np.float32)
        second.copy(there, array.copy_to(first, first.empty((4, 6), np.float32)))
        other = CudaArray(second_context, (4, 6), np.float32)
        other.copy_from(second, there)
        assert np.array_equal(other.copy_to(second), data)
        with pytest.raises(WrongDeviceError):
            other.copy_from(first, data)


@pytest.mark.parametrize(
    ("shape", "options", "what"),
    [
        ((), {}, "1 to 3 extents of at least 1"),
        ((0,), {}, "1 to 3 extents of at least 1"),
        ((2, 2, 2, 2), {}, "1 to 3 extents"),
        ((4,), {"layered": True}, r"a layered array is \(layers, \[height,\] width\)"),
        ((6, 4, 5), {"cubemap": True}, "a cubemap is"),
        ((12, 4, 4), {"cubemap": True}, "a cubemap is"),
        ((7, 4, 4), {"cubemap": True, "layered": True}, "a layered one"),
        ((4,), {"gather": True}, "gathering needs a two-dimensional array"),
        ((4, 4), {"gather": True, "layered": True}, "gathering needs"),
        ((1 << 20,), {}, "too large for the device, whose MAXIMUM_TEXTURE1D_WIDTH is"),
        ((1 << 17, 4), {}, "whose MAXIMUM_TEXTURE2D_HEIGHT is"),
        ((4000, 4), {"layered": True}, "whose MAXIMUM_TEXTURE1D_LAYERED_LAYERS is"),
        ((1 << 16,), {"surface": True}, "whose MAXIMUM_SURFACE1D_WIDTH is"),
        ((4,), {"channels": 3}, "give colours of 3 a fourth channel"),
        ((4,), {"channels": 0}, "CUDA has 1, 2 and 4"),
    ],
)
def test_arrays_that_cannot_be_are_rejected(
    context: cudadrv.Context, shape: tuple[int, ...], options: Any, what: str
) -> None:
    with pytest.raises(TextureError, match=what):
        CudaArray(context, shape, np.float32, **options)


@pytest.mark.parametrize("dtype", ["f8", "i8", "bool", "c8", ">f4", "O", "V4"])
def test_other_dtypes_are_rejected(context: cudadrv.Context, dtype: str) -> None:
    with pytest.raises(DTypeError, match="CUDA has integers of 8, 16 and 32 bits"):
        CudaArray(context, 4, dtype)


def test_too_much_memory_is_reported(context: cudadrv.Context) -> None:
    with pytest.raises(OutOfMemoryError, match="allocating 70368744177664 bytes on device 0"):
        CudaArray(context, (16384, 16384, 16384), np.float32, channels=4)


def test_memory_is_freed(context: cudadrv.Context) -> None:
    if not context.device.is_emulated:
        pytest.skip("needs the emulator: other processes change the free memory of a GPU")

    def used() -> int:
        gc.collect()
        info = context.memory_info()
        return info.total - info.free

    CudaArray(context, (64, 64), np.float32).close()  # what a context needs once
    before = used()
    array = CudaArray(context, (4096, 4096), np.float32)
    mipmapped = MipmappedArray(context, (4096, 4096), np.float32)
    level = mipmapped.level(2)
    assert used() - before >= array.nbytes + mipmapped.nbytes
    array.close()
    array.close()
    mipmapped.close()
    assert used() - before < 4 << 20
    assert level.closed
    dropped = CudaArray(context, (4096, 4096), np.float32)
    del dropped
    assert used() - before < 4 << 20


def test_a_level_keeps_all_of_its_array(stream: cudadrv.Stream) -> None:
    level = MipmappedArray(stream.context, (8, 16), np.float32, levels=3).level(1)
    gc.collect()
    data = rng.random((4, 8), np.float32)
    level.copy_from(stream, data)
    assert np.array_equal(level.copy_to(stream), data)


def test_levels_are_halves(context: cudadrv.Context) -> None:
    array = MipmappedArray(context, (5, 17), np.uint8, channels=4)
    assert [array.level(k).shape for k in range(array.levels)] == [
        (5, 17), (2, 8), (1, 4), (1, 2), (1, 1),
    ]  # fmt: skip
    assert array.nbytes == 4 * (85 + 16 + 4 + 2 + 1)
    assert array.level(1) is array.level(1)
    layers = MipmappedArray(context, (3, 8, 16), np.float32, layered=True, levels=2)
    assert layers.level(1).shape == (3, 4, 8)
    assert MipmappedArray(context, (8, 4, 2), "f4").level(3).shape == (1, 1, 1)
    with pytest.raises(TextureError, match="has no level 2"):
        layers.level(2)
    for levels in (0, 6):
        with pytest.raises(TextureError, match="use 1 to 5"):
            MipmappedArray(context, (8, 16), np.float32, levels=levels)
    with pytest.raises(TextureError, match="whose MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH is"):
        MipmappedArray(context, (1, 40000), np.float32)


def test_captured_copies_keep_what_they_need(stream: cudadrv.Stream) -> None:
    data = rng.random((4, 6), np.float32)
    first, second = (CudaArray(stream.context, (4, 6), np.float32) for _ in range(2))
    mipmapped = MipmappedArray(stream.context, (4, 6), np.float32)
    out = np.zeros((4, 6), np.float32)
    with stream.capture() as graph:
        first.copy_from(stream, data)
        second.copy_from(stream, first)
        mipmapped.level(0).copy_from(stream, second)
        mipmapped.level(0).copy_to(stream, out)
        with pytest.raises(CopyError, match="a strided array cannot be captured"):
            first.copy_from(stream, data.T.copy().T)
        with pytest.raises(CopyError, match="a strided array cannot be captured"):
            first.copy_to(stream, out.T.copy().T)
    for item in (first, second, mipmapped):
        item.close()
    with graph.instantiate() as executable:
        for value in (1, 2):
            data[...] = value
            executable.launch(stream)
            stream.synchronize()
            assert (out == value).all()


def test_closed_arrays_are_not_used(stream: cudadrv.Stream) -> None:
    with CudaArray(stream.context, (4, 6), np.float32) as array:
        assert repr(array) == "<CudaArray (4, 6) float32 on device 0>"
    assert array.closed
    assert repr(array) == "<CudaArray (4, 6) float32 on device 0, closed>"
    for use in (lambda: array.copy_to(stream), lambda: array.handle):
        with pytest.raises(ClosedError, match=r"the CUDA array of shape \(4, 6\) float32 was clos"):
            use()
    with MipmappedArray(stream.context, 4, "u1", channels=4) as mipmapped:
        assert repr(mipmapped) == "<MipmappedArray (4,) 4 × uint8, 3 levels, on device 0>"
    with pytest.raises(ClosedError):
        mipmapped.level(0).copy_to(stream)


def test_arrays_are_neither_copied_as_objects_nor_pickled(context: cudadrv.Context) -> None:
    for array in (CudaArray(context, 4, np.float32), MipmappedArray(context, 4, np.float32)):
        for make in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=r"Array cannot be copied or pickled"):
                make(array)
