"""Surfaces: arrays that kernels write."""

from __future__ import annotations

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.errors import ArgumentError, ClosedError, TextureError, WrongDeviceError
from cudadrv.texture import CudaArray, FilterMode, MipmappedArray, Surface, Texture

SOURCE = """
extern "C" __global__ void write_line(cudaSurfaceObject_t s, float a)
{
    surf1Dwrite(a + threadIdx.x, s, threadIdx.x * 4);
}
extern "C" __global__ void write_plane(cudaSurfaceObject_t s, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < w && y < h) surf2Dwrite((float)(100 * y + x), s, x * 4, y);
}
extern "C" __global__ void write_space(cudaSurfaceObject_t s)
{
    surf3Dwrite((unsigned short)(100 * blockIdx.y + 10 * blockIdx.x + threadIdx.x), s,
                threadIdx.x * 2, blockIdx.x, blockIdx.y);
}
extern "C" __global__ void write_layers(cudaSurfaceObject_t s)
{
    surf2DLayeredwrite((unsigned char)(100 * blockIdx.y + 10 * blockIdx.x + threadIdx.x), s,
                       threadIdx.x, blockIdx.x, blockIdx.y);
}
extern "C" __global__ void write_colours(cudaSurfaceObject_t s)
{
    int x = threadIdx.x, y = blockIdx.x;
    surf2Dwrite(make_uchar4(x, y, x + y, 255), s, x * 4, y);
}
extern "C" __global__ void read_around(cudaSurfaceObject_t s, float* zero, float* clamp, int w)
{
    int x = threadIdx.x - 2, y = (int)blockIdx.x - 2, i = blockIdx.x * blockDim.x + threadIdx.x;
    surf2Dread(zero + i, s, x * 4, y, cudaBoundaryModeZero);
    surf2Dread(clamp + i, s, x * 4, y, cudaBoundaryModeClamp);
}
extern "C" __global__ void write_around(cudaSurfaceObject_t s, int clamp)
{
    int x = threadIdx.x - 2, y = (int)blockIdx.x - 2;
    if (clamp) surf2Dwrite(7.0f, s, x * 4, y, cudaBoundaryModeClamp);
    else surf2Dwrite(7.0f, s, x * 4, y, cudaBoundaryModeZero);
}
extern "C" __global__ void brighten(cudaSurfaceObject_t s, float by)
{
    float v;
    surf2Dread(&v, s, threadIdx.x * 4, blockIdx.x);
    surf2Dwrite(by * v, s, threadIdx.x * 4, blockIdx.x);
}
extern "C" __global__ void read_plane(cudaTextureObject_t t, float* out, int w)
{
    out[blockIdx.x * w + threadIdx.x] = tex2D<float>(t, threadIdx.x + 0.5f, blockIdx.x + 0.5f);
}
extern "C" __global__ void halve(cudaTextureObject_t from, cudaSurfaceObject_t to)
{
    int x = threadIdx.x, y = blockIdx.x;
    surf2Dwrite(tex2D<float>(from, 2 * x + 1, 2 * y + 1), to, x * 4, y);
}
"""


