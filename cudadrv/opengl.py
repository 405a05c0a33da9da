"""`OpenGLBuffer` and `OpenGLImage`: memory of OpenGL that kernels read and write.

CUDA Driver API, "Graphics Interoperability" and "OpenGL Interoperability".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias, TypeVar, overload

import numpy as np

from ptx.read_only import ReadOnly

from . import border
from .driver._api import CUGLDeviceList, CUgraphicsResource, CUresult
from .driver.context import BaseContext, require_context
from .driver.context_handle import ChildHandle
from .driver.deferred_release import retry_destroy, run_deferred
from .driver.device import Device, list_devices
from .driver.driver_api import DriverApi
from .driver.driver_selection import checked, current, failure
from .driver.handle import Closeable, InvalidatedHandle, check
from .driver.stream import BaseStream, require_stream
from .driver.stream_handle import StreamHandle
from .errors import (
    CudadrvError,
    CudaError,
    InvalidGraphicsContextError,
    InvalidValueError,
    StreamCaptureUnsupportedError,
    UnsupportedError,
    WrongDeviceError,
)
from .memory.array import AnyDeviceArray, DeviceArray
from .memory.buffer import DeviceBuffer, owning
from .memory.dtypes import TypedDType, checked_dtype
from .memory.layout import Shape
from .memory.order import Memory, memory_moves
from .texture.array_layout import layout_of
from .texture.cuda_array import CudaArray

__all__ = ["OpenGLBuffer", "OpenGLImage", "opengl_devices"]

if TYPE_CHECKING:
    import numpy.typing as npt

_ScalarT = TypeVar("_ScalarT", bound=np.generic)
_MappedT = TypeVar("_MappedT", bound=Closeable)

Access: TypeAlias = Literal["read_write", "read_only", "write_discard"]

_FLAGS: Final = {"read_write": 0, "read_only": 1, "write_discard": 2}  # CU_GRAPHICS_REGISTER_FLAGS
_SURFACE, _GATHER = 4, 8  # CU_GRAPHICS_REGISTER_FLAGS_SURFACE_LDST, _TEXTURE_GATHER
_TEXTURE_2D: Final = 0x0DE1  # GL_TEXTURE_2D
_LARGEST_NAME: Final = 2**32 - 1
_MOST_DEVICES: Final = 64
_ALL: Final = CUGLDeviceList.CU_GL_DEVICE_LIST_ALL
_UNMAPPING: Final = "unmapping memory of OpenGL"
_UNMAPPED: Final = InvalidatedHandle("the memory of OpenGL was unmapped")


class _ResourceHandle(ChildHandle[CUgraphicsResource]):
    """Owns a registration."""

    __slots__ = ()

    def _destroy(self) -> None:
        doing = "closing a buffer or image of OpenGL"
        _require_opengl(self.api, doing)
        (code,) = self.context.call(self.api.cuGraphicsUnregisterResource, self.raw)
        check(self, code, "cuGraphicsUnregisterResource", doing)


class _Mapping(Memory[CUgraphicsResource]):
    """Owns the mapping of a resource, which ends after every stream that used the memory.

    Attributes:
        parent: the registration.
        stream: the stream that comes after earlier work of OpenGL, and before later work.
    """

    __slots__ = ("parent", "stream")

    def __init__(self, parent: _ResourceHandle, stream: StreamHandle) -> None:
        self.parent: _ResourceHandle = parent
        self.stream: StreamHandle = stream
        super().__init__(parent.context, None, stream)

    def begin(self) -> CUresult:
        """Map the resource; return the driver's result."""
        return self.context.call(self._map)

    def _map(self) -> CUresult:
        function = self.api.cuGraphicsMapResources
        (code,) = self.stream.submit(function, 1, self.parent.raw, self.stream.raw)
        if not code:
            self.raw = self.parent.raw
        return code

    def _destroy(self) -> None:
        _require_opengl(self.api, _UNMAPPING)
        self.raw = _UNMAPPED  # type: ignore[assignment]  # no call accepts it
        try:
            with ExitStack() as steps:  # each runs, even if another one fails
                steps.callback(self._unmap)
                for user in self.all_users():
                    if user is not self.stream:
                        steps.callback(self.stream.follow, user)
        finally:
            del self.parent  # which may be closed
            self.ordered_on = self.recorded = None
            memory_moves.count += 1  # a graph checks its memory again

    def _unmap(self) -> None:
        function, raw = self.api.cuGraphicsUnmapResources, self.stream.raw
        (code,) = self.stream.submit(self.context.call, function, 1, self.parent.raw, raw)
        check(self, code, "cuGraphicsUnmapResources", _UNMAPPING)

    def end(self) -> None:
        """Unmap the resource now, even if a graph still refers to its memory. Idempotent.

        Raises:
            InvalidGraphicsContextError: no OpenGL context is current. A later call unmaps it.
        """
        if self.is_destroyed or self._destroying_driver() is None:
            return
        try:
            self._destroy()
        except InvalidGraphicsContextError:
            retry_destroy(self._destroy_and_report)
            raise


