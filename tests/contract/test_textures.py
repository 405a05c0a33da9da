"""Textures: what kernels read through them, against the formulas of the programming guide."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.errors import (
    DTypeError,
    TextureError,
)
from cudadrv.texture import AddressMode, CudaArray, FilterMode, MipmappedArray, ReadMode, Texture

from .texture_reference import cube_place, from_srgb, sample_all

SOURCE = """
#define AT(NAME, T, CALL) \\
    extern "C" __global__ void NAME(cudaTextureObject_t t, const float* x, const float* y, \\
                                    const float* z, T* out, int n) \\
    { \\
        int i = blockIdx.x * blockDim.x + threadIdx.x; \\
        if (i < n) out[i] = CALL; \\
    }
AT(fetch, float, tex1Dfetch<float>(t, (int)x[i]))
AT(fetch_u32, unsigned, tex1Dfetch<unsigned>(t, (int)x[i]))
AT(fetch_4, float4, tex1Dfetch<float4>(t, (int)x[i]))
AT(line, float, tex1D<float>(t, x[i]))
AT(plane, float, tex2D<float>(t, x[i], y[i]))
AT(plane_u32, unsigned, tex2D<unsigned>(t, x[i], y[i]))
AT(plane_s32, int, tex2D<int>(t, x[i], y[i]))
AT(plane_2, float2, tex2D<float2>(t, x[i], y[i]))
AT(plane_4, float4, tex2D<float4>(t, x[i], y[i]))
AT(space, float, tex3D<float>(t, x[i], y[i], z[i]))
AT(lines, float, tex1DLayered<float>(t, x[i], (int)y[i]))
AT(planes, float, tex2DLayered<float>(t, x[i], y[i], (int)z[i]))
AT(cube, float, texCubemap<float>(t, x[i], y[i], z[i]))
AT(cubes, float, texCubemapLayered<float>(t, x[i], y[i], z[i], 1))
AT(gather_x, float4, tex2Dgather<float4>(t, x[i], y[i], 0))
AT(gather_y, float4, tex2Dgather<float4>(t, x[i], y[i], 1))
AT(lod, float, tex2DLod<float>(t, x[i], y[i], z[i]))
AT(lod_gradient, float, tex2DGrad<float>(t, x[i], y[i], make_float2(z[i], 0), make_float2(0, z[i])))
"""
Read = Callable[..., npt.NDArray[Any]]
rng = np.random.default_rng(20240607)
LINE = rng.random(16, np.float32)
PLANE = rng.random((8, 16), np.float32)
SPACE = rng.random((4, 8, 16), np.float32)


@pytest.fixture
def read(kernels: cudadrv.Module, stream: cudadrv.Stream) -> Read:
    """``read(kernel, texture, places, dtype)``: what a kernel reads at places."""

    def read(
        name: str,
        texture: Texture,
        places: Sequence[Sequence[float]],
        dtype: npt.DTypeLike = np.float32,
        channels: int = 1,
    ) -> npt.NDArray[Any]:
        at = np.zeros((3, len(places)), np.float32)
        given = np.array(places, np.float32)
        at[: given.shape[1]] = given.T
        device = stream.to_device(at)
        n = len(places)
        shape = (n, channels) if channels > 1 else (n,)
        out = stream.zeros(shape, dtype)
        config = LaunchConfig.for_elements(n, block=64)
        kernels.kernel(name).launch(stream, config, texture, *device, out, n)
        return stream.to_host(out)

    return read


def places(shape: tuple[int, ...], count: int = 200, beyond: float = 1.5) -> list[list[float]]:
    """Places in texels in and around a texture, x first; none is where two texels meet."""
    extents = np.array(shape[::-1])
    raw = rng.uniform(-beyond, 1 + beyond, (count, len(shape))) * extents
    return [[float(v) for v in row] for row in np.floor(raw * 8) / 8 + 1 / 16]


def scaled(at: Sequence[Sequence[float]], shape: tuple[int, ...]) -> list[list[float]]:
    """Places in texels as normalised coordinates; exact, since all extents are powers of two."""
    return [[v / n for v, n in zip(row, shape[::-1], strict=True)] for row in at]


ALL = {"line": LINE, "plane": PLANE, "space": SPACE}


@pytest.mark.slow
@pytest.mark.parametrize("filter_mode", FilterMode)
@pytest.mark.parametrize("mode", [AddressMode.CLAMP, AddressMode.BORDER])
@pytest.mark.parametrize("name", ALL)
def test_places_in_texels(
    stream: cudadrv.Stream, read: Read, name: str, mode: AddressMode, filter_mode: FilterMode
) -> None:
    data = ALL[name]
    array = CudaArray.from_host(stream, data)
    texture = Texture(array, address_mode=mode, filter_mode=filter_mode)
    at = places(data.shape)
    linear = filter_mode is FilterMode.LINEAR
    expected, bound = sample_all(data, at, mode=mode, linear=linear)
    assert (np.abs(read(name, texture, at) - expected) <= bound + 1e-6).all()


@pytest.mark.parametrize("filter_mode", FilterMode)
@pytest.mark.parametrize("mode", AddressMode)
@pytest.mark.parametrize("name", ALL)
def test_normalised_places(
    stream: cudadrv.Stream, read: Read, name: str, mode: AddressMode, filter_mode: FilterMode
) -> None:
    data = ALL[name]
    color = None if mode is not AddressMode.BORDER else (0.25,)
    texture = Texture(
        CudaArray.from_host(stream, data),
        address_mode=mode,
        filter_mode=filter_mode,
        normalized_coordinates=True,
        border_color=color,
    )
    at = places(data.shape)
    linear = filter_mode is FilterMode.LINEAR
    expected, bound = sample_all(data, at, mode=mode, linear=linear, border=0.25)
    got = read(name, texture, scaled(at, data.shape))
    assert (np.abs(got - expected) <= bound + 1e-6).all()


def test_each_dimension_has_a_mode_of_its_own(stream: cudadrv.Stream, read: Read) -> None:
    modes = (AddressMode.WRAP, AddressMode.MIRROR)
    texture = Texture(
        CudaArray.from_host(stream, PLANE), address_mode=modes, normalized_coordinates=True
    )
    at = places(PLANE.shape)
    expected, _ = sample_all(PLANE, at, mode=modes)
    assert np.array_equal(read("plane", texture, scaled(at, PLANE.shape)), expected)


def test_layers_are_read_apart(stream: cudadrv.Stream, read: Read) -> None:
    lines = CudaArray.from_host(stream, PLANE, layered=True)
    got = read("lines", Texture(lines), [(x + 0.5, layer) for layer in range(8) for x in range(16)])
    assert np.array_equal(got.reshape(8, 16), PLANE)
    planes = CudaArray.from_host(stream, SPACE, layered=True)
    texture = Texture(planes, filter_mode=FilterMode.LINEAR)
    at = places((8, 16), 100)
    for layer in range(4):
        expected, bound = sample_all(SPACE[layer], at, linear=True)
        got = read("planes", texture, [(x, y, layer) for x, y in at])
        assert (np.abs(got - expected) <= bound + 1e-6).all()


def directions(count: int) -> list[list[float]]:
    """Directions of which none meets an edge of the cube, or the middle between two texels."""
    found: list[list[float]] = []
    while len(found) < count:
        v = rng.uniform(-1, 1, 3)
        parts = np.sort(np.abs(v))
        _, s, t = cube_place(*v)
        near = max(abs(s * 8 - round(s * 8)), abs(t * 8 - round(t * 8)))
        apart = min(abs(s * 8 - round(s * 8)), abs(t * 8 - round(t * 8)))
        if parts[2] - parts[1] > 0.05 and apart > 0.05 and near < 0.5:
            found.append([float(np.float32(x)) for x in v])
    return found


def test_cubemaps_are_read_by_direction(stream: cudadrv.Stream, read: Read) -> None:
    data = rng.random((12, 8, 8), np.float32)
    one = Texture(CudaArray.from_host(stream, data[:6], cubemap=True), normalized_coordinates=True)
    two = Texture(
        CudaArray.from_host(stream, data, cubemap=True, layered=True), normalized_coordinates=True
    )
    at = directions(200)
    faces = [cube_place(*v) for v in at]
    expected = [data[face, int(t * 8), int(s * 8)] for face, s, t in faces]
    assert np.array_equal(read("cube", one, at), np.array(expected))
    second = [data[6 + face, int(t * 8), int(s * 8)] for face, s, t in faces]
    assert np.array_equal(read("cubes", two, at), np.array(second))


def test_gathering_gives_one_channel_of_four_texels(stream: cudadrv.Stream, read: Read) -> None:
    data = rng.random((8, 16, 2), np.float32)
    texture = Texture(CudaArray.from_host(stream, data, channels=2, gather=True))
    at = [(x + 0.25, y + 0.25) for y in range(1, 7) for x in range(1, 15)]
    for name, channel in (("gather_x", 0), ("gather_y", 1)):
        got = read(name, texture, at, np.float32, 4)
        # The texels around a place, against the clock from the lower left.
        expected = [
            [
                data[y, x - 1, channel],
                data[y, x, channel],
                data[y - 1, x, channel],
                data[y - 1, x - 1, channel],
            ]
            for y in range(1, 7)
            for x in range(1, 15)
        ]
        assert np.array_equal(got, np.array(expected))


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "i1", "i2", "i4"])
def test_integers_are_read_as_they_are(stream: cudadrv.Stream, read: Read, dtype: str) -> None:
    info = np.iinfo(dtype)
    data = rng.integers(info.min, info.max, (4, 8), dtype, endpoint=True)
    data[0, :2] = info.min, info.max
    texture = Texture(CudaArray.from_host(stream, data))
    at = [(x + 0.5, y + 0.5) for y in range(4) for x in range(8)]
    name, wide = ("plane_u32", "u4") if dtype[0] == "u" else ("plane_s32", "i4")
    assert np.array_equal(read(name, texture, at, wide).reshape(4, 8), data.astype(wide))


@pytest.mark.parametrize("dtype", ["u1", "u2", "i1", "i2"])
def test_integers_are_read_as_parts_of_one(stream: cudadrv.Stream, read: Read, dtype: str) -> None:
    info = np.iinfo(dtype)
    data = rng.integers(info.min, info.max, (4, 8), dtype, endpoint=True)
    data[0, :2] = info.min, info.max
    array = CudaArray.from_host(stream, data)
    texture = Texture(array, read_mode=ReadMode.NORMALIZED)
    at = [(x + 0.5, y + 0.5) for y in range(4) for x in range(8)]
    expected = np.maximum(data.astype(np.float64) / info.max, -1)
    np.testing.assert_allclose(
        read("plane", texture, at).reshape(4, 8), expected, rtol=1e-6, atol=1e-7
    )
    # What the least integer, which is read as -1, weighs in a mixture is not documented.
    array.copy_from(stream, np.maximum(data, -info.max if dtype[0] == "i" else 0).astype(dtype))
    filtered = Texture(array, read_mode=ReadMode.NORMALIZED, filter_mode=FilterMode.LINEAR)
    around = places(data.shape, 100, 0.2)
    values, bound = sample_all(expected, around, linear=True)
    assert (np.abs(read("plane", filtered, around) - values) <= bound + 2**-15).all()


def test_half_precision_is_read_as_float(stream: cudadrv.Stream, read: Read) -> None:
    data = PLANE.astype(np.float16)
    at = [(x + 0.5, y + 0.5) for y in range(8) for x in range(16)]
    got = read("plane", Texture(CudaArray.from_host(stream, data)), at)
    assert np.array_equal(got.reshape(8, 16), data.astype(np.float32))


def test_several_channels_are_read_together(stream: cudadrv.Stream, read: Read) -> None:
    at = [(x + 0.5, y + 0.5) for y in range(4) for x in range(8)]
    for channels, name in ((2, "plane_2"), (4, "plane_4")):
        data = rng.random((4, 8, channels), np.float32)
        texture = Texture(CudaArray.from_host(stream, data, channels=channels))
        got = read(name, texture, at, np.float32, channels)
        assert np.array_equal(got.reshape(data.shape), data)


def test_colours_in_srgb_are_made_linear(stream: cudadrv.Stream, read: Read) -> None:
    data = np.arange(0, 256, 2, dtype=np.uint8).reshape(4, 8, 4)
    texture = Texture(
        CudaArray.from_host(stream, data, channels=4), read_mode=ReadMode.NORMALIZED, srgb=True
    )
    at = [(x + 0.5, y + 0.5) for y in range(4) for x in range(8)]
    got = read("plane_4", texture, at, np.float32, 4).reshape(4, 8, 4)
    linear = np.vectorize(from_srgb)(data / 255)
    # An H100 converts with a relative error of up to 1/256.
    np.testing.assert_allclose(got[..., :3], linear[..., :3], rtol=1 / 256, atol=1e-4)
    np.testing.assert_allclose(got[..., 3], data[..., 3] / 255, rtol=1e-6)


@pytest.mark.parametrize("mixed", FilterMode)
def test_levels_are_read_by_number(stream: cudadrv.Stream, read: Read, mixed: FilterMode) -> None:
    array = MipmappedArray(stream.context, (8, 16), np.float32, levels=4)
    values = [10.0, 20.0, 40.0, 80.0]
    for number, value in enumerate(values):
        level = array.level(number)
        level.copy_from(stream, np.full(level.shape, value, np.float32))
    options = {"normalized_coordinates": True, "mip_filter_mode": mixed}
    texture = Texture(array, **options)  # type: ignore[arg-type]  # a mapping has one type of values
    lods = [-1.0, 0.0, 0.375, 0.75, 1.0, 1.25, 2.0, 2.625, 3.0, 9.0]
    got = read("lod", texture, [(0.5, 0.5, lod) for lod in lods])
    held = np.clip(lods, 0, 3)
    if mixed is FilterMode.LINEAR:
        assert np.abs(got - np.interp(held, range(4), values)).max() <= 40 / 256
    else:
        assert np.array_equal(got, np.array(values)[np.floor(held + 0.5).astype(int)])
    some = Texture(array, **options, mip_levels=(1, 2))  # type: ignore[arg-type]  # likewise
    assert read("lod", some, [(0.5, 0.5, 0.0), (0.5, 0.5, 9.0)]).tolist() == [20.0, 40.0]
    biased = Texture(array, **options, mip_bias=1.0)  # type: ignore[arg-type]  # likewise
    assert read("lod", biased, [(0.5, 0.5, 1.0)]).tolist() == [40.0]


def test_memory_in_a_row_is_fetched(stream: cudadrv.Stream, read: Read) -> None:
    data = rng.random(1000, np.float32)
    texture = Texture(stream.to_device(data))
    at = [(float(i),) for i in (-1, 0, 1, 500, 999, 1000, 5000)]
    got = read("fetch", texture, at)
    assert np.array_equal(got, np.array([0, *data[[0, 1, 500, 999]], 0, 0], np.float32))
    numbers = rng.integers(0, 1 << 32, 100, "u4")
    got = read("fetch_u32", Texture(stream.to_device(numbers)), [(i,) for i in range(100)], "u4")
    assert np.array_equal(got, numbers)
    small = rng.integers(0, 256, (50, 4), "u1")
    normalised = Texture(stream.to_device(small), read_mode=ReadMode.NORMALIZED, channels=4)
    got = read("fetch_4", normalised, [(i,) for i in range(50)], np.float32, 4)
    np.testing.assert_allclose(got, small / 255, rtol=1e-6)


def test_memory_in_rows_is_filtered(stream: cudadrv.Stream, read: Read) -> None:
    texture = Texture(stream.to_device(PLANE), filter_mode=FilterMode.LINEAR)
    at = places(PLANE.shape, 100)
    expected, bound = sample_all(PLANE, at, linear=True)
    assert (np.abs(read("plane", texture, at) - expected) <= bound + 1e-6).all()


def test_rows_may_be_padded(stream: cudadrv.Stream, read: Read) -> None:
    padded = np.full((5, 16), np.nan, np.float32)
    data = padded[:, :11] = rng.random((5, 11), np.float32)
    array = stream.to_device(padded)
    with pytest.raises(
        TextureError, match=r"(?s)rows are 44 bytes: .* 16 texels a row .* width=11"
    ):
        Texture(stream.to_device(data))
    with pytest.raises(TextureError, match="width=17 .* its rows are of 16 texels"):
        Texture(array, width=17)
    at = places((5, 11), 100)
    expected, _ = sample_all(data, at)
    assert np.array_equal(read("plane", Texture(array, width=11), at), expected)


def test_memory_is_read_as_it_is_at_the_launch(stream: cudadrv.Stream, read: Read) -> None:
    array = stream.zeros(4, np.float32)
    texture = Texture(array)
    assert read("fetch", texture, [(1,)]).tolist() == [0]
    stream.copy(array, np.arange(4, dtype=np.float32))
    assert read("fetch", texture, [(1,)]).tolist() == [1]


def test_memory_begins_where_textures_may(stream: cudadrv.Stream) -> None:
    with pytest.raises(TextureError, match="must begin at a multiple of 512 bytes"):
        Texture(stream.zeros(100, np.float32)[1:])
    with pytest.raises(TextureError, match="one or two extents"):
        Texture(stream.zeros((2, 2, 2), np.float32))
    with pytest.raises(DTypeError, match="texels of float64"):
        Texture(stream.zeros(8, np.float64))


def test_a_texture_keeps_what_it_is_over(stream: cudadrv.Stream, read: Read) -> None:
    texture = Texture(CudaArray.from_host(stream, LINE))
    row = Texture(stream.to_device(LINE))
    gc.collect()
    at = [(i + 0.5,) for i in range(16)]
    assert np.array_equal(read("line", texture, at), LINE)
    assert np.array_equal(read("fetch", row, at), LINE)
    assert "over <CudaArray (16,) float32 on device 0>" in repr(texture)
    texture.close()
    assert texture.resource is None
    assert repr(texture) == "<Texture closed>"
