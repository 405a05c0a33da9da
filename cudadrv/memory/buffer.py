"""`DeviceBuffer`: bytes of device memory, and the handles that own memory of buffers and arrays.

Memory is freed in stream order, after every stream that ever used it; see `order`.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, TypeVar

from ptx.read_only import ReadOnly

from .. import border, errors
from ..driver._api import CUdeviceptr, CUresult
from ..driver.context import BaseContext
from ..driver.context_handle import ContextHandle
from ..driver.deferred_release import (
    callbacks,
    is_driver_thread,
    release_when,
    retry_destroy,
    run_deferred,
)
from ..driver.driver_selection import failure
from ..driver.handle import (
    Closeable,
    ClosedHandle,
    Handle,
    InvalidatedHandle,
    LiveKey,
    _forget,
    _live,
)
from ..driver.stream import BaseStream, require_stream
from ..driver.stream_block_cache import LARGEST_BYTES, Block, SizeBin
from ..driver.stream_handle import CaptureUnderWay, StreamHandle, free_cached_blocks
from ..errors import CudadrvError, CudaError
from .driver_pool import out_of_memory
from .order import Accesses, AnyMemory, Memory, record_access
from .resource import MemoryStream, Released, ResourceMemory, choices_made, chosen_for

_BUSY: Final = CUresult.CUDA_ERROR_NOT_READY
_FREED: Final = InvalidatedHandle("the device memory was freed")


class NoMemory(Memory[None]):
    """The memory of buffers and arrays without bytes."""

    __slots__ = ()

    def _destroy(self) -> None:
        pass


class PoolMemory(Memory[CUdeviceptr]):
    """Memory of the device's pool, freed in stream order.

    Attributes:
        has_contents: whether the driver has allocated it.
        size_bin: caches it for its stream's next allocations when it is freed; None if it returns
            to the pool.
        block: what `size_bin` caches; only set where there is one.
    """

    __slots__ = ("block", "size_bin")

    raw: CUdeviceptr
    ordered_on: StreamHandle | None
    # In a class, not in a slot: one more slot takes time for each new array.
    has_contents: bool = True
    size_bin: SizeBin | None
    block: Block
    # Module globals are gone when the interpreter drops the last handles.
    _freed: ClassVar = _FREED

    def __init__(
        self, context: ContextHandle, raw: CUdeviceptr | None, stream: StreamHandle | None
    ) -> None:
        super().__init__(context, raw, stream)
        self.size_bin = None

    def __del__(self) -> None:
        try:
            cached, raw = self.size_bin, self.raw
            # Memory that only its own stream has used is free there.
            if cached is not None and self.recorded is None and len(cached) < cached.most:
                # Nothing uses it any more, even if a finalizer saves it.
                self.raw = self._freed  # type: ignore[assignment]  # no call takes it
                cached.append(self.block)
                # Last: it may be the last reference to the stream, which frees what it caches.
                self.ordered_on = None
                return
            stream, recorded, driver = self.ordered_on, self.recorded, self.context._driver
        except AttributeError:
            return  # it was never finished
        if (
            recorded is not None
            or stream is None
            or stream.captured_by is not None
            or not stream.is_owned
        ):
            self._destroy_and_report()
        # False where the driver has none. Most memory is freed here, at a third of the cost.
        elif raw and not driver.is_gone:  # type: ignore[truthy-bool]  # None, or an InvalidatedHandle
            if callbacks.expected and is_driver_thread():
                retry_destroy(self._destroy_and_report)
                return
            had_failed = driver.has_failed
            passes = stream.gate.passes  # as `submit_at_once` does
            try:
                mine = passes.pop()
            except IndexError:
                self._destroy_and_report()
                return
            try:
                (code,) = driver.api.cuMemFreeAsync(raw, stream.raw)
            finally:
                passes.append(mine)
            if code:
                self._report_free(code, had_failed)
            else:
                self.raw = self._freed  # type: ignore[assignment]  # no call takes it
                self.ordered_on = None

    def _destroy(self) -> None:
        """Free the memory after every stream that used it."""
        users = self.all_users()
        writer = self.accesses.writer
        if writer is not None and writer.capture is not None and writer.capture.is_open:
            # It was allocated in a capture that is open: its release becomes part of the graph.
            for user in users:
                if user is not writer:
                    writer.follow(user)
            self._free(writer)
            return
        if not self.has_contents:
            return
        own_users = [
            user
            for user in users
            if user.context.ordinal == self.context.ordinal and not user.is_destroyed
        ]
        if users and not own_users:
            self._free_at_once(users)
            return
        free = [user for user in own_users if not user.is_capturing()]
        # Waiting for a stream that another library captures would join its capture.
        if not free or any(user.is_captured_elsewhere() for user in users):
            self._defer()
            return
        target = writer if writer in free else free[-1]
        assert target is not None
        self._free_after(target, users)

    def _free_after(self, target: StreamHandle, users: tuple[StreamHandle, ...]) -> None:
        """Free the memory in the order of `target`, after the work of all streams."""
        fault = None
        try:
            for user in users:
                if user is not target:
                    try:
                        target.follow_at_once(user)
                    except CudadrvError as error:
                        fault = error
                        if not user.is_capturing():
                            user.wait_for_work_at_once()
            self._free(target)
        except CaptureUnderWay:  # another thread's has just begun
            self._defer()
        if fault is not None:
            raise fault

    def _free_at_once(self, users: tuple[StreamHandle, ...]) -> None:
        """Free the memory on the host: a collection has destroyed all its streams."""
        for user in users:
            user.synchronize()
        (code,) = self.context.call(self.api.cuMemFree, self.raw)
        if code:
            raise self._rejection(code)
        self.ordered_on = None

    def _free(self, stream: StreamHandle) -> None:
        (code,) = stream.submit_at_once(self.api.cuMemFreeAsync, self.raw, stream.raw)
        if code:
            raise self._rejection(code)
        self.ordered_on = None

    def _report_free(self, code: CUresult, had_failed: bool) -> None:
        if code == CUresult.CUDA_ERROR_NOT_PERMITTED:
            retry_destroy(self._destroy_and_report)
            return
        fault = self._rejection(code)
        if isinstance(fault, CudaError):
            self._report_failure(fault, had_failed)

    def _rejection(self, code: CUresult) -> CudadrvError:
        doing = f"giving back the memory at {int(self.raw):#x} of device {self.context.ordinal}"
        return failure(self.api, code, "cuMemFreeAsync", doing)

    def _defer(self) -> None:
        """Leave the release to another object, which is freed when the capture has ended.

        This one's finalizer runs once. A graph would free at each replay memory that was allocated
        once.
        """
        heir = PoolMemory(self.context, None, None)
        heir.recorded = self.accesses
        heir.raw = self.raw  # last: until then it frees nothing
        users = self.all_users()
        if any(user.free_after_capture(heir) for user in users):
            return
        # Nothing reports the end of another library's capture, so later calls query it.
        release_when(lambda: not any(user.is_captured_elsewhere() for user in users), [heir])


class GraphMemory(PoolMemory):
    """Memory that was allocated in a capture.

    Attributes:
        has_contents: whether the graph has been replayed; from then on the driver has allocated it.
    """

    __slots__ = ("has_contents",)

    def __init__(
        self, context: ContextHandle, raw: CUdeviceptr | None, stream: StreamHandle | None
    ) -> None:
        super().__init__(context, raw, stream)
        self.has_contents: bool = False


class BorrowedMemory(Memory[int]):
    """Memory that another object owns; its owner is released after every stream that used it.

    Attributes:
        owner: the object that owns the memory.
    """

    __slots__ = ("owner",)

    leads_to_user = True

    def __init__(
        self, context: ContextHandle, raw: int, stream: StreamHandle | None, owner: object
    ) -> None:
        self.context = context  # in one function, as each imported array has one
        self.raw = raw
        self.ordered_on = stream
        self.recorded: Accesses | None = None
        self.public: LiveKey | None = None
        self.owner: object = owner  # last: memory without an owner is unfinished

    def __del__(self) -> None:
        try:
            owner, stream = self.owner, self.ordered_on
        except AttributeError:
            return  # it was never finished
        # Most memory is released here, at half the cost: its own stream alone has used it.
        if (
            stream is None
            or self.recorded is not None
            or not stream.is_owned
            or stream.captured_by is not None
            or callbacks.expected
            or self.context._driver.is_gone
            or self.context.is_gone
            or stream.is_destroyed
        ):
            self._destroy_and_report()
        elif not isinstance(owner, Handle):
            code = stream.query()
            if code == _BUSY:
                release_when(_until_now(stream), [owner, stream])
            elif code:
                self._destroy_and_report()

    def _destroy(self) -> None:
        # Driver objects of the owner wait by themselves when they are destroyed.
        if isinstance(self.owner, Handle):
            return
        users = self.all_users()
        if all(not user.is_capturing() and user.is_idle() for user in users):
            return
        tests = [_until_now(user) for user in users]
        release_when(lambda: all(is_done() for is_done in tests), [self.owner, *users])


class ReadOnlyMemory(BorrowedMemory):
    """Memory that another object owns, and that no operation may write."""

    __slots__ = ()

    is_read_only = True

    def __init__(
        self, context: ContextHandle, raw: int, stream: StreamHandle | None, owner: object
    ) -> None:
        super().__init__(context, raw, None, owner)
        self.recorded: Accesses | None = Accesses(stream)  # it comes after the owner's writes


def _until_now(stream: StreamHandle) -> Callable[[], bool]:
    """Return a function that returns whether all work queued on a stream so far is done."""
    try:
        event = stream.before_capture(at_once=True)
        if event is None and not stream.is_captured_elsewhere():
            event = stream.take_event()
            event.record_at_once(stream)
    except (CudadrvError, CaptureUnderWay):
        event = None  # such as that the driver has no event
    if event is not None:
        return event.is_done
    return lambda: not stream.is_capturing() and stream.is_idle()


# A comparison with these is meant for the elements.
_VALUES: Final = (bool, int, float, complex, list, tuple, bytes)
_PROTOCOLS: Final = ("__array__", "__array_interface__", "__cuda_array_interface__", "__dlpack__")
# NumPy's functions that return False where an array cannot be read.
_HIDE_ERRORS: Final = ("array_equal", "array_equiv")
_LARGEST_ADDRESS: Final = 2**64 - 1
_FULL: Final = CUresult.CUDA_ERROR_OUT_OF_MEMORY
_CLOSED_TEXT: Final = "the device memory was closed"
_CLOSED: Final = ClosedHandle(_CLOSED_TEXT)
_new: Final = object.__new__


def _closed_handle(cause: str) -> ClosedHandle:
    """Return one handle for all closed memory; a use of it raises an error about the object."""
    return ClosedHandle(_CLOSED_TEXT, cause) if cause else _CLOSED


class DeviceData(Closeable):
    """Device memory in a user's hands: a buffer or an array, which owns its handle, or a view.

    The address stays in its slot after `close`: fast paths first check that the handle is open.
    Unless it is 0, one address object belongs to one memory and one dtype, so that a launch
    recognises an array.

    Attributes:
        stream: the stream that allocated it.
        nbytes: its size.
    """

    # `_pointer` is the address as the driver's functions take it, once one was made.
    __slots__ = ("_address", "_base", "_nbytes", "_pointer", "_stream")

    _remedy = (
        "only multiprocessing sends it, to a process of the host, if its memory is of a "
        "MemoryPool(shareable=True) or of UnpooledMemory()"
    )
    _handle: AnyMemory | ClosedHandle
    _address: int
    _pointer: CUdeviceptr | None
    _nbytes: int
    nbytes: ReadOnly[int] = ReadOnly("_nbytes")
    _stream: BaseStream
    stream: ReadOnly[BaseStream] = ReadOnly("_stream")
    # The owner of the handle, of a view.
    _base: DeviceData

    @property
    def context(self) -> BaseContext:
        """The context of the memory."""
        return self._stream._context

    @property
    def buffer(self) -> DeviceBuffer:
        """The memory as bytes, which is the buffer that the array lies in, or a view of it all."""
        root = self._root
        return BufferView(self, self._address, self._nbytes) if root is self else root.buffer

    @property
    def ptr(self) -> int:
        """The device address.

        Raises:
            ClosedError: the memory was freed.
        """
        if isinstance(self._handle, ClosedHandle):
            raise self._closed_error()
        return self._address

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in C order, one after the other, as kernels require."""
        return True

    @property
    def is_read_only(self) -> bool:
        """Whether another library exported the memory as read-only; then a write to it raises.

        Raises:
            ClosedError: the memory was freed.
        """
        return self._memory.is_read_only

    def _require_writable(self) -> None:
        """Raise if the memory is read-only, for an operation that is about to write it."""
        if self._memory.is_read_only:
            raise errors.ArgumentValueError(
                f"{self!r} is written, but is read-only\n  write to a copy: "
                "Stream.copy(Stream.empty(array.shape, array.dtype), array)"
            )

    @property
    def _root(self) -> DeviceData:
        """The owner of the handle: this object, or the base of a view."""
        return self

    @property
    def _is_sent_itself(self) -> bool:
        """Whether multiprocessing sends the object itself, not only its memory."""
        return False

    @property
    def _memory(self) -> AnyMemory:
        """The memory's handle, for an operation that is about to use it."""
        handle = self._handle
        if isinstance(handle, ClosedHandle):
            raise self._closed_error()
        return handle

    def _make_pointer(self) -> CUdeviceptr:
        """Return the address as the driver's functions take it, cached for the next copy.

        Making it costs as much as a quarter of what a small copy takes in Python.
        """
        pointer = self._pointer = CUdeviceptr(self._address)
        return pointer

    def _allocate(self, stream: BaseStream, nbytes: int) -> None:
        """Allocate memory of a stream, not initialised."""
        try:
            queue = stream._handle
            cached = queue.block_cache.get(nbytes)
            self._stream = stream
        except AttributeError:
            raise border.wrong_type("allocating: stream", stream, "give a Stream") from None
        self._nbytes = nbytes
        self._dependents = None
        # Streams of other libraries, and those of captures, cache no blocks.
        if (cached or (queue.keeps is None and nbytes > 0)) and (
            not choices_made or chosen_for(stream) is None
        ):
            # As the constructor does, at a third of the cost.
            memory = _new(PoolMemory)
            memory.context = context = queue.context
            memory.ordered_on = queue
            memory.recorded = None
            if cached:
                memory.size_bin = cached
                try:
                    block = cached.pop()
                except IndexError:  # another thread took it
                    block = _fresh(stream, queue, nbytes)
            else:
                memory.size_bin = (
                    queue.block_cache.of_size(nbytes) if nbytes <= LARGEST_BYTES else None
                )
                block = _fresh(stream, queue, nbytes)
            memory.block = block
            raw, self._address = block
            memory.raw = self._pointer = raw
            self._handle = memory
            # As `_own` does.
            self._key = memory.public = key = LiveKey(self, _forget)
            _live[key] = memory
        else:
            self._allocate_otherwise(stream, queue, nbytes)
            context = queue.context
        if not context.is_primary:
            stream.context._adopt(self)

    def _allocate_otherwise(self, stream: BaseStream, queue: StreamHandle, nbytes: int) -> None:
        """Allocate from a chosen resource, a graph or another library's stream, or nothing."""
        context, capture = queue.context, queue.capture
        resource = chosen_for(stream) if choices_made and nbytes > 0 else None
        memory: AnyMemory
        self._pointer, self._address = None, 0
        if nbytes <= 0:
            if nbytes:
                raise errors.InvalidValueError(f"allocating {nbytes} bytes: a size is 0 or more")
            memory = NoMemory(context, None, queue)
        elif resource is not None:
            memory = ResourceMemory.take(resource, nbytes, stream)
            self._address = memory.raw + 0
        else:
            memory = (PoolMemory if capture is None else GraphMemory)(context, None, queue)
            memory.raw, self._address = _fresh(stream, queue, nbytes)
            if capture is not None:
                capture.add_born(memory)
            self._pointer = memory.raw
        self._have(memory)

    def _have(self, memory: AnyMemory) -> None:
        """Own memory."""
        stream = memory.ordered_on or memory.accesses.writer
        if stream is not None and stream.is_foreign:
            self._own_unrooted(memory, memory.context)
        elif memory.leads_to_user:
            self._own_unrooted(memory, stream or memory.context)
        else:
            self._own(memory)
            memory.public = self._key

    def _hold(self, stream: BaseStream, memory: AnyMemory, address: int, nbytes: int) -> None:
        """Own memory that already has a handle."""
        self._stream, self._nbytes = stream, nbytes
        self._pointer = None
        self._address = address + 0
        self._have(memory)
        if not stream.context.is_primary:
            stream.context._adopt(self)

    def _borrow(
        self, stream: BaseStream, pointer: int, nbytes: int, owner: object, *, is_read_only: bool
    ) -> None:
        """Own a handle of memory that `owner` owns."""
        if type(nbytes) is not int or nbytes < 0 or pointer + nbytes > border.LARGEST:
            border.int_in_range("DeviceBuffer.borrowed: nbytes", nbytes, most=_most_from(pointer))
        self._stream, self._nbytes = stream, nbytes
        self._pointer = None
        self._address = pointer + 0
        queue = first_stream(stream._handle)
        context = queue.context
        memory = (ReadOnlyMemory if is_read_only else BorrowedMemory)(
            context, pointer, queue, owner
        )
        self._own_unrooted(memory, context if queue.is_foreign else queue)
        if not context.is_primary:
            stream.context._adopt(self)

    def _second_owner(self) -> DeviceBuffer:
        """Return another buffer that owns the same memory: closing one leaves it to the other.

        Not the handle alone: a collection would find it without a public object.
        """
        return over(self._stream, self._memory, self.ptr, self._nbytes)

    def _mark_closed(self, cause: str = "") -> None:
        stream: StreamHandle | None = self._handle.ordered_on
        if stream is not None:
            # No call stands between the two, so no launch finds one without the other. This comes
            # first, for free-threaded Python.
            stream.home_version = []
        self._handle = _closed_handle(cause)
        key = self._key
        if key in _live:
            _live[key] = None

    def __index__(self) -> int:
        return self.ptr

    def __eq__(self, other: object) -> bool:
        if self is other:  # containers and weak references look for the object itself
            return True
        if not isinstance(other, (DeviceData, *_VALUES)) and not any(
            hasattr(other, protocol) for protocol in _PROTOCOLS
        ):
            return NotImplemented
        raise errors.ArgumentTypeError(
            f"comparing {self!r} by == or !=, which reads no elements\n"
            "  to compare elements, compare copies by Stream.to_host\n"
            "  to find the object, use `is`; any(a is each for each in arrays) for `a in arrays`; "
            "or a set"
        )

    if TYPE_CHECKING:

        def __hash__(self) -> int: ...

    else:
        __hash__ = object.__hash__  # by identity; a method in Python would take longer

    # Python would use `__index__` for a float, and pass the address.
    def __float__(self) -> NoReturn:
        raise errors.ArgumentTypeError(f"{self!r} is not a number: read it with Stream.to_host")

    if not TYPE_CHECKING:  # a type checker would treat it as an array

        def __array__(self, *_: object, **__: object) -> NoReturn:
            raise errors.ArgumentTypeError(
                f"{self!r} is no host array: copy it with Stream.to_host"
            )

        def __bytes__(self) -> NoReturn:  # `__index__` would make as many zeros as the address
            self.__array__()

        # Any: NumPy's protocol for functions of arrays.
        def __array_function__(self, function: Any, _: Any, args: Any, options: Any) -> object:
            if function.__name__ in _HIDE_ERRORS:
                self.__array__()
            return function._implementation(*args, **options)


