"""`DeviceBuffer`: bytes of device memory that come from a stream and go back to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from .. import border, errors
from ..driver._api import CUdeviceptr, CUresult
from ..driver.context import ContextCore
from ..driver.handle import Closed, Closing, Uncopied
from ..driver.in_use import failure
from ..driver.stream_box import StreamBox
from ..driver.stream_core import StreamCore
from ..errors import ClosedError, CudadrvError
from .order import AnyMemory, note
from .release import BorrowedMemory, NoMemory, PoolMemory

_LARGEST_ADDRESS: Final = 2**64 - 1
_CLOSED: Final = Closed("the device memory was closed")


class Addressed(Uncopied):
    """What has a device address: a buffer, and the arrays over it.

    The address stays in its slot after `close`: quick paths first find the buffer's box open.
    """

    # A subclass has `_address` and `_pointer`, the address as the driver's functions take it, once
    # one was made: two classes with slots have no common subclass.
    __slots__ = ()

    if TYPE_CHECKING:
        _address: int
        _pointer: CUdeviceptr | None

    @property
    def buffer(self) -> DeviceBuffer:
        """The memory."""
        raise NotImplementedError

    @property
    def _closed_text(self) -> str:
        raise NotImplementedError

    @property
    def ptr(self) -> int:
        """The device address.

        Raises:
            ClosedError: the memory was given back.
        """
        if isinstance(self.buffer._box, Closed):
            raise ClosedError(self._closed_text)
        return self._address

    @property
    def _memory(self) -> AnyMemory:
        """The memory's box, for an operation that is about to use it."""
        box = self.buffer._box
        if isinstance(box, Closed):
            raise ClosedError(self._closed_text)
        return box

    def _make_pointer(self) -> CUdeviceptr:
        """The address as the driver's functions take it, remembered for the next copy.

        Making it costs as much as a quarter of what a small copy takes in Python.
        """
        pointer = CUdeviceptr(self._address)
        # The slots are the subclasses', of which the type checker knows nothing here.
        self._pointer = pointer  # type: ignore[misc]
        return pointer

    def __index__(self) -> int:
        return self.ptr

    # Python would take `__index__` where a float belongs, and hand over the address.
    def __float__(self) -> NoReturn:
        raise errors.ArgumentTypeError(f"{self!r} is no number: read it with Stream.to_host")

    if not TYPE_CHECKING:  # a type checker would take it for a promise of an array

        def __array__(self, *_: object, **__: object) -> NoReturn:
            raise errors.ArgumentTypeError(
                f"{self!r} is no host array: copy it with Stream.to_host"
            )


class DeviceBuffer(Addressed, Closing):
    """Device memory, allocated in the order of a stream and given back after every use of it.

    Made by `Stream.alloc`. `close` gives the memory back after the work that uses it, and closes
    the arrays over it.

    Attributes:
        ptr: the device address, 0 for a buffer of no bytes; using it after `close` raises
            `ClosedError`.
        stream: the stream that it came from.
        context: the context of the memory.
        nbytes: its size.
        closed: whether the memory was given back.
    """

    __slots__ = ("_address", "_pointer", "context", "nbytes", "stream")

    # No `Closing`: nothing else of the driver is destroyed after memory.
    _box: AnyMemory | Closed

    def __init__(self, stream: StreamCore, nbytes: int) -> None:
        if type(nbytes) is not int:
            nbytes = border.whole("allocating: nbytes", nbytes)
        try:
            queue = stream._box
            context = queue.context
            self.context = stream.context
        except AttributeError:
            raise border.refused("allocating: stream", stream, "give a Stream") from None
        self.stream = stream
        self.nbytes = nbytes
        self._pointer = self._dependents = None
        if nbytes > 0:
            # As the constructors do, at a third of the cost.
            box = PoolMemory.__new__(PoolMemory)
            box._outcome = None
            box.context = context
            box.home = box.writer = queue
            box.readers = box.users = ()
            box.has_contents = False
            allocate = context._driver.api.cuMemAllocAsync
            # No interrupt comes between the driver's answer and the box; `handover` says why.
            try:
                ((code, box.raw),) = map(allocate, (nbytes,), (queue.raw,))
            except OverflowError:  # more than the driver's function can be asked for
                raise out_of_memory(stream.context, nbytes, "") from None
            if code:
                raise _refused(stream, nbytes, code)
            if queue.capture is None:
                box.has_contents = True
            else:
                queue.capture.add_born(box)
            self._box, pointer = box, box.raw
            self._pointer, self._address = pointer, int(pointer)
        else:
            if nbytes < 0:
                raise errors.InvalidValueError(f"allocating {nbytes} bytes: a size is 0 or more")
            self._box = NoMemory(context, None, queue)
            self._address = 0
        if not stream.context.is_primary:
            stream.context._adopt(self)

    @classmethod
    def borrowed(cls, stream: StreamCore, pointer: int, nbytes: int, owner: object) -> DeviceBuffer:
        """A buffer over memory that `owner` keeps; closing it gives nothing back.

        Work on `stream` is ordered after what `owner` did with it.
        """
        border.instance("DeviceBuffer.borrowed: stream", stream, StreamCore)
        pointer = border.whole("DeviceBuffer.borrowed: pointer", pointer, most=_LARGEST_ADDRESS)
        nbytes = border.whole("DeviceBuffer.borrowed: nbytes", nbytes)
        self = cls.__new__(cls)
        self.stream = stream
        self.context = stream.context
        self.nbytes = nbytes
        self._address = pointer
        self._pointer = None
        queue: StreamBox = stream._box
        # A capture notes its use as that of any memory from before it.
        home = queue if queue.capture is None else queue.own
        self._dependents = None
        self._box = BorrowedMemory(queue.context, pointer, home, owner)
        if not stream.context.is_primary:
            stream.context._adopt(self)
        return self

    def __repr__(self) -> str:
        where = "closed" if self.closed else f"at {self._address:#x}"
        return f"<DeviceBuffer {self.nbytes} bytes {where} on device {self.context.ordinal}>"

    @property
    def _closed_text(self) -> str:
        return f"the device buffer of {self.nbytes} bytes was closed"

    @property
    def buffer(self) -> DeviceBuffer:
        """The buffer itself."""
        return self

    def record_use(self, stream: StreamCore) -> None:
        """Let the release wait for what `stream` holds when the memory is given back.

        For work that cudadrv does not see, such as kernels that other libraries launch; its own
        operations say themselves what they use.
        """
        border.instance("DeviceBuffer.record_use: stream", stream, StreamCore)
        note(self._memory, stream._box)

    def _shut(self) -> None:
        # One for all: who finds it has better words than it, see `Addressed`.
        self._box = _CLOSED


def _refused(stream: StreamCore, nbytes: int, code: CUresult) -> CudadrvError:
    if code == CUresult.CUDA_ERROR_OUT_OF_MEMORY:
        return out_of_memory(stream.context, nbytes, "cuMemAllocAsync")
    doing = f"allocating {nbytes} bytes on {stream!r}"
    return failure(stream._box.api, code, "cuMemAllocAsync", doing)


def out_of_memory(context: ContextCore, nbytes: int, call: str) -> errors.OutOfMemoryError:
    """The error for a request that did not fit, with the free and total bytes as of now."""
    free, total = context.memory_info()
    return errors.OutOfMemoryError(
        f"allocating {nbytes} bytes on device {context.ordinal}, "
        f"which has {free} bytes free of {total}",
        call=call,
    )