class _Mapped(Closeable):
    """Memory of a mapping, which ends when it is closed."""

    __slots__ = ()

    def close(self) -> None:
        handle = self._handle
        try:
            super().close()
        finally:
            if isinstance(handle, _Mapping):
                handle.end()


class _MappedBuffer(_Mapped, DeviceBuffer):
    """The memory of a buffer of OpenGL."""

    __slots__ = ()


class _MappedImage(_Mapped, CudaArray[Any]):
    """A level of an image of OpenGL."""

    __slots__ = ()


class _Registered(Closeable):
    """A buffer or an image of OpenGL, registered with CUDA."""

    __slots__ = ("_access", "_context", "_name")

    access: ReadOnly[Access] = ReadOnly("_access")
    context: ReadOnly[BaseContext] = ReadOnly("_context")
    name: ReadOnly[int] = ReadOnly("_name")

    _handle: _ResourceHandle
    _kind: ClassVar[str]

    def _prepare(
        self, where: str, context: BaseContext, name: int, access: Access
    ) -> tuple[_ResourceHandle, int]:
        """Check and set what both kinds have; return a handle to fill, and the driver's flags."""
        require_context(f"{where}: context", context)
        self._context: BaseContext = context
        self._name: int = border.int_in_range(f"{where}: name", name, 1, _LARGEST_NAME)
        value: object = access
        if not (isinstance(value, str) and value in _FLAGS):
            given = 'give "read_write", "read_only" or "write_discard"'
            raise border.wrong_type(f"{where}: access", access, given)
        self._access: Access = access
        handle = _ResourceHandle(context._handle)
        _require_opengl(handle.api, self._registering)
        return handle, _FLAGS[access]

    def _keep(self, handle: _ResourceHandle, code: CUresult, call: str) -> None:
        """Own the registration, if the driver made it."""
        if code:
            raise _rejection(self._context, code, call, self._registering)
        self._own(handle)
        self._context._adopt(self)

    @property
    def _registering(self) -> str:
        where = f"on device {self._context.ordinal}"
        return f"registering {self._kind} {self._name} of OpenGL {where}"

    def __repr__(self) -> str:
        state = " closed" if self.closed else ""
        return f"<{type(self).__name__}{state} {self._name} on device {self._context.ordinal}>"

    @property
    def _closed_text(self) -> str:
        return f"the {self._kind} {self._name} of OpenGL was closed"

    @property
    def handle(self) -> CUgraphicsResource:
        """The CUgraphicsResource.

        Raises:
            ClosedError: it was closed.
        """
        return self._handle.raw

    def _map(
        self, where: str, stream: BaseStream, make: Callable[[_Mapping], _MappedT]
    ) -> _MappedT:
        """Map it, and return what `make` returns for the mapping; closing that unmaps it."""
        require_stream(f"{where}: stream", stream)
        self._handle.raw  # noqa: B018  # raises once it is closed
        if stream.context is not self._context:
            raise WrongDeviceError(f"mapping {self!r} for {stream!r} of another context")
        if stream._handle.capture is not None:
            raise StreamCaptureUnsupportedError(
                f"{where}: a graph records no mapping\n  map around the launches of the graph",
                explained=True,
            )
        run_deferred()
        mapping, doing = _Mapping(self._handle, stream._handle), f"mapping {self!r} on {stream!r}"
        _require_opengl(mapping.api, doing)
        code = mapping.begin()
        if code:
            raise failure(mapping.api, code, "cuGraphicsMapResources", doing)
        with ExitStack() as steps:
            steps.callback(mapping.end)
            mapped = make(mapping)
            self._adopt(mapped)
            steps.pop_all()
        return mapped

    def close(self) -> None:
        """End the registration, and before it the mapping. Idempotent.

        In a thread without an OpenGL context, the registration ends at a later call in a thread
        that has one.
        """
        super().close()


