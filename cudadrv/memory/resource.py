"""The source of new device memory: the driver's pool, or a chosen resource.

A resource is chosen for a block (`using_memory`), a stream or a context (`Stream.use_memory`,
`Context.use_memory`); the nearest one counts, in that order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Protocol, cast

from ptx.read_only import ReadOnly

from .. import border, errors
from ..driver._api import CUdeviceptr, CUstream
from ..driver.deferred_release import release_when
from ..driver.driver_selection import failure
from ..driver.handle import NotCopyable
from ..driver.stream import BaseStream
from ..driver.stream_handle import CaptureUnderWay, StreamHandle, private_stream
from ..errors import CudadrvError, StreamCaptureUnsupportedError
from .driver_pool import out_of_memory
from .order import Memory


class MemoryStream(NotCopyable):
    """The stream in whose order memory is allocated and freed; usable after it was closed.

    Attributes:
        owner: the public stream object.
    """

    __slots__ = ("_handle", "_owner", "_sources")

    owner: ReadOnly[BaseStream] = ReadOnly("_owner")

    def __init__(self, owner: BaseStream, handle: StreamHandle) -> None:
        self._owner: BaseStream = owner
        self._handle = handle
        # What must outlive the memory, which has this object as long as it lives.
        self._sources: set[object] = set()

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol of cuda.core: (version 0, CUstream as an int)."""
        return 0, int(self.handle)

    def __int__(self) -> int:
        return int(self.handle)

    @property
    def handle(self) -> CUstream:
        """The CUstream."""
        return self._handle.raw

    @property
    def device(self) -> int:
        """The ordinal of its device."""
        return self._handle.context.ordinal

    def follow(self, other: MemoryStream) -> None:
        """Let later work on this stream wait for the current work of another one."""
        self._handle.follow(
            border.instance_of("MemoryStream.follow: other", other, MemoryStream)._handle
        )


def given_stream(
    function: str, stream: MemoryStream, nbytes: int, address: int = 0
) -> MemoryStream:
    """Return the stream, after checking a resource's arguments."""
    for name, number, largest in (
        ("nbytes", nbytes, border.LARGEST),
        ("address", address, 2**64 - 1),
    ):
        border.instance_of(f"{function}: {name}", number, int)  # no buffer, which has an address
        border.int_in_range(f"{function}: {name}", number, most=largest)
    return border.instance_of(f"{function}: stream", stream, MemoryStream)


class MemoryResource(Protocol):
    """A source of device memory, in the order of streams.

    `deallocate` may run in any thread, in the middle of any operation and in a garbage collection:
    it must not wait for another thread. An error that it raises reaches `sys.unraisablehook`.
    """

    def allocate(self, nbytes: int, stream: MemoryStream) -> int:
        """Return the address of `nbytes` bytes, one or more, usable in the order of the stream."""
        ...

    def deallocate(self, address: int, nbytes: int, stream: MemoryStream) -> None:
        """Free memory, in the order of the stream that it was allocated for."""
        ...


class DriverMemory:
    """The driver's pool of each device, the source of new memory if nothing is chosen."""

    __slots__ = ("__weakref__",)

    def allocate(self, nbytes: int, stream: MemoryStream) -> int:
        """Allocate from the pool of the stream's device.

        Raises:
            OutOfMemoryError: with the request and the free and total bytes.
        """
        queue = given_stream("DriverMemory.allocate", stream, nbytes)._handle
        api = queue.api
        code, pointer = queue.submit(api.cuMemAllocAsync, nbytes, stream.handle)
        if code == errors.OutOfMemoryError.result:
            raise out_of_memory(stream.owner.context, nbytes, "cuMemAllocAsync")
        if code:
            raise failure(api, code, "cuMemAllocAsync", f"allocating {nbytes} bytes")
        return int(pointer)

    def deallocate(self, address: int, nbytes: int, stream: MemoryStream) -> None:
        """Return memory to the pool."""
        queue = given_stream("DriverMemory.deallocate", stream, nbytes, address)._handle
        code = queue.free(CUdeviceptr(address))
        if code:
            raise failure(queue.api, code, "cuMemFreeAsync", f"giving back {nbytes} bytes")


_DRIVER_MEMORY: Final = DriverMemory()


class Released(DriverMemory):
    """The resource of adopted memory: its user's function frees; the driver's pool allocates."""

    __slots__ = ("_release",)

    def __init__(self, release: Callable[[int, int, MemoryStream], object]) -> None:
        self._release = release

    def deallocate(self, address: int, nbytes: int, stream: MemoryStream) -> None:
        """Call the function."""
        self._release(address, nbytes, stream)


choices_made: Final[list[bool]] = []
"""Empty until a resource is chosen, as nearly always; new memory checks nothing else then.

A list, whose truth is the quickest test; it has one element at most.
"""


_block: Final[ContextVar[MemoryResource | None]] = ContextVar("cudadrv memory", default=None)


@contextmanager
def using_memory(resource: MemoryResource) -> Iterator[None]:
    """Let new memory in the block come from a resource: ``with using_memory(resource):``.

    It applies to every stream, in this thread, or this task of asyncio. A thread that is started in
    the block has the resource too if Python lets threads inherit context variables
    (`sys.flags.thread_inherit_context`; free-threaded builds do by default). Memory may outlive the
    block; it returns to the resource that allocated it. `DriverMemory()` is the driver's pool.
    """
    checked_resource("using_memory: resource", resource)
    choices_made[:] = (True,)
    with _chosen(resource):
        yield


@contextmanager
def without_choices() -> Iterator[None]:
    """Let new memory of a block come from the driver's pool instead of the chosen resource."""
    with _chosen(_DRIVER_MEMORY):
        yield


