"""Buffers and images of OpenGL: what it writes kernels read, and the other way round."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.driver.driver_selection import current
from cudadrv.errors import (
    AlreadyMappedError,
    ClosedError,
    CudaError,
    InvalidGraphicsContextError,
    InvalidHandleError,
    UnsupportedError,
)
from cudadrv.opengl import OpenGLBuffer, OpenGLImage, opengl_devices
from cudadrv.texture import Surface
from tests.noted_calls import calls_of

from .headless_opengl import TEXTURE_2D_ARRAY, HeadlessOpenGL, NoOpenGLError

SOURCE = """
extern "C" __global__ void add(float* x, float by) { x[threadIdx.x] += by; }
extern "C" __global__ void invert(cudaSurfaceObject_t s)
{
    int x = threadIdx.x * 4, y = blockIdx.x;
    uchar4 c;
    surf2Dread(&c, s, x, y);
    surf2Dwrite(make_uchar4(255 - c.x, 255 - c.y, 255 - c.z, c.w), s, x, y);
}
"""


@pytest.fixture
def gl() -> Iterator[HeadlessOpenGL]:
    if current().is_emulated:
        pytest.skip("needs a GPU with OpenGL; the emulator has none")
    try:
        context = HeadlessOpenGL(0)
    except NoOpenGLError as error:
        pytest.skip(f"needs OpenGL without a window: {error}")
    with context:
        yield context


def test_the_emulator_reports_that_it_has_no_opengl(context: cudadrv.Context) -> None:
    if not current().is_emulated:
        pytest.skip("needs the emulator")
    with pytest.raises(
        UnsupportedError, match=r"buffer 3 of OpenGL .*: there is no OpenGL\n.*use a GPU"
    ):
        OpenGLBuffer(context, 3)
    with pytest.raises(UnsupportedError, match="image 3 of OpenGL"):
        OpenGLImage(context, 3)
    with pytest.raises(UnsupportedError, match="no OpenGL: use a GPU"):
        opengl_devices()


def test_a_kernel_changes_a_buffer_between_writes_and_reads_of_opengl(
    gl: HeadlessOpenGL, stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    given = np.arange(64, dtype=np.float32)
    name, add, config = gl.buffer(given), kernels.kernel("add"), LaunchConfig(1, 64)
    with OpenGLBuffer(stream.context, name) as buffer, stream.context.new_stream() as other:
        for round_number in range(3):
            start = given + 100 * round_number
            gl.write(name, start)
            with buffer.map(stream, dtype=np.float32) as array:
                assert array.shape == (64,)
                add.launch(stream, config, array, 0.5)
                add.launch(other, config, array, 1.0)
            assert np.array_equal(gl.read(name, np.empty_like(given)), start + 1.5)
        with buffer.map(stream, shape=(4, 16), dtype=np.float32) as array:
            assert np.array_equal(stream.to_host(array), start.reshape(4, 16) + 1.5)
        with pytest.raises(ClosedError, match="device array of shape"):
            stream.to_host(array)


def test_a_kernel_changes_a_texture_through_a_surface(
    gl: HeadlessOpenGL, stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    given = np.arange(4 * 8 * 4, dtype=np.uint8).reshape(4, 8, 4)
    name = gl.texture(given, channels=4)
    with OpenGLImage(stream.context, name, surface=True) as image:
        with image.map(stream) as array:
            assert (array.shape, array.channels, array.dtype.str) == ((4, 8), 4, "|u1")
            assert np.array_equal(array.copy_to(stream), given)
            surface = Surface(array)
            kernels.kernel("invert").launch(stream, LaunchConfig(4, 8), surface)
        assert surface.closed
        found = gl.read_texture(name, np.empty_like(given), channels=4)
    assert np.array_equal(found[..., :3], 255 - given[..., :3])
    assert np.array_equal(found[..., 3], given[..., 3])


def test_layers_and_levels_are_mapped_by_number(gl: HeadlessOpenGL, stream: cudadrv.Stream) -> None:
    given = np.arange(3 * 4 * 8, dtype=np.float32).reshape(3, 4, 8)
    layers = gl.texture(given)
    with OpenGLImage(stream.context, layers, TEXTURE_2D_ARRAY) as image:
        with image.map(stream, layer=2) as array:
            assert np.array_equal(array.copy_to(stream), given[2])
            array.copy_from(stream, given[0] + 7)
        found = gl.read_texture(layers, np.empty_like(given))
    assert np.array_equal(found, np.stack([given[0], given[1], given[0] + 7]))
    small: np.ndarray[Any, np.dtype[np.float32]] = np.full((2, 4), 5, np.float32)
    levels = gl.texture(given[0], small)
    with OpenGLImage(stream.context, levels) as image:
        with image.map(stream, level=1) as array:
            assert np.array_equal(array.copy_to(stream), small)
            array.copy_from(stream, small + 1)
        assert np.array_equal(gl.read_texture(levels, np.empty_like(small), level=1), small + 1)
        with pytest.raises(CudaError), image.map(stream, level=7):
            pass


def test_a_second_mapping_is_rejected_until_the_first_has_ended(
    gl: HeadlessOpenGL, stream: cudadrv.Stream
) -> None:
    with OpenGLBuffer(stream.context, gl.buffer(np.zeros(4))) as buffer:
        with buffer.map(stream), pytest.raises(AlreadyMappedError, match="its other map"):
            buffer.map(stream).__enter__()
        with buffer.map(stream) as array:
            assert array.nbytes == 32


def test_registering_without_an_opengl_context_reports_what_is_missing(
    gl: HeadlessOpenGL, context: cudadrv.Context
) -> None:
    name = gl.buffer(np.zeros(4))
    assert context.device in opengl_devices()
    gl.release()
    with pytest.raises(InvalidGraphicsContextError, match="make an OpenGL context .* current in"):
        OpenGLBuffer(context, name)
    gl.make_current()
    OpenGLBuffer(context, name).close()
    with pytest.raises(InvalidHandleError, match="registering buffer 999 of OpenGL on device 0"):
        OpenGLBuffer(context, 999)


def test_mappings_and_registrations_that_end_in_another_thread_end_later(
    gl: HeadlessOpenGL, stream: cudadrv.Stream
) -> None:
    ends = "cuGraphicsUnmapResources", "cuGraphicsUnregisterResource"
    buffers = [OpenGLBuffer(stream.context, gl.buffer(np.zeros(4))) for _ in range(2)]
    block = buffers[0].map(stream)
    block.__enter__()
    with calls_of(*ends) as calls:
        gl.release()
        with pytest.raises(InvalidGraphicsContextError, match="unmapping"):
            block.__exit__(None, None, None)
        closing = threading.Thread(target=buffers.pop().close)
        closing.start()
        closing.join()
        stream.synchronize()
        assert calls == []
        gl.make_current()
        stream.synchronize()
        assert sorted(calls, reverse=True) == [(name, 0) for name in reversed(ends)]
    with buffers[0].map(stream) as array:
        assert array.nbytes == 32
