"""Contexts and streams as users hold them; each gives the other, so they are one file.

What only the driver is asked for is in `driver.context` and `driver.stream_core`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

import numpy as np

import ptx

from . import border, errors
from .driver._api import CUcontext, CUresult, CUstream, CUstream_flags
from .driver.context import ContextCore
from .driver.device import Device, driver_version
from .driver.event import Event
from .driver.in_use import current, failure
from .driver.stream_box import StreamBox
from .driver.stream_core import StreamCore
from .driver.types import CudaStream
from .errors import CopyError, WrongDeviceError
from .launch.module import ImageLike, Module
from .memory.array import AnyDeviceArray, DeviceArray
from .memory.buffer import DeviceBuffer, alloc
from .memory.copy import contiguous as new_contiguous, copy as copy_memory, download_any
from .memory.driver_pool import open_pool
from .memory.dtypes import TypedDType
from .memory.fill import fill
from .memory.host_array import as_array, require_plain
from .memory.host_copy import upload
from .memory.layout import Shape, checked_shape
from .memory.new_array import empty as new_array, empty_pitched as new_pitched, fortran
from .memory.resource import MemoryResource, choose
from .memory.strided.assign import assign

if TYPE_CHECKING:
    import numpy.typing as npt

    from .capture import Capture

# Imported where they are used: graphs, host functions and the room of other libraries, which many
# programs do without. Together they take 4 ms.

_ScalarT = TypeVar("_ScalarT", bound=np.generic)

_NON_BLOCKING: Final = int(CUstream_flags.CU_STREAM_NON_BLOCKING)
_BLOCKING: Final = int(CUstream_flags.CU_STREAM_DEFAULT)


class Stream(StreamCore):
    """A queue of work on one context's device; made by `Context.new_stream`.

    Work on a stream with memory of another one runs after what that has queued for the memory;
    see `unordered` for who orders streams himself.

    Attributes:
        context: the context, kept alive by the stream.
        handle: the CUstream; reading it after `close` raises `ClosedError`.
        capturing: whether a capture records what it is given.
        closed: whether it was closed.
    """

    __slots__ = ()

    context: Context

    def wait(self, event: Event | StreamCore | CudaStream) -> None:
        """Let what is queued from now on wait for an event, or for what a stream holds now.

        The stream may be another library's.
        """
        if isinstance(event, Event):
            self._wait_event(event)
        elif isinstance(event, StreamCore):
            if event is not self:
                self._wait_event(event.record(timing=False))
        else:
            from .interop.foreign import stream_handle
            from .interop.ordering import order_after

            order_after(self, (stream_handle(event),))

    # `alloc`, `empty` and `copy` are the functions themselves: one call less for each array.
    alloc = alloc

    if TYPE_CHECKING:

        @overload
        def empty(
            self, shape: Shape, dtype: TypedDType[_ScalarT], order: str = "C"
        ) -> DeviceArray[_ScalarT]: ...
        # A dtype given as text says nothing to a type checker.
        @overload
        def empty(
            self, shape: Shape, dtype: npt.DTypeLike, order: str = "C"
        ) -> DeviceArray[Any]: ...
        def empty(self, shape: Shape, dtype: npt.DTypeLike, order: str = "C") -> DeviceArray[Any]:
            """A device array, not initialised; in the order "F" the first axis is the nearest."""

        @overload
        def empty_pitched(
            self, shape: Shape, dtype: TypedDType[_ScalarT]
        ) -> DeviceArray[_ScalarT]: ...
        @overload
        def empty_pitched(self, shape: Shape, dtype: npt.DTypeLike) -> DeviceArray[Any]: ...
        def empty_pitched(self, shape: Shape, dtype: npt.DTypeLike) -> DeviceArray[Any]:
            """A device array, not initialised, whose rows begin at multiples of 512 bytes."""

        def contiguous(self, array: DeviceArray[_ScalarT]) -> DeviceArray[_ScalarT]:
            """The array if its elements lie in C order, one behind the other, else such a copy.

            Raises:
                WrongDeviceError: the array is of another context.
            """
    else:
        empty, empty_pitched, contiguous = new_array, new_pitched, new_contiguous

    @overload
    def zeros(
        self, shape: Shape, dtype: TypedDType[_ScalarT], order: str = "C"
    ) -> DeviceArray[_ScalarT]: ...
    @overload
    def zeros(self, shape: Shape, dtype: npt.DTypeLike, order: str = "C") -> DeviceArray[Any]: ...
    def zeros(self, shape: Shape, dtype: npt.DTypeLike, order: str = "C") -> DeviceArray[Any]:
        """A device array of zeros; in the order "F" the first axis is the nearest."""
        if order != "C":
            return fortran(order, self.zeros(checked_shape(shape)[::-1], dtype))
        array = self.empty(shape, dtype)
        if array.nbytes:
            box, pointer = self._box, array._pointer or array._make_pointer()
            (code,) = box.context._driver.api.cuMemsetD8Async(pointer, 0, array.nbytes, box.raw)
            if code:
                raise failure(box.api, code, "cuMemsetD8Async", f"zeroing {array.nbytes} bytes")
        return array

    @overload
    def to_device(
        self, array: npt.NDArray[_ScalarT], order: str = "C"
    ) -> DeviceArray[_ScalarT]: ...
    @overload
    def to_device(self, array: npt.ArrayLike, order: str = "C") -> DeviceArray[Any]: ...
    def to_device(self, array: npt.ArrayLike, order: str = "C") -> DeviceArray[Any]:
        """A device copy of a host array of any strides, in the order "C" or "F".

        The host array may be changed as soon as this returns.

        Raises:
            CopyError: it has masked elements.
            DTypeError: its elements are Python objects.
        """
        source = array if type(array) is np.ndarray else as_array(array)
        if order != "C":
            return fortran(order, self.to_device(source.T))
        # A graph reads its array at each replay: it gets one of its own.
        if self.capturing:
            source = np.array(source, order="C")
        result = self.empty(source.shape, source.dtype)
        upload(self, result, source)
        return result

    def to_host(
        self,
        array: DeviceArray[_ScalarT],
        out: npt.NDArray[_ScalarT] | None = None,
        *,
        wait: bool = True,
    ) -> npt.NDArray[_ScalarT]:
        """A host copy of a device array, of any strides, in `out` if given; waits for it.

        Args:
            array: the device array.
            out: a host array of its shape and dtype, of any strides.
            wait: whether to wait for a pinned C-contiguous `out`; without it the values are there
                once the stream is synchronised. Other arrays are always waited for.

        Raises:
            CopyError: `out` has another shape or dtype, or is read-only.
        """
        if type(array) is not DeviceArray:
            border.instance("Stream.to_host: array", array, DeviceArray)
        if out is not None and type(out) is not np.ndarray:
            require_plain(border.instance("Stream.to_host: out", out, np.ndarray))
        if out is None:
            try:
                out = np.empty(array.shape, array.dtype)
            except ValueError as error:  # NumPy has fewer axes
                raise CopyError(f"{array!r} has no counterpart on the host: {error}") from None
        elif out.shape != array.shape or not (out.dtype is array.dtype or out.dtype == array.dtype):
            raise CopyError(
                f"out is {out.shape} {out.dtype}, the device array {array.shape} {array.dtype}: "
                "both must have one shape and dtype"
            )
        download_any(self, out, array, wait)
        return out

    copy = copy_memory

    def assign(self, dst: AnyDeviceArray, value: object) -> None:
        """Give elements the values of another array, or one value, as `dst[...] = value` does.

        A device or host array is broadcast to the shape, by NumPy's rules. Host values of another
        dtype are converted where NumPy calls that "same kind", whole numbers where they are in
        range; one value as by `fill`.

        Raises:
            CopyError: the shapes do not fit.
            DTypeError: the values have another dtype, which does not become the array's.
            InvalidValueError: an element cannot have the value as it is.
        """
        assign(self, dst, value)

    def fill(self, dst: AnyDeviceArray | DeviceBuffer, value: object) -> None:
        """Set every element of an array, or every byte of a buffer, to `value`."""
        fill(self, dst, value)

    def import_array(self, value: object) -> AnyDeviceArray:
        """An array over device memory of another library, by DLPack or the CUDA array interface.

        Nothing is copied. This stream is ordered after the work that the memory waits for; let the
        other library's stream wait for this one before it uses the memory again. The object stays
        alive as long as the array, and until the work that was queued with it is done.

        Raises:
            CopyError: it has a mask.
            DTypeError: NumPy has no such dtype, such as bfloat16.
            TypeError: it is no device array.
            WrongDeviceError: the memory lies on another device.
        """
        from .interop.foreign import import_array

        return import_array(self, value)

    def call_on_host(self, function: Callable[..., object], *args: object) -> None:
        """Call ``function(*args)`` at this point of the stream, in a thread of the driver.

        What follows in the stream waits for it. It must make no CUDA call, of no library, and must
        not wait for what does. What it raises is reported by `sys.unraisablehook`.

        Raises:
            StreamCaptureUnsupportedError: the stream is capturing.
        """
        border.function("Stream.call_on_host: function", function)
        from .host_function import call_on_host

        call_on_host(self, function, args)

    def use_memory(self, resource: MemoryResource | None) -> None:
        """Let new memory of this stream come from a resource; None is as its context says."""
        self._resource = choose("Stream.use_memory: resource", resource)

    def capture(self) -> Capture:
        """``with stream.capture() as graph:`` records what the stream is given in the block."""
        from .capture import Capture

        return Capture(self)


class _ExternalStream(Stream):
    """A stream of another library, equal to all that stand for the same one while both are open."""

    __slots__ = ("_number",)

    _number: int

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, _ExternalStream):
            return self is other
        is_same = self._number == other._number and self.context is other.context
        return is_same and not self.closed and not other.closed

    def __hash__(self) -> int:
        return hash(self._number)


class Context(ContextCore):
    """A CUDA context: what streams, modules and memory belong to.

    `cuda_context_for` gives the primary one of a device, which PyTorch, CuPy and the runtime API
    share; `Context.create` makes one of its own, which goes when it is closed and nothing of it
    is left.

    Attributes:
        device: the device.
        is_primary: whether it is the device's primary context, which is never destroyed.
        handle: the CUcontext; reading it after `close` raises `ClosedError`.
        closed: whether it was closed.
    """

    __slots__ = ("_default_stream", "_target")

    def __init__(self, device: Device, handle: CUcontext | None, *, is_primary: bool) -> None:
        super().__init__(device, handle, is_primary=is_primary)
        self._default_stream: Stream | None = None
        self._target: ptx.Target | None = None

    @property
    def target(self) -> ptx.Target:
        """What to compile for: a cubin for this device, or PTX on the emulator.

        Raises:
            UnsupportedTargetError: the installed NVRTC makes nothing that this driver loads; the
                text names the versions and the remedy.
        """
        target = self._target
        if target is None:
            capability = self.device.compute_capability
            try:
                if self.device.is_emulated:
                    target = ptx.nearest_target(capability, ptx.ImageKind.PTX)
                else:
                    target = ptx.choose_target(capability, driver_version())
            except ptx.UnsupportedTargetError as error:
                raise errors.UnsupportedTargetError(
                    str(error), error.target, error.supported
                ) from error
            self._target = target
        return target

    @property
    def default_stream(self) -> Stream:
        """The context's own stream, made on first use.

        It synchronises with the legacy default stream, so that it keeps the order of work that
        other libraries queue there, and unlike that stream it names its device.
        """
        stream = self._default_stream
        if stream is None:
            with self.device.driver.lock:
                stream = self._default_stream
                if stream is None:
                    stream = self._default_stream = self._make_stream(_BLOCKING, 0)
        return stream

    def new_stream(self, *, priority: int = 0) -> Stream:
        """A stream that runs beside the others and does not wait for the legacy default stream.

        Args:
            priority: lower runs first; the driver clamps it to `priority_range`.
        """
        return self._make_stream(_NON_BLOCKING, priority)

    def external_stream(self, stream: CudaStream | int) -> Stream:
        """A stream of another library, to be used here as one of this context; it stays theirs.

        Args:
            stream: what has ``__cuda_stream__``, as streams of CuPy, PyTorch and cuda.core do, or
                a CUstream or its number, which must then outlive the result and the memory that
                was used on it. The legacy default stream, 0 or 1, gives `default_stream`, which
                keeps its order.

        Raises:
            WrongDeviceError: it belongs to another context.
            InvalidValueError: it is the per-thread default stream, which has no context of its own.
            TypeError: it is no stream.
        """
        if isinstance(stream, Stream) and stream.context is self:
            return stream
        from .interop.foreign import stream_handle

        number = stream_handle(stream)
        if number in (0, 1):
            return self.default_stream
        if number == 2:
            raise errors.InvalidValueError(
                "taking the per-thread default stream as a stream of one context: it is another "
                "one in each thread and context; use new_stream"
            )
        code, owner = self._api.cuStreamGetCtx(CUstream(number))
        if code:
            raise failure(self._api, code, "cuStreamGetCtx", f"taking {number:#x} as a stream")
        if int(owner) != int(self.handle):
            raise WrongDeviceError(f"stream {number:#x} belongs to another context than {self!r}")
        box = StreamBox(self._box, CUstream(number), is_owned=False, keeps=(stream,))
        external = _ExternalStream(self, box)
        external._number = number
        return external

    def use_memory(self, resource: MemoryResource | None) -> None:
        """Let new memory of its streams come from a resource; None is the driver's pool again."""
        self._resource = choose("Context.use_memory: resource", resource)

    def enable_peer_access(self, other: ContextCore) -> None:
        """Let kernels of this context use memory of another device's context, where it lies.

        That is one way; the other takes a call of its own. It stays so. Uses are ordered and memory
        is kept as on one device. Copies between devices need no call. The other device's pool is
        opened to this device for the whole process. Idempotent.

        Raises:
            PeerAccessUnsupportedError: the hardware has no such way between the devices.
        """
        peer = border.instance("Context.enable_peer_access: other", other, ContextCore)._box
        box = self._box
        raw = peer.raw
        if box.reaches(peer):
            return
        doing = f"letting kernels of {self!r} use memory of {other!r}"
        code = box.call(self._api.cuCtxEnablePeerAccess, raw, 0)[0]
        if code and code != CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED:
            raise failure(self._api, code, "cuCtxEnablePeerAccess", doing)
        open_pool(other.device, self.device)
        box.peers.add(peer)

    def compile(
        self,
        source: str,
        options: ptx.CompileOptions | None = None,
        *,
        name: str = "kernel.cu",
        name_expressions: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Module:
        """Compile CUDA C++ for this device (or take it from the cache) and load it.

        The arguments are those of `ptx.compile`; a target left open is `self.target`.

        Raises:
            ptx.PtxError: the source does not compile, or NVRTC is missing.
            CudaError: the driver refuses the image.
        """
        if options is None:
            options = ptx.CompileOptions()
        if isinstance(options, ptx.CompileOptions):  # anything else, `compile` refuses
            options = options.for_target(self.target)
        image = ptx.compile(
            source, options, name=name, name_expressions=name_expressions, headers=headers
        )
        return self.load_module(image)

    def load_module(self, image: ImageLike) -> Module:
        """Load an image: a `ptx.Image`, PTX text, or the bytes of a cubin, fatbin or PTX.

        Raises:
            CudaError: the driver refuses the image; the JIT's log is in the text.
        """
        return Module(self, image, lambda: self.default_stream)

    def _make_stream(self, flags: int, priority: int) -> Stream:
        priority = border.whole("Context.new_stream: priority", priority, -(2**31), 2**31 - 1)
        box = self._box
        owned = StreamBox(box, None, is_owned=True)
        code = owned.make(box.api.cuStreamCreateWithPriority, flags, priority)
        if code:
            raise failure(box.api, code, "cuStreamCreateWithPriority", f"a stream on {self!r}")
        return Stream(self, owned, is_default=flags == _BLOCKING)


def cuda_context_for(ordinal: int) -> Context:
    """The primary context of a device, current on the calling thread.

    There is one an ordinal for the process, whichever thread asks. It is bound at each call: what
    another library made current in between does not matter.

    Raises:
        DriverNotFoundError: there is no CUDA driver.
        InvalidDeviceError: there is no device of this ordinal.
    """
    driver = current()
    cache = driver.cache(Context)
    context = cache.get(ordinal) if type(ordinal) is int else None
    if context is None:
        device = Device.get(ordinal)
        context = Context(device, device.primary_context(), is_primary=True)
        context = cache.setdefault(device.ordinal, context)
    context.bind()
    return context