class View(DeviceData):
    """A part of another object's memory, closed with that object, its base.

    Closing a view leaves its base open, except where the view is all that its user has of the
    memory: `owning`.
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # slots of the other class, which the type checker sees
        # In C, as launches read the handle.
        _handle = property(attrgetter("_base._handle"))
        _stream = property(attrgetter("_base._stream"))

    @property
    def _root(self) -> DeviceData:
        return self._base

    @property
    def _is_owning(self) -> bool:
        """Whether closing it closes its base; only such a view has a key."""
        return hasattr(self, "_key")

    def close(self) -> None:
        """Close the view; its base and other views stay open. Idempotent.

        If nothing else refers to the base, the memory is freed, in the order of its stream.

        Raises:
            CudaError: the memory was freed, and the driver reported an error.
        """
        if self._is_owning:
            self._base.close()
        else:
            super().close()

    def _mark_closed(self, cause: str = "") -> None:
        closed = _new(DeviceBuffer)
        closed._handle, closed._stream, closed._nbytes = _closed_handle(cause), self._stream, 0
        closed._address, closed._pointer, closed._dependents = 0, None, None
        stream: StreamHandle | None = self._handle.ordered_on
        if stream is not None:
            stream.home_version = []  # right before, as in `DeviceData`
        self._base = closed

    def _adopt(self, child: Closeable) -> None:
        self._base._adopt(child)


_ViewT = TypeVar("_ViewT", bound=DeviceData)


def owning(view: _ViewT) -> _ViewT:
    """Return a view whose base its user does not see; closing it closes the base."""
    if isinstance(view, View):
        view._key = view._base._key
    return view


class DeviceBuffer(DeviceData):
    """Device memory, allocated in the order of a stream and freed after every use of it.

    Made by `Stream.alloc`. `close` frees the memory after the work that uses it, and closes the
    arrays over it.

    Attributes:
        ptr: the device address, 0 for a buffer of no bytes; using it after `close` raises
            `ClosedError`.
        stream: the stream that allocated it.
        context: the context of the memory.
        nbytes: its size.
        closed: whether the memory was freed.
    """

    __slots__ = ()

    def __init__(self, stream: BaseStream, nbytes: int) -> None:
        if type(nbytes) is not int:
            nbytes = border.int_in_range("allocating: nbytes", nbytes)
        self._allocate(stream, nbytes)

    @staticmethod
    def borrowed(
        stream: BaseStream,
        pointer: int,
        nbytes: int,
        owner: object,
        *,
        is_read_only: bool = False,
    ) -> DeviceBuffer:
        """Return a buffer over memory that `owner` owns; closing it frees nothing.

        Work on `stream` comes after the owner's earlier work on the memory. An operation that
        would write read-only memory raises.
        """
        require_stream("DeviceBuffer.borrowed: stream", stream)
        pointer = border.int_in_range(
            "DeviceBuffer.borrowed: pointer", pointer, most=_LARGEST_ADDRESS
        )
        buffer = _new(DeviceBuffer)
        buffer._borrow(stream, pointer, nbytes, owner, is_read_only=is_read_only)
        return buffer

    @staticmethod
    def adopted(
        stream: BaseStream,
        pointer: int,
        nbytes: int,
        release: Callable[[int, int, MemoryStream], object],
    ) -> DeviceBuffer:
        """Return a buffer that owns memory allocated elsewhere.

        Args:
            stream: a stream that comes after all earlier work on the memory.
            pointer: its address.
            nbytes: its size.
            release: frees the memory. It is called once with address, bytes and stream, after every
                use, in the order of that stream. It may run in any thread and in a garbage
                collection: it must not wait for another thread. An error that it raises reaches
                `sys.unraisablehook`.
        """
        require_stream("DeviceBuffer.adopted: stream", stream)
        pointer = border.int_in_range("DeviceBuffer.adopted: pointer", pointer, 1, _LARGEST_ADDRESS)
        nbytes = border.int_in_range("DeviceBuffer.adopted: nbytes", nbytes, 1, _most_from(pointer))
        border.function("DeviceBuffer.adopted: release", release)
        memory = ResourceMemory.adopt(Released(release), pointer, nbytes, stream)
        return over(stream, memory, pointer, nbytes)

    def __repr__(self) -> str:
        location = "closed" if self.closed else f"at {self._address:#x}"
        return f"<DeviceBuffer {self.nbytes} bytes {location} on device {self.context.ordinal}>"

    @property
    def _closed_text(self) -> str:
        return f"the device buffer of {self.nbytes} bytes was closed"

    @property
    def buffer(self) -> DeviceBuffer:
        """A view of the whole buffer."""
        return BufferView(self, self._address, self._nbytes)

    def record_use(self, stream: BaseStream) -> None:
        """Let the release also wait for the work that `stream` has when the memory is freed.

        For work that cudadrv does not see, such as kernels that other libraries launch. Operations
        of cudadrv record their uses themselves.
        """
        require_stream("DeviceBuffer.record_use: stream", stream)
        record_access(self._memory, stream._handle)


class BufferView(View, DeviceBuffer):
    """The memory of an array as bytes, or a part of it."""

    __slots__ = ()

    def __init__(self, base: DeviceData, address: int, nbytes: int) -> None:
        self._base = base
        self._nbytes = nbytes
        self._address, self._pointer = address, None


def alloc(self: BaseStream, nbytes: int) -> DeviceBuffer:
    """Return `nbytes` bytes of device memory, not initialised, usable in this stream's order.

    Raises:
        OutOfMemoryError: with the request and the free and total bytes.
    """
    if type(nbytes) is not int:
        nbytes = border.int_in_range("allocating: nbytes", nbytes)
    buffer = _new(DeviceBuffer)  # as the class does, without a step in between
    buffer._allocate(self, nbytes)
    return buffer


def over(stream: BaseStream, memory: AnyMemory, address: int, nbytes: int) -> DeviceBuffer:
    """Return a buffer over memory that already has a handle."""
    buffer = _new(DeviceBuffer)
    buffer._hold(stream, memory, address, nbytes)
    return buffer


def first_stream(queue: StreamHandle) -> StreamHandle:
    """Return a stream's own handle, in a capture too: existing memory is ordered on it at first."""
    return queue if queue.capture is None else queue.own


