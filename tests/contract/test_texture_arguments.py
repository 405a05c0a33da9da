"""Textures as arguments of kernels, how long they last, and which there cannot be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.errors import (
    ArgumentError,
    ClosedError,
    TextureError,
    WrongDeviceError,
)
from cudadrv.texture import AddressMode, CudaArray, FilterMode, MipmappedArray, ReadMode, Texture

from .conftest import compile_module

SOURCE = """
extern "C" __global__ void not_for_textures(const float* p, float f, int i, float* out)
{
    *out = f + i;
}
extern "C" __global__ void scale(cudaTextureObject_t t, float* out, float by)
{
    out[threadIdx.x] = by * tex1D<float>(t, threadIdx.x + 0.5f);
}
extern "C" __global__ void scale_row(cudaTextureObject_t t, float* out, float by)
{
    out[threadIdx.x] = by * tex1Dfetch<float>(t, threadIdx.x);
}
"""
LINE = np.random.default_rng(20240607).random(16, np.float32)


def launches(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> list[Callable[[Texture, cudadrv.DeviceArray[np.float32]], object]]:
    """All ways of a launch: at once, by a launcher, prepared."""
    kernel, config = kernels.kernel("scale"), LaunchConfig(1, 16)
    launcher = kernel.bind(stream, config)
    return [
        lambda texture, out: kernel.launch(stream, config, texture, out, 2.0),
        lambda texture, out: launcher(texture, out, 2.0),
        lambda texture, out: launcher.prepare(texture, out, 2.0)(),
    ]


def test_a_texture_is_an_argument_of_every_launch(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    first = Texture(CudaArray.from_host(stream, LINE))
    second = Texture(CudaArray.from_host(stream, LINE + 1))
    for launch in launches(stream, kernels):
        for _ in range(4):  # code is generated for the kinds that come again
            for texture, data in ((first, LINE), (second, LINE + 1)):
                out = stream.zeros(16, np.float32)
                launch(texture, out)
                assert np.array_equal(stream.to_host(out), 2 * data)
    out = stream.zeros(16, np.float32)
    kernels.kernel("scale").launch(stream, LaunchConfig(1, 16), first.handle, out, 2.0)
    assert np.array_equal(stream.to_host(out), 2 * LINE)


def test_a_closed_texture_is_no_argument(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    out = stream.zeros(16, np.float32)
    for close_array in (False, True):
        for launch in launches(stream, kernels):
            array = CudaArray.from_host(stream, LINE)
            texture = Texture(array)
            for _ in range(3):
                launch(texture, out)
            (array if close_array else texture).close()
            with pytest.raises(ClosedError, match="the texture on device 0 was closed, or its"):
                launch(texture, out)
    array, memory = CudaArray.from_host(stream, LINE), stream.to_device(LINE)
    for resource, name in ((array, "scale"), (memory, "scale_row")):
        texture = Texture(resource)
        launcher = kernels.kernel(name).bind(stream, LaunchConfig(1, 16))
        prepared = launcher.prepare(texture, out, 2.0)
        prepared()
        resource.close()
        assert texture.closed
        with pytest.raises(ClosedError):
            prepared()
        with pytest.raises(ClosedError):
            _ = texture.handle
        texture.close()
        texture.close()


def test_closing_does_not_disturb_what_was_launched(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    out = stream.zeros(16, np.float32)
    scale = kernels.kernel("scale")
    for _ in range(20):
        with CudaArray.from_host(stream, LINE) as array, Texture(array) as texture:
            scale.launch(stream, LaunchConfig(1, 16), texture, out, 2.0)
    assert np.array_equal(stream.to_host(out), 2 * LINE)


def test_a_texture_is_no_other_argument(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    array = CudaArray.from_host(stream, LINE)
    texture, out = Texture(array), stream.zeros(16, np.float32)
    launch = kernels.kernel("not_for_textures").launch
    for _ in range(3):
        launch(stream, LaunchConfig(1, 1), out, 1.0, 2, out)
        for arguments, position, what in (
            ((out, texture, 2, out), 1, "is of type Texture, but the parameter is float32"),
            (
                (out, 1.0, texture, out),
                2,
                "is of type Texture, but the parameter is a signed 32-bit",
            ),
            ((array, 1.0, 2, out), 0, "of type CudaArray, .*\n  kernels read it through a Texture"),
        ):
            with pytest.raises(ArgumentError, match=what) as caught:
                launch(stream, LaunchConfig(1, 1), *arguments)
            assert caught.value.position == position
    with pytest.raises(ArgumentError):
        kernels.kernel("scale").launch(stream, LaunchConfig(1, 16), 1.5, out, 2.0)


def test_a_texture_of_another_context_is_rejected(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    out = stream.zeros(16, np.float32)
    with cudadrv.Context.create(0) as own, own.new_stream() as other:
        texture = Texture(CudaArray.from_host(other, LINE))
        for launch in launches(stream, kernels):
            for _ in range(3):
                with pytest.raises(WrongDeviceError, match="argument 0 of kernel 'scale' is <Text"):
                    launch(texture, out)
        other.synchronize()
    assert texture.closed


def test_each_device_has_its_textures(
    context: cudadrv.Context, second_context: cudadrv.Context, kernels: cudadrv.Module
) -> None:
    results = []
    for number, own in enumerate((context, second_context)):
        with own.new_stream() as stream:
            texture = Texture(CudaArray.from_host(stream, LINE + number))
            module = kernels if own is context else compile_module(own, SOURCE)
            out = stream.zeros(16, np.float32)
            module.kernel("scale").launch(stream, LaunchConfig(1, 16), texture, out, 2.0)
            results.append(stream.to_host(out))
    assert np.array_equal(results[0], 2 * LINE)
    assert np.array_equal(results[1], 2 * (LINE + 1))


def test_a_copy_and_a_launch_are_captured(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    source = LINE.copy()
    array = CudaArray(stream.context, 16, np.float32)
    texture, out = Texture(array), stream.zeros(16, np.float32)
    scale = kernels.kernel("scale")
    with stream.capture() as graph:
        array.copy_from(stream, source)
        scale.launch(stream, LaunchConfig(1, 16), texture, out, 3.0)
    assert graph.node_count == 2
    with graph.instantiate() as executable:
        for value in (1, 2):
            source[:] = value
            executable.launch(stream)
            assert (stream.to_host(out) == 3 * value).all()


def test_what_cuda_would_read_otherwise_is_rejected(stream: cudadrv.Stream) -> None:
    floats = CudaArray(stream.context, (8, 16), np.float32)
    bytes_ = CudaArray(stream.context, (8, 16), np.uint8)
    words = CudaArray(stream.context, (8, 16), np.int32)
    row = stream.zeros(16, np.float32)
    cases: list[tuple[Callable[[], Texture], str]] = [
        (lambda: Texture(floats, address_mode=AddressMode.WRAP), "need normalized_coordinates"),
        (lambda: Texture(floats, address_mode=AddressMode.MIRROR), "CUDA would clamp"),
        (lambda: Texture(floats, read_mode=ReadMode.NORMALIZED), "float32 cannot be normalized"),
        (lambda: Texture(words, read_mode=ReadMode.NORMALIZED), "int32 has no normalised form"),
        (lambda: Texture(bytes_, filter_mode=FilterMode.LINEAR), "use ReadMode.NORMALIZED"),
        (lambda: Texture(words, filter_mode=FilterMode.LINEAR), "use float32"),
        (lambda: Texture(bytes_, srgb=True), "sRGB are uint8, read with ReadMode.NORMALIZED"),
        (lambda: Texture(floats, srgb=True), "sRGB are uint8"),
        (lambda: Texture(floats, border_color=(1.0,)), "AddressMode.BORDER alone"),
        (
            lambda: Texture(words, address_mode=AddressMode.BORDER, border_color=(1.0,)),
            "border colours of floats",
        ),
        (lambda: Texture(row, filter_mode=FilterMode.LINEAR), "read by tex1Dfetch"),
        (lambda: Texture(row, normalized_coordinates=True), "read by tex1Dfetch"),
        (lambda: Texture(row, width=4), "no rows to be padded"),
        (lambda: Texture(floats, seamless_cubemap=True), "only a cubemap is seamless"),
        (lambda: Texture(floats, max_anisotropy=17), "max_anisotropy is 0 to 16"),
        (lambda: Texture(floats, mip_bias=1.0), "only a MipmappedArray has levels"),
        (lambda: Texture(floats, channels=2), "which has its own"),
        (lambda: Texture(row, channels=3), "give colours of 3 a fourth channel"),
        (lambda: Texture(row, channels=2), "with 2 channels as its last axis"),
    ]
    for make, what in cases:
        with pytest.raises(TextureError, match=what):
            make()
    mipmapped = MipmappedArray(stream.context, (8, 16), np.float32)
    for options, what in (
        ({}, "use normalized_coordinates=True"),
        ({"normalized_coordinates": True, "mip_levels": (0, 9)}, "levels 0 to 9 of 5"),
    ):
        with pytest.raises(TextureError, match=what):
            Texture(mipmapped, **options)  # type: ignore[arg-type]  # a mapping has one type
    with pytest.raises(TextureError, match="a texture over a ndarray"):
        Texture(LINE)  # type: ignore[arg-type]  # what is tested


def test_closed_memory_is_under_no_texture(stream: cudadrv.Stream) -> None:
    array = CudaArray(stream.context, 16, np.float32)
    row = stream.zeros(16, np.float32)
    mipmapped = MipmappedArray(stream.context, 16, np.float32)
    for item in (array, row, mipmapped):
        item.close()
        with pytest.raises(ClosedError):
            Texture(item, normalized_coordinates=item is mipmapped)
