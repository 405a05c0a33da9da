"""Buffers and images of OpenGL without a GPU: the emulator, with a stand-in for its OpenGL."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest

import cudadrv
from cudadrv import DeviceArray, LaunchConfig
from cudadrv.driver._api import (
    CUDA_ARRAY3D_DESCRIPTOR,
    CUarray,
    CUarray_format,
    CUdevice,
    CUdeviceptr,
    CUgraphicsResource,
    CUresult,
    CUstream,
)
from cudadrv.emulator import Emulator, session
from cudadrv.errors import (
    AlreadyMappedError,
    ArgumentTypeError,
    ArgumentValueError,
    ClosedError,
    CudaError,
    InvalidGraphicsContextError,
    InvalidHandleError,
    InvalidValueError,
    StreamCaptureUnsupportedError,
    TextureError,
    UnsupportedError,
    WrongDeviceError,
)
from cudadrv.opengl import OpenGLBuffer, OpenGLImage
from cudadrv.texture import CudaArray, Surface
from tests.bump_kernel import PTX
from tests.noted_calls import replaced_calls

OK: Final = CUresult.CUDA_SUCCESS
BUFFER, IMAGE = 3, 4
NBYTES: Final = 64
FORMAT: Final = CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8


class OpenGL:
    """What the driver does for OpenGL, with one buffer and one image.

    Attributes:
        calls: its functions that were called, and did not fail, with the stream if they take one.
        rejections: codes by function, which it returns instead.
        mapped: the numbers of resources that are mapped.
        devices: the devices of the current OpenGL context.
    """

    def __init__(self, machine: Emulator) -> None:
        self.calls: list[str | tuple[str, int]] = []
        self.rejections: dict[str, int] = {}
        self.devices = [0]
        self.machine = machine
        self._address = CUdeviceptr()
        self.mapped: set[int] = set()
        for name in dir(self):
            if name.startswith("cu"):
                setattr(machine, name, getattr(self, name))

    def _note(self, name: str, stream: CUstream | None = None) -> CUresult:
        if name in self.rejections:
            return CUresult(self.rejections[name])
        short = name.removeprefix("cuGraphics")
        self.calls.append(short if stream is None else (short, int(stream)))
        return OK

    def reject_texels(self) -> None:
        """Let the driver describe arrays whose texels are of no format of cudadrv."""
        descriptor = CUDA_ARRAY3D_DESCRIPTOR()
        descriptor.Format = CUarray_format.CU_AD_FORMAT_NV12
        self.machine.__dict__["cuArray3DGetDescriptor"] = lambda array: (OK, descriptor)

    def cuGLGetDevices(self, count: int, kind: int) -> tuple[CUresult, int, list[CUdevice]]:
        if "cuGLGetDevices" in self.rejections:
            return CUresult(self.rejections["cuGLGetDevices"]), 0, []
        rest = [CUdevice(0)] * (count - len(self.devices))  # as cuda.bindings fills it up
        return OK, len(self.devices), [*map(CUdevice, self.devices), *rest]

    def cuGraphicsGLRegisterBuffer(self, name: int, flags: int) -> tuple[Any, ...]:
        code = self._note("cuGraphicsGLRegisterBuffer")
        if not code:
            code, self._address = self.machine.cuMemAlloc(NBYTES)
        return code, CUgraphicsResource(name)

    def cuGraphicsGLRegisterImage(self, name: int, target: int, flags: int) -> tuple[Any, ...]:
        assert (target, flags) == (0x0DE1, 4)
        return self._note("cuGraphicsGLRegisterImage"), CUgraphicsResource(name)

    def cuGraphicsUnregisterResource(self, resource: CUgraphicsResource) -> tuple[CUresult]:
        assert int(resource) not in self.mapped
        return (self._note("cuGraphicsUnregisterResource"),)

    def cuGraphicsMapResources(
        self, count: int, resource: CUgraphicsResource, stream: CUstream
    ) -> tuple[CUresult]:
        assert count == 1
        if int(resource) in self.mapped:
            return (CUresult.CUDA_ERROR_ALREADY_MAPPED,)
        code = self._note("cuGraphicsMapResources", stream)
        if not code:
            self.mapped.add(int(resource))
        return (code,)

    def cuGraphicsUnmapResources(
        self, count: int, resource: CUgraphicsResource, stream: CUstream
    ) -> tuple[CUresult]:
        assert count == 1
        self.mapped.remove(int(resource))
        return (self._note("cuGraphicsUnmapResources", stream),)

    def cuGraphicsResourceGetMappedPointer(self, resource: CUgraphicsResource) -> tuple[Any, ...]:
        assert int(resource) in self.mapped
        return self._note("cuGraphicsResourceGetMappedPointer"), self._address, NBYTES

    def cuGraphicsSubResourceGetMappedArray(
        self, resource: CUgraphicsResource, layer: int, level: int
    ) -> tuple[CUresult, CUarray]:
        assert int(resource) in self.mapped
        if code := self._note("cuGraphicsSubResourceGetMappedArray"):
            return code, CUarray()
        if (layer, level) != (0, 1):
            return CUresult.CUDA_ERROR_INVALID_VALUE, CUarray()
        descriptor = CUDA_ARRAY3D_DESCRIPTOR()
        descriptor.Width, descriptor.Height, descriptor.Flags = 8, 4, 2
        descriptor.Format, descriptor.NumChannels = FORMAT, 4
        return self.machine.cuArray3DCreate(descriptor)


@pytest.fixture
def gl() -> Iterator[OpenGL]:
    with session(devices=2) as machine:
        yield OpenGL(machine)


@pytest.fixture
def stream(gl: OpenGL) -> cudadrv.Stream:
    return cudadrv.cuda_context_for(0).new_stream()


@pytest.fixture
def buffer(stream: cudadrv.Stream) -> OpenGLBuffer:
    return OpenGLBuffer(stream.context, BUFFER)


def test_a_block_maps_and_unmaps_on_its_stream(
    gl: OpenGL, stream: cudadrv.Stream, buffer: OpenGLBuffer
) -> None:
    bump, number = stream.context.load_module(PTX).kernel("bump"), int(stream.handle)
    with buffer.map(stream, shape=(2, 8), dtype=np.float32) as array:
        assert (array.shape, array.dtype.str, array.nbytes) == ((2, 8), "<f4", NBYTES)
        stream.fill(array.view(np.uint32), 6)
        bump.launch(stream, LaunchConfig(1, 1), array)
    with buffer.map(stream) as read:
        assert (read.shape, read.dtype.str) == ((NBYTES,), "|u1")
        assert stream.to_host(read.view(np.uint32)).tolist() == [7, *[6] * 15]
    assert repr(buffer) == "<OpenGLBuffer 3 on device 0>"
    buffer.close()
    once = [("MapResources", number), "ResourceGetMappedPointer", ("UnmapResources", number)]
    assert gl.calls == ["GLRegisterBuffer", *once, *once, "UnregisterResource"]
    with pytest.raises(ClosedError, match="buffer 3 of OpenGL was closed"), buffer.map(stream):
        pass


def test_uses_of_the_memory_after_the_block_raise(
    stream: cudadrv.Stream, buffer: OpenGLBuffer
) -> None:
    bump, one = stream.context.load_module(PTX).kernel("bump"), LaunchConfig(1, 1)
    launcher = bump.bind(stream, one)
    with buffer.map(stream, dtype=np.uint32) as array:
        part = array[2:4]
        stream.fill(array, 1)
        launcher(array)
        prepared = launcher.prepare(array)
        prepared()
        with stream.capture() as graph:
            stream.fill(part, 2)
        executable = graph.instantiate()
        executable.launch(stream)
        executable.launch(stream)
        assert stream.to_host(array)[:5].tolist() == [3, 1, 2, 2, 1]
    for use in (
        lambda: stream.to_host(array),
        lambda: stream.fill(part, 3),
        lambda: array.ptr,
        lambda: launcher(array),
        lambda: bump.launch(stream, one, part),
        prepared,
        lambda: executable.launch(stream),
    ):
        with pytest.raises(ClosedError):
            use()


def test_the_stream_waits_for_all_that_used_the_memory_before_it_unmaps(
    gl: OpenGL, stream: cudadrv.Stream, buffer: OpenGLBuffer
) -> None:
    waits = gl.machine.cuStreamWaitEvent

    def noted(queue: CUstream, event: Any, flags: int) -> tuple[CUresult]:
        gl.calls.append(("wait", int(queue)))
        return waits(queue, event, flags)

    other, number = stream.context.new_stream(), int(stream.handle)
    with replaced_calls(cuStreamWaitEvent=noted), buffer.map(stream) as array:
        other.fill(array, 1)
        gl.calls.clear()
    assert gl.calls == [("wait", number), ("UnmapResources", number)]


def test_a_second_mapping_is_rejected_and_leaves_the_first(
    stream: cudadrv.Stream, buffer: OpenGLBuffer
) -> None:
    with buffer.map(stream) as array:
        with pytest.raises(AlreadyMappedError, match="leave the block of its other map"):
            buffer.map(stream).__enter__()
        stream.fill(array, 5)
        assert set(stream.to_host(array).tolist()) == {5}
    with buffer.map(stream):
        pass


def test_closing_while_it_is_mapped_unmaps_first(
    gl: OpenGL, stream: cudadrv.Stream, buffer: OpenGLBuffer
) -> None:
    ends = [("UnmapResources", int(stream.handle)), "UnregisterResource"]
    with buffer.map(stream) as array:
        gl.calls.clear()
        buffer.close()
        assert gl.calls == ends
        with pytest.raises(ClosedError):
            stream.fill(array, 5)
    image = OpenGLImage(stream.context, IMAGE, surface=True)
    with image.map(stream, level=1) as texels:
        gl.calls.clear()
        image.close()
        assert texels.closed
    assert gl.calls == ends


def test_closing_the_array_ends_the_mapping(
    gl: OpenGL, stream: cudadrv.Stream, buffer: OpenGLBuffer
) -> None:
    with buffer.map(stream) as array:
        array.close()
        assert not gl.mapped
        with buffer.map(stream) as again:
            stream.fill(again, 1)


def test_a_reset_of_the_context_unmaps_and_ends_registrations(
    gl: OpenGL, stream: cudadrv.Stream, buffer: OpenGLBuffer
) -> None:
    context = stream.context
    with buffer.map(stream) as array:
        gl.calls.clear()
        context.reset()
        assert [gl.calls[0][0], gl.calls[1]] == ["UnmapResources", "UnregisterResource"]
        assert array.closed
        assert buffer.closed
    assert len(gl.calls) == 2


def test_lost_registrations_and_mappings_end(
    gl: OpenGL, stream: cudadrv.Stream, buffer: OpenGLBuffer
) -> None:
    block = buffer.map(stream)
    array = block.__enter__()
    circle: list[Any] = [OpenGLImage(stream.context, IMAGE, surface=True)]
    circle.append(circle)
    gl.calls.clear()
    del block
    assert gl.calls == [("UnmapResources", int(stream.handle))]
    assert array.closed
    del circle
    gc.collect()
    assert gl.calls[1:] == ["UnregisterResource"]


def test_a_created_context_ends_its_mappings_and_registrations(gl: OpenGL) -> None:
    context = cudadrv.Context.create(0)
    stream = context.new_stream()
    buffer = OpenGLBuffer(context, BUFFER)
    with buffer.map(stream) as array:
        context.close()
        assert array.closed
        assert buffer.closed
    calls = [call if isinstance(call, str) else call[0] for call in gl.calls]
    assert calls[-2:] == ["UnmapResources", "UnregisterResource"]


def test_a_block_that_raises_unmaps_and_keeps_its_error(
    gl: OpenGL, stream: cudadrv.Stream, buffer: OpenGLBuffer
) -> None:
    with pytest.raises(KeyError), buffer.map(stream):
        raise KeyError("of the block")
    with pytest.raises(InvalidValueError, match="does not fit"), buffer.map(stream, shape=65):
        pass
    with pytest.raises(InvalidValueError, match="64 bytes are no array of"):
        buffer.map(stream, dtype=[("x", "u1", 3)]).__enter__()
    gl.rejections["cuGraphicsResourceGetMappedPointer"] = 213
    with pytest.raises(CudaError, match="mapping <OpenGLBuffer 3"), buffer.map(stream):
        pass
    assert not gl.mapped


@pytest.mark.parametrize("function", ["cuGraphicsUnmapResources", "cuGraphicsUnregisterResource"])
def test_a_failure_to_unmap_or_to_close_is_raised(
    gl: OpenGL, stream: cudadrv.Stream, buffer: OpenGLBuffer, function: str
) -> None:
    gl.rejections[function] = 999
    with pytest.raises(CudaError) as caught:
        with buffer.map(stream):
            pass
        buffer.close()
    assert (caught.value.call, caught.value.code) == (function, 999)


@pytest.mark.parametrize(
    "function",
    [
        "cuGraphicsGLRegisterImage",
        "cuGraphicsMapResources",
        "cuGraphicsSubResourceGetMappedArray",
        "cuArray3DGetDescriptor",
    ],
)
def test_a_failure_to_map_an_image_leaves_nothing_mapped(
    gl: OpenGL, stream: cudadrv.Stream, function: str
) -> None:
    def map_image() -> None:
        with OpenGLImage(stream.context, IMAGE, surface=True) as image, image.map(stream, level=1):
            pass

    gl.rejections[function] = 999
    # The last function is the emulator's.
    with gl.machine.fail("cuArray3DGetDescriptor"), pytest.raises(CudaError) as caught:
        map_image()
    assert (caught.value.call, caught.value.code) == (function, 999)
    assert not gl.mapped
    gl.rejections.clear()
    map_image()


def test_streams_that_capture_or_are_of_another_device_are_rejected(
    stream: cudadrv.Stream, buffer: OpenGLBuffer
) -> None:
    far = cudadrv.cuda_context_for(1).new_stream()
    with pytest.raises(WrongDeviceError, match="of another context"), buffer.map(far):
        pass
    with (
        pytest.raises(StreamCaptureUnsupportedError, match="map around the launches"),
        stream.capture(),
        buffer.map(stream),
    ):
        pass


def test_a_rejected_registration_reports_which_opengl_context_is_missing(
    gl: OpenGL, stream: cudadrv.Stream, buffer: OpenGLBuffer
) -> None:
    context = stream.context
    gl.rejections["cuGraphicsGLRegisterBuffer"] = 304
    with pytest.raises(CudaError, match="permissions") as caught:
        OpenGLBuffer(context, 5)
    assert caught.value.code == 304
    gl.devices = [1]
    with pytest.raises(CudaError, match=r"context is of devices \[1\]: use a context of theirs"):
        OpenGLBuffer(context, 5)
    gl.devices = [0]
    gl.rejections["cuGraphicsGLRegisterBuffer"] = 400
    with pytest.raises(InvalidHandleError, match="has none of this name, with storage"):
        OpenGLBuffer(context, 5)
    gl.rejections["cuGLGetDevices"] = 801
    with pytest.raises(UnsupportedError, match="registering buffer 5 of OpenGL on device 0"):
        OpenGLBuffer(context, 5)
    gl.rejections.clear()


def test_calls_without_an_opengl_context_raise_before_they_reach_the_driver(
    gl: OpenGL, stream: cudadrv.Stream, buffer: OpenGLBuffer
) -> None:
    gl.calls.clear()
    gl.rejections["cuGLGetDevices"] = 219
    with pytest.raises(InvalidGraphicsContextError, match="registering buffer 5 of OpenGL on dev"):
        OpenGLBuffer(stream.context, 5)
    with pytest.raises(InvalidGraphicsContextError, match="mapping <OpenGLBuffer 3 on device 0>"):
        buffer.map(stream).__enter__()
    with pytest.raises(InvalidGraphicsContextError, match="make an OpenGL context"):
        cudadrv.opengl.opengl_devices()
    assert gl.calls == []
    gl.rejections.clear()


def test_a_block_that_ends_without_an_opengl_context_raises_and_is_unmapped_later(
    gl: OpenGL, stream: cudadrv.Stream, buffer: OpenGLBuffer
) -> None:
    block = buffer.map(stream)
    array = block.__enter__()
    gl.calls.clear()
    gl.rejections["cuGLGetDevices"] = 219
    with pytest.raises(InvalidGraphicsContextError, match="unmapping memory of OpenGL") as caught:
        block.__exit__(None, None, None)
    assert caught.value.__context__ is None
    del caught
    assert array.closed
    stream.synchronize()
    assert gl.calls == []
    gl.rejections.clear()
    stream.synchronize()
    assert gl.calls == [("UnmapResources", int(stream.handle))]
    with buffer.map(stream):
        pass


def test_a_registration_that_ends_without_an_opengl_context_ends_later(
    gl: OpenGL, stream: cudadrv.Stream, buffer: OpenGLBuffer
) -> None:
    lost = [OpenGLImage(stream.context, IMAGE, surface=True)]
    gl.calls.clear()
    gl.rejections["cuGLGetDevices"] = 219
    buffer.close()
    lost.clear()
    stream.synchronize()
    assert gl.calls == []
    gl.rejections.clear()
    stream.synchronize()
    assert gl.calls == ["UnregisterResource"] * 2


def test_the_devices_of_the_opengl_context_are_listed(gl: OpenGL) -> None:
    gl.devices = [1]
    assert cudadrv.opengl.opengl_devices() == (cudadrv.Device.get(1),)


def test_wrong_arguments_are_named(stream: cudadrv.Stream) -> None:
    context = stream.context
    with pytest.raises(ArgumentValueError, match="OpenGLBuffer: name is 0"):
        OpenGLBuffer(context, 0)
    with pytest.raises(ArgumentTypeError, match='"read_only" or "write_discard"'):
        OpenGLBuffer(context, 1, access="rw")  # type: ignore[arg-type]  # what is tested
    with pytest.raises(ArgumentTypeError, match="OpenGLImage: surface"):
        OpenGLImage(context, 1, surface=1)  # type: ignore[arg-type]  # what is tested


def test_an_image_is_mapped_as_a_cuda_array(gl: OpenGL, stream: cudadrv.Stream) -> None:
    given = np.arange(4 * 8 * 4, dtype=np.uint8).reshape(4, 8, 4)
    with OpenGLImage(stream.context, IMAGE, surface=True) as image:
        with image.map(stream, level=1) as array:
            assert isinstance(array, CudaArray)
            assert repr(array) == "<CudaArray (4, 8) 4 × uint8 on device 0>"
            surface = Surface(array)
            array.copy_from(stream, given)
            assert np.array_equal(array.copy_to(stream), given)
        assert surface.closed
        with pytest.raises(ClosedError, match="CUDA array of shape"):
            array.copy_to(stream)
        with pytest.raises(InvalidValueError, match="mapping layer 2 and level 0"):
            image.map(stream, layer=2).__enter__()
        gl.reject_texels()
        with pytest.raises(TextureError, match="texels of the format"):
            image.map(stream, level=1).__enter__()
    assert not gl.mapped
    assert gl.calls[-1] == "UnregisterResource"


def test_a_mapped_array_has_the_type_of_its_elements(
    stream: cudadrv.Stream, buffer: OpenGLBuffer
) -> None:
    with buffer.map(stream) as plain, pytest.raises(AlreadyMappedError):
        bytes_: DeviceArray[np.uint8] = plain
        assert bytes_.dtype == np.uint8
        with buffer.map(stream, dtype=np.float32) as floats:
            typed: DeviceArray[np.float32] = floats
            assert typed