def _most_from(pointer: int) -> int:
    """Return the most bytes that memory at an address can have."""
    return min(_LARGEST_ADDRESS + 1 - pointer, border.LARGEST)


def _fresh(stream: BaseStream, queue: StreamHandle, nbytes: int) -> Block:
    """Allocate memory of the driver's pool, or of the graph in a capture.

    Raises:
        OutOfMemoryError: with the request and the free and total bytes.
    """
    context, passes = queue.context, queue.gate.passes
    allocate = context._driver.api.cuMemAllocAsync
    try:
        mine = passes.pop()  # as `submit` does, at half the cost
    except IndexError:
        mine, passes = queue.gate.enter(), queue.gate.passes
    try:
        try:
            code, raw = allocate(nbytes, queue.raw)
        finally:
            passes.append(mine)
        # Threads of the driver may have left memory.
        if code == _FULL and run_deferred() | free_cached_blocks(context._driver, context.ordinal):
            code, raw = queue.submit(allocate, nbytes, queue.raw)
    except OverflowError:  # more than the driver's function accepts
        raise out_of_memory(stream.context, nbytes, "") from None
    if code == _FULL:
        raise out_of_memory(stream.context, nbytes, "cuMemAllocAsync")
    if code:
        doing = f"allocating {nbytes} bytes on {stream!r}"
        raise failure(context._driver.api, code, "cuMemAllocAsync", doing)
    return raw, int(raw)