class OpenGLBuffer(_Registered):
    """A buffer object of OpenGL, registered so that kernels can use its memory.

    The OpenGL context of the buffer must be current in the thread that registers and maps it.

    Args:
        context: the context of a device of `opengl_devices`.
        name: of the buffer, from ``glGenBuffers``; ``glBufferData`` has given it memory.
        access: "read_only" if kernels do not write it, "write_discard" if they write all of it and
            read nothing.

    Attributes:
        context: the context.
        name: the name.
        access: the access.
        closed: whether it was closed.

    Raises:
        InvalidGraphicsContextError: no OpenGL context is current.
        InvalidHandleError: there is no such buffer.
        UnsupportedError: there is no OpenGL, as on the emulator.
    """

    __slots__ = ()

    _kind = "buffer"

    def __init__(self, context: BaseContext, name: int, *, access: Access = "read_write") -> None:
        handle, flags = self._prepare("OpenGLBuffer", context, name, access)
        code = handle.make(handle.api.cuGraphicsGLRegisterBuffer, self.name, flags)
        self._keep(handle, code, "cuGraphicsGLRegisterBuffer")

    @overload
    def map(
        self, stream: BaseStream, *, shape: Shape | None = None
    ) -> AbstractContextManager[DeviceArray[np.uint8]]: ...
    @overload
    def map(
        self, stream: BaseStream, *, shape: Shape | None = None, dtype: TypedDType[_ScalarT]
    ) -> AbstractContextManager[DeviceArray[_ScalarT]]: ...
    # A dtype given as text has no static type.
    @overload
    def map(
        self, stream: BaseStream, *, shape: Shape | None = None, dtype: npt.DTypeLike
    ) -> AbstractContextManager[AnyDeviceArray]: ...
    def map(
        self,
        stream: BaseStream,
        *,
        shape: Shape | None = None,
        dtype: npt.DTypeLike = np.uint8,
    ) -> AbstractContextManager[AnyDeviceArray]:
        """Return a context manager: in the block, the buffer's memory is a `DeviceArray`.

        Work on the stream comes after earlier work of OpenGL. Later work of OpenGL comes after the
        work in the block, on any stream. OpenGL must not use the buffer in the block. After the
        block the array and its views raise `ClosedError`.

        Args:
            stream: the stream, which is not capturing.
            shape: of the array; by default one axis for the whole buffer.
            dtype: of the array.

        Raises:
            AlreadyMappedError: it is mapped.
            InvalidGraphicsContextError: no OpenGL context is current, now or when the block ends.
            InvalidValueError: the array does not fit the buffer.
            WrongDeviceError: the stream is of another context.
        """
        return self._map_array(stream, shape, checked_dtype(dtype))

    @contextmanager
    def _map_array(
        self, stream: BaseStream, shape: Shape | None, dtype: np.dtype[Any]
    ) -> Iterator[AnyDeviceArray]:
        with self._map("OpenGLBuffer.map", stream, partial(self._memory_of, stream)) as buffer:
            if shape is None:
                count, rest = divmod(buffer.nbytes, max(dtype.itemsize, 1))
                if rest:
                    found = f"{buffer.nbytes} bytes are no array of {dtype}"
                    raise InvalidValueError(f"mapping {self!r}: {found}")
                shape = (count,)
            yield owning(DeviceArray(buffer, shape, dtype))

    def _memory_of(self, stream: BaseStream, mapping: _Mapping) -> _MappedBuffer:
        function = mapping.api.cuGraphicsResourceGetMappedPointer
        result = mapping.context.call(function, mapping.raw)
        call, doing = "cuGraphicsResourceGetMappedPointer", f"mapping {self!r}"
        address, nbytes = checked(mapping.api, call, result, doing)
        buffer = _MappedBuffer.__new__(_MappedBuffer)
        buffer._hold(stream, mapping, int(address), nbytes)
        return buffer


