"""Memory resources of other libraries used here, and ours used by them as their allocators.

Each function's docstring names the call of the other library that takes its result. Memory that a
library borrows is ordered by the stream that the library names, as its own memory is.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from .driver.driver_selection import current
from .memory.resource import DriverMemory, MemoryResource, MemoryStream, checked_resource
from .stream import Context, cuda_context_for

# Objects of libraries that carry no types here.
_Theirs: TypeAlias = Any

_ALLOCATE: Final = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p
)
_FREE: Final = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p
)


class CupyMemory:
    """A memory pool of CuPy as a resource: see `using_memory`.

    Args:
        pool: an object with ``malloc``, such as ``cupy.cuda.MemoryPool()``; None: CuPy's default.
    """

    def __init__(self, pool: _Theirs | None = None) -> None:
        self._cupy: _Theirs = importlib.import_module("cupy")
        self._pool = self._cupy.get_default_memory_pool() if pool is None else pool
        # CuPy's memory objects, which free their memory when they are dropped.
        self._allocated: dict[int, _Theirs] = {}

    def allocate(self, nbytes: int, stream: MemoryStream) -> int:
        """Allocate memory of the pool for the stream."""
        with (
            self._cupy.cuda.Device(stream.device),
            self._cupy.cuda.ExternalStream(int(stream)),
        ):
            memory = self._pool.malloc(nbytes)
        address = int(memory.ptr)
        self._allocated[address] = memory
        return address

    def deallocate(self, address: int, nbytes: int, stream: MemoryStream) -> None:
        """Free memory in the pool, which reuses it for the same stream."""
        del self._allocated[address]


class RmmMemory:
    """A memory resource of RMM as one of ours: see `using_memory`.

    Args:
        resource: such as ``rmm.mr.CudaAsyncMemoryResource()``; RMM's current one of each device
            without.
    """

    def __init__(self, resource: _Theirs | None = None) -> None:
        self._resource = resource
        self._mr: _Theirs = importlib.import_module("rmm.mr")
        self._stream: _Theirs = importlib.import_module("rmm.pylibrmm.stream").Stream

    def allocate(self, nbytes: int, stream: MemoryStream) -> int:
        """Allocate memory of the resource for the stream."""
        return int(self._of(stream).allocate(nbytes, self._stream(stream)))

    def deallocate(self, address: int, nbytes: int, stream: MemoryStream) -> None:
        """Free memory in the resource."""
        self._of(stream).deallocate(address, nbytes, self._stream(stream))

    def _of(self, stream: MemoryStream) -> _Theirs:
        if self._resource is not None:
            return self._resource
        return self._mr.get_per_device_resource(stream.device)


class _Allocator:
    """Allocates from a resource for a library that names devices and streams by numbers."""

    def __init__(self, resource: MemoryResource | None) -> None:
        self._resource: MemoryResource = (
            DriverMemory() if resource is None else checked_resource("resource", resource)
        )
        self._allocated: dict[int, tuple[int, MemoryStream]] = {}
        # By device and number, one for each stream of the library that ever allocated.
        self._places: dict[tuple[int, int], MemoryStream] = {}

    def allocate(self, nbytes: int, device: int, stream: int) -> int:
        """Return the address of memory for a stream of a device; 0 for no bytes."""
        if nbytes <= 0:
            return 0
        place = self._place(device, stream)
        address = self._resource.allocate(nbytes, place)
        self._allocated[address] = nbytes, place
        return address

    def free(self, address: int, stream: int | None = None) -> None:
        """Free memory, after the work of a stream if one is named."""
        if not address:
            return
        nbytes, place = self._allocated.pop(address)
        if stream is not None:
            last = self._place(place.device, stream)
            if last is not place:
                place.follow(last)
        self._resource.deallocate(address, nbytes, place)

    def _place(self, device: int, number: int) -> MemoryStream:
        place = self._places.get((device, number))
        if place is None or place.owner.closed:  # as after a reset of the device
            context = current().cache(Context).get(device) or cuda_context_for(device)
            stream = context.external_stream(number)
            place = self._places[device, number] = MemoryStream(stream, stream._handle)
        return place


def cupy_allocator(resource: MemoryResource | None = None) -> Callable[[int], object]:
    """Return an allocator for ``cupy.cuda.set_allocator``: CuPy's memory comes from a resource.

    Args:
        resource: the source of the memory; the driver's pool without it.
    """
    cuda: _Theirs = importlib.import_module("cupy").cuda
    allocator = _Allocator(resource)

    def allocate(nbytes: int, device: int) -> int:
        return allocator.allocate(nbytes, device, int(cuda.get_current_stream().ptr))

    def free(address: int, device: int) -> None:
        allocator.free(address)

    malloc: Callable[[int], object] = cuda.PythonFunctionAllocator(allocate, free).malloc
    return malloc


def rmm_resource(resource: MemoryResource | None = None) -> object:
    """Return a resource for ``rmm.mr.set_current_device_resource``: RMM's memory comes from ours.

    Args:
        resource: the source of the memory; the driver's pool without it.
    """
    rmm: _Theirs = importlib.import_module("rmm")
    allocator = _Allocator(resource)

    def allocate(nbytes: int, stream: _Theirs) -> int:
        _, number = stream.__cuda_stream__()
        return allocator.allocate(nbytes, int(rmm._cuda.gpu.getDevice()), number)

    def deallocate(address: int, nbytes: int, stream: _Theirs) -> None:
        _, number = stream.__cuda_stream__()
        allocator.free(address, number)

    rmm_memory: object = rmm.mr.CallbackMemoryResource(allocate, deallocate)
    return rmm_memory


def torch_allocator(resource: MemoryResource | None = None) -> object:
    """Return an allocator for ``torch.cuda.memory.change_current_allocator`` or ``MemPool``.

    PyTorch's memory then comes from a resource. PyTorch does not check for errors: an error of the
    resource reaches `sys.unraisablehook`, and the tensor has the address 0.

    Args:
        resource: the source of the memory; the driver's pool without it.
    """
    torch: _Theirs = importlib.import_module("torch")
    allocator = _Allocator(resource)

    def allocate(nbytes: int, device: int, stream: int | None) -> int:
        return allocator.allocate(nbytes, device, stream or 0)

    def free(address: int | None, nbytes: int, device: int, stream: int | None) -> None:
        allocator.free(address or 0, stream or 0)

    functions = _ALLOCATE(allocate), _FREE(free)
    # PyTorch calls them until the process ends, even after the object is dropped.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(functions))
    first, second = (ctypes.cast(function, ctypes.c_void_p).value for function in functions)
    torch_allocator_object: object = torch.cuda.memory._CUDAAllocator(
        torch._C._cuda_customAllocator(first, second)
    )
    return torch_allocator_object