@contextmanager
def _chosen(resource: MemoryResource) -> Iterator[None]:
    former = _block.get()
    try:
        _block.set(resource)  # inside, so that an interrupt right after it takes it back
        yield
    finally:
        _block.set(former)


def choose(where: str, resource: MemoryResource | None) -> MemoryResource | None:
    """Check the resource that a stream or a context was given as its choice."""
    if resource is not None:
        checked_resource(where, resource)
        choices_made[:] = (True,)
    return resource


def checked_resource(where: str, resource: MemoryResource) -> MemoryResource:
    """Return the resource, if it has the required methods.

    Raises:
        ArgumentTypeError: it lacks one.
    """
    if not (
        callable(getattr(resource, "allocate", None))
        and callable(getattr(resource, "deallocate", None))
    ):
        raise border.wrong_type(where, resource, "give what has allocate and deallocate")
    return resource


def chosen_for(stream: BaseStream) -> MemoryResource | None:
    """Return the resource for a stream's new memory; None is the driver's pool."""
    resource = _block.get() or stream._resource or stream.context._resource
    if resource is None or type(resource) is DriverMemory:
        return None
    # Only `choose` and `using_memory` set it; the layer of streams knows no resources.
    return cast(MemoryResource, resource)


class _Calls(threading.local):
    """The nested calls of resources that a thread executes."""

    depth: int = 0


_calls: Final = _Calls()
# A resource may allocate larger pieces through the choice that leads to itself, and finalizers may
# run in the middle. Endless recursion ends here, before Python's stack does.
_MOST_CALLS: Final = 16


def _endless(resource: MemoryResource, nbytes: int, depth: int) -> errors.ArgumentValueError:
    name = type(resource).__name__
    return errors.ArgumentValueError(
        f"{name}.allocate is asked for {nbytes} bytes within {depth} calls of resources: what a "
        "resource allocates by cudadrv is asked of the resource that is chosen, which is itself\n"
        "  let its functions take memory of another resource, or in a "
        "`with using_memory(DriverMemory())`"
    )


class ResourceMemory(Memory[int]):
    """Memory of a resource, freed in the order of the stream that it was allocated for.

    Attributes:
        nbytes: its size.
        place: that stream.
        resource: the resource that allocated it.
    """

    __slots__ = ("nbytes", "place", "resource")

    leads_to_user = True

    def __init__(self, resource: MemoryResource, nbytes: int, place: MemoryStream) -> None:
        self.resource: MemoryResource = resource
        self.nbytes: int = nbytes
        self.place: MemoryStream = place
        super().__init__(place._handle.context, None, place._handle)

    @property
    def open_devices(self) -> frozenset[int]:
        """The ordinals of other devices that the resource opens its memory to."""
        # Optional in a resource: `VirtualMemoryResource` has it.
        ordinals: frozenset[int] = getattr(self.resource, "open_devices", frozenset())
        return ordinals

    @classmethod
    def take(cls, resource: MemoryResource, nbytes: int, stream: BaseStream) -> ResourceMemory:
        """Allocate memory for a stream.

        Raises:
            StreamCaptureUnsupportedError: the stream is capturing.
            ArgumentTypeError: the resource returned no address.
        """
        queue: StreamHandle = stream._handle
        if queue.capture is not None:
            raise StreamCaptureUnsupportedError(
                f"allocating {nbytes} bytes of {type(resource).__name__} on a stream that is "
                "capturing, of which a graph would keep the address\n  allocate before the "
                "capture, or in a `with using_memory(DriverMemory())`"
            )
        memory = cls(resource, nbytes, MemoryStream(stream, queue))
        depth = _calls.depth
        if depth >= _MOST_CALLS:
            raise _endless(resource, nbytes, depth)
        try:
            _calls.depth = depth + 1
            memory.raw = resource.allocate(nbytes, memory.place)
        finally:
            _calls.depth = depth
        if type(memory.raw) is not int or not 0 < memory.raw < 2**64:
            returned, memory.raw = memory.raw, cast(int, None)  # as before it was made
            noun = f"what {type(resource).__name__}.allocate gave"
            raise border.wrong_type(noun, returned, "give an address, a number of 64 bits above 0")
        return memory

    @classmethod
    def adopt(
        cls, resource: MemoryResource, address: int, nbytes: int, stream: BaseStream
    ) -> ResourceMemory:
        """Own memory that is already allocated, as if a resource had allocated it for a stream."""
        memory = cls(resource, nbytes, MemoryStream(stream, stream._handle.own))
        memory.raw = address
        return memory

    def _destroy(self) -> None:
        """Free the memory after every stream that used it."""
        users, source = self.all_users(), self.place._handle
        if source.is_destroyed:
            # A collection found both. The work of the context is waited for, so any stream will do.
            source.synchronize()
            source = self.place._handle = private_stream(self.context)
        if any(user.is_capturing() for user in (*users, source)):
            self._defer(users)
            return
        fault = None
        try:
            for user in users:
                if user is not source:
                    try:
                        source.follow_at_once(user)
                    except CudadrvError as error:
                        fault = error
                        user.wait_for_work_at_once()
            depth = _calls.depth
            try:
                _calls.depth = depth + 1
                self.resource.deallocate(self.raw, self.nbytes, self.place)
            finally:
                _calls.depth = depth
        except CaptureUnderWay:  # another thread's has just begun
            self._defer(users)
        if fault is not None:
            raise fault

    def _defer(self, users: tuple[StreamHandle, ...]) -> None:
        """Leave the release to another object, which is freed when the captures have ended."""
        heir = ResourceMemory(self.resource, self.nbytes, self.place)
        heir.recorded = self.accesses
        heir.raw = self.raw  # last: until then it frees nothing
        streams = (*users, self.place._handle)
        release_when(lambda: not any(user.is_capturing() for user in streams), [heir])