def test_kernels_write_lines_and_planes(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    line = CudaArray(stream.context, 20, np.float32, surface=True)
    kernels.kernel("write_line").launch(stream, LaunchConfig(1, 20), Surface(line), 5.0)
    assert np.array_equal(line.copy_to(stream), np.arange(20, dtype=np.float32) + 5)
    plane = CudaArray(stream.context, (7, 50), np.float32, surface=True)
    config = LaunchConfig((2, 7, 1), 32)
    kernels.kernel("write_plane").launch(stream, config, Surface(plane), 50, 7)
    expected = 100 * np.arange(7)[:, None] + np.arange(50)
    assert np.array_equal(plane.copy_to(stream), expected.astype(np.float32))


def test_kernels_write_slices_and_layers(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    expected = 100 * np.arange(2)[:, None, None] + 10 * np.arange(3)[:, None] + np.arange(5)
    space = CudaArray(stream.context, (2, 3, 5), np.uint16, surface=True)
    kernels.kernel("write_space").launch(stream, LaunchConfig((3, 2, 1), 5), Surface(space))
    assert np.array_equal(space.copy_to(stream), expected.astype(np.uint16))
    layers = CudaArray(stream.context, (2, 3, 5), np.uint8, surface=True, layered=True)
    kernels.kernel("write_layers").launch(stream, LaunchConfig((3, 2, 1), 5), Surface(layers))
    assert np.array_equal(layers.copy_to(stream), expected.astype(np.uint8))


def test_kernels_write_several_channels(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    image = CudaArray(stream.context, (3, 5), np.uint8, channels=4, surface=True)
    kernels.kernel("write_colours").launch(stream, LaunchConfig(3, 5), Surface(image))
    y, x = np.mgrid[:3, :5]
    expected = np.stack([x, y, x + y, np.full_like(x, 255)], axis=-1).astype(np.uint8)
    assert np.array_equal(image.copy_to(stream), expected)


def test_outside_is_zero_or_the_edge(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    data = np.random.default_rng(1).random((4, 6), np.float32)
    array = CudaArray.from_host(stream, data, surface=True)
    zero, clamp = (stream.zeros((8, 10), np.float32) for _ in range(2))
    kernels.kernel("read_around").launch(
        stream, LaunchConfig(8, 10), Surface(array), zero, clamp, 6
    )
    assert np.array_equal(stream.to_host(zero), np.pad(data, 2))
    assert np.array_equal(stream.to_host(clamp), np.pad(data, 2, mode="edge"))


@pytest.mark.parametrize("clamp", [0, 1])
def test_writes_outside_go_nowhere_or_to_the_edge(
    stream: cudadrv.Stream, kernels: cudadrv.Module, clamp: int
) -> None:
    array = CudaArray.from_host(stream, np.zeros((4, 6), np.float32), surface=True)
    # One row and one column of threads are inside, the others before the first.
    kernels.kernel("write_around").launch(stream, LaunchConfig(3, 3), Surface(array), clamp)
    expected = np.zeros((4, 6), np.float32)
    expected[0, 0] = 7
    assert np.array_equal(array.copy_to(stream), expected)


def test_what_is_written_is_read_by_the_next_kernel(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    data = np.random.default_rng(2).random((4, 6), np.float32)
    array = CudaArray.from_host(stream, data, surface=True)
    surface, texture, out = Surface(array), Texture(array), stream.zeros((4, 6), np.float32)
    brighten = kernels.kernel("brighten").bind(stream, LaunchConfig(4, 6))
    prepared = brighten.prepare(surface, 2.0)
    for _ in range(3):
        brighten(surface, 2.0)
    prepared()
    kernels.kernel("read_plane").launch(stream, LaunchConfig(4, 6), texture, out, 6)
    assert np.array_equal(stream.to_host(out), 16 * data)


def test_kernels_fill_levels(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    data = np.arange(64, dtype=np.float32).reshape(8, 8)
    array = MipmappedArray(stream.context, (8, 8), np.float32, surface=True)
    array.level(0).copy_from(stream, data)
    for number in range(1, array.levels):
        source = Texture(array.level(number - 1), filter_mode=FilterMode.LINEAR)
        level = array.level(number)
        config = LaunchConfig(level.shape[0], level.shape[1])
        kernels.kernel("halve").launch(stream, config, source, Surface(level))
    for number in range(array.levels):
        n = 8 >> number
        expected = data.reshape(n, 8 // n, n, 8 // n).mean(axis=(1, 3))
        np.testing.assert_allclose(array.level(number).copy_to(stream), expected, rtol=1e-6)


def test_captured_writes_are_replayed(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    array = CudaArray.from_host(stream, np.ones((4, 6), np.float32), surface=True)
    surface, out = Surface(array), np.zeros((4, 6), np.float32)
    with stream.capture() as graph:
        kernels.kernel("brighten").launch(stream, LaunchConfig(4, 6), surface, 2.0)
        array.copy_to(stream, out)
    with graph.instantiate() as executable:
        for expected in (2, 4, 8):
            executable.launch(stream)
            stream.synchronize()
            assert (out == expected).all()


def test_a_surface_is_over_an_array_made_for_it(stream: cudadrv.Stream) -> None:
    plain = CudaArray(stream.context, (4, 6), np.float32)
    with pytest.raises(TextureError, match="make the array with surface=True"):
        Surface(plain)
    for other in (MipmappedArray(stream.context, 8, "f4", surface=True), stream.zeros(4, "f4")):
        with pytest.raises(TextureError, match="it is over a CudaArray"):
            Surface(other)  # type: ignore[arg-type]  # what is tested


def test_surfaces_close_with_their_array(stream: cudadrv.Stream, kernels: cudadrv.Module) -> None:
    array = CudaArray(stream.context, 20, np.float32, surface=True)
    surface = Surface(array)
    launcher = kernels.kernel("write_line").bind(stream, LaunchConfig(1, 20))
    for _ in range(3):
        launcher(surface, 5.0)
    array.close()
    assert surface.closed
    with pytest.raises(ClosedError, match="the surface on device 0 was closed, or its memory"):
        launcher(surface, 5.0)
    with pytest.raises(ClosedError, match="the CUDA array of shape"):
        Surface(array)


def test_a_surface_stands_where_one_belongs(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    surface = Surface(CudaArray(stream.context, 20, np.float32, surface=True))
    launch = kernels.kernel("write_line").launch
    with pytest.raises(ArgumentError, match="of type Surface, but the parameter is float32"):
        launch(stream, LaunchConfig(1, 20), surface, surface)
    with cudadrv.Context.create(0) as own:
        other = Surface(CudaArray(own, 20, np.float32, surface=True))
        with pytest.raises(WrongDeviceError, match="argument 0 of kernel 'write_line'"):
            launch(stream, LaunchConfig(1, 20), other, 5.0)