class OpenGLImage(_Registered):
    """A texture or a renderbuffer of OpenGL, registered so that kernels can use its texels.

    The OpenGL context of the image must be current in the thread that registers and maps it.

    Args:
        context: the context of a device of `opengl_devices`.
        name: of the image, from ``glGenTextures`` or ``glGenRenderbuffers``; it has its storage.
        target: of the image, such as ``GL_TEXTURE_3D`` or ``GL_RENDERBUFFER``; by default
            ``GL_TEXTURE_2D``.
        access: as of `OpenGLBuffer`.
        surface: kernels may write it, through a `Surface`.
        gather: kernels may use tex2Dgather.

    Attributes:
        context: the context.
        name: the name.
        access: the access.
        closed: whether it was closed.

    Raises:
        InvalidGraphicsContextError: no OpenGL context is current.
        InvalidHandleError: there is no such image.
        UnsupportedError: there is no OpenGL, as on the emulator.
    """

    __slots__ = ("_surface",)

    _kind = "image"

    def __init__(
        self,
        context: BaseContext,
        name: int,
        target: int = _TEXTURE_2D,
        *,
        access: Access = "read_write",
        surface: bool = False,
        gather: bool = False,
    ) -> None:
        handle, flags = self._prepare("OpenGLImage", context, name, access)
        number = border.int_in_range("OpenGLImage: target", target, most=_LARGEST_NAME)
        self._surface: bool = border.instance_of("OpenGLImage: surface", surface, bool)
        flags |= _SURFACE * surface | _GATHER * border.instance_of(
            "OpenGLImage: gather", gather, bool
        )
        code = handle.make(handle.api.cuGraphicsGLRegisterImage, self.name, number, flags)
        self._keep(handle, code, "cuGraphicsGLRegisterImage")

    @contextmanager
    def map(
        self, stream: BaseStream, *, layer: int = 0, level: int = 0
    ) -> Iterator[CudaArray[Any]]:
        """Return a context manager: in the block, a level of the image is a `CudaArray`.

        The order is that of `OpenGLBuffer.map`. After the block the array, and the textures and
        surfaces over it, raise `ClosedError`. Its first row is the bottom row of OpenGL.

        Args:
            stream: the stream, which is not capturing.
            layer: of an array texture, or the face of a cubemap.
            level: of the mipmap.

        Raises:
            AlreadyMappedError: it is mapped.
            InvalidGraphicsContextError: no OpenGL context is current, now or when the block ends.
            InvalidValueError: there is no such layer or level.
            TextureError: cudadrv has no texels of this format.
            WrongDeviceError: the stream is of another context.
        """
        layer = border.int_in_range("OpenGLImage.map: layer", layer, most=_LARGEST_NAME)
        level = border.int_in_range("OpenGLImage.map: level", level, most=_LARGEST_NAME)
        make = partial(self._array_of, layer, level)
        with self._map("OpenGLImage.map", stream, make) as array:
            yield array

    def _array_of(self, layer: int, level: int, mapping: _Mapping) -> CudaArray[Any]:
        api, call = mapping.api, mapping.context.call
        doing = f"mapping layer {layer} and level {level} of {self!r}"
        result = call(api.cuGraphicsSubResourceGetMappedArray, mapping.raw, layer, level)
        raw = checked(api, "cuGraphicsSubResourceGetMappedArray", result, doing)
        described = call(api.cuArray3DGetDescriptor, raw)
        descriptor = checked(api, "cuArray3DGetDescriptor", described, doing)
        extents, texel = layout_of(descriptor, surface=self._surface)
        return _MappedImage.of_level(self.context, extents, texel, raw, mapping)


def opengl_devices() -> tuple[Device, ...]:
    """Return the devices of the OpenGL context that is current in this thread.

    Raises:
        InvalidGraphicsContextError: no OpenGL context is current.
        UnsupportedError: there is no OpenGL, as on the emulator.
    """
    numbers = _numbers(current().api, "querying the devices of the current OpenGL context")
    return tuple(device for device in list_devices() if int(device._raw) in numbers)


def _numbers(api: DriverApi, doing: str) -> list[int]:
    """Return the devices of the current OpenGL context, by their numbers."""
    code, count, devices = api.cuGLGetDevices(_MOST_DEVICES, _ALL)
    if code:
        error = failure(api, code, "cuGLGetDevices", doing)
        if code == CUresult.CUDA_ERROR_NOT_SUPPORTED and isinstance(error, CudaError):
            error = UnsupportedError(f"{doing}: there is no OpenGL\n  {error.text}")
        raise error
    return [int(device) for device in devices[:count]]  # the rest is unused


def _require_opengl(api: DriverApi, doing: str) -> None:
    """Raise unless an OpenGL context is current in this thread.

    A call without one can leave the driver in disorder: after cuGraphicsUnmapResources had failed,
    cuGraphicsUnregisterResource crashed the process (measured with driver 580).
    """
    _numbers(api, doing)


def _rejection(context: BaseContext, code: CUresult, call: str, doing: str) -> CudadrvError:
    """Return the error of a registration, with what to do."""
    error = failure(context._api, code, call, doing)
    if isinstance(error, CudaError):
        devices = _numbers(context._api, doing)
        if int(context.device._raw) not in devices:
            error.text += f"\n  the OpenGL context is of devices {devices}: use a context of theirs"
            error.explained = True
        elif code == CUresult.CUDA_ERROR_INVALID_HANDLE:
            error.text += "\n  the current OpenGL context has none of this name, with storage"
            error.explained = True
    return error
