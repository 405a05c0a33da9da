"""The plan of one launch: its grid, parameters and checks, and what its chunks share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.kernel_facts import KernelFacts
from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.memory.layout import aligned
from ptx.emulate.memory.pointer_extents import Span, pointer_at
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index, Varying, addresses_in
from ptx.emulate.model.clock import Clock
from ptx.emulate.model.geometry import ClusterShape, Geometry, GridCall, Value
from ptx.emulate.model.types import NUMPY
from ptx.emulate.observer import ObservedLaunch, Observer, Watcher
from ptx.emulate.threads.device_model import DeviceModel
from ptx.emulate.threads.limits import Limits
from ptx.standard_streams import write_output

Bools = NDArray[np.bool_]
Array = NDArray[Any]
_SHARED_ALIGN = 128
_SHARE_OF_OTHERS = 16  # of the stack; makes 1 KiB, the default of CU_LIMIT_STACK_SIZE
_MOST_TEXT = 1 << 20  # characters that are held back
_MOST_BYTES = 64 << 20  # of all arrays that one launch retains
_MOST_MISSES = 32  # at a branch, less two for each hit, before its masks are no longer stored


class Parameters(dict[tuple[str, int], Value]):
    """Kernel parameters by kind and offset, read on first use."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        super().__init__()
        self._data = data

    def __missing__(self, key: tuple[str, int]) -> Value:
        kind, offset = key
        dtype = np.dtype(NUMPY[kind])
        value: Value = self._data[offset : offset + dtype.itemsize].view(dtype)[0]
        self[key] = value
        return value


class Output:
    """The text that a kernel prints to the process's standard output.

    A GPU fills a buffer that the host writes out when it synchronises. So does this, so that other
    output does not come between the parts of a line.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._size = 0

    def write(self, text: str) -> None:
        """Add text; bytes of it come as the characters U+0000 to U+00FF."""
        self._parts.append(text)
        self._size += len(text)
        if self._size > _MOST_TEXT:
            self.flush()

    def flush(self) -> None:
        """Write the added text to the present `sys.stdout`."""
        text, self._parts, self._size = "".join(self._parts), [], 0
        if text:
            write_output(text.encode("latin-1").decode(errors="replace"))


class LaunchPlan:
    """A launch: its kernel, grid, parameters and checks.

    Attributes:
        params: kernel parameters by kind and offset; param_bytes: the block they lie in.
        shared_bytes: a block's shared memory, static and dynamic.
        shared_stride, local_stride: distance of the windows of two blocks, of two threads.
        reserved_start: where the part of a block's shared memory begins that the system reserves.
        output: takes the text that threads print; clock: gives them the time.
        cluster: its division into clusters; is_cluster: whether that was requested, of one block
        at least.
        observers: of the launch, in the order in which they see an access. Code for single threads
            runs only without any: it reports no access, and checks no bounds of variables.
        bounding: those of them that bound accesses.
        workspace: address of the memory by which a cooperative grid synchronises, 0 in any other.
        lacks_workspace: whether a kernel has read the address of a workspace that the launch does
        not have.
    """

    def __init__(
        self,
        code: KernelFacts,
        device: DeviceModel,
        call: GridCall,
        limits: Limits,
        reserved_shared: int = 0,
        watchers: tuple[Watcher, ...] = (),
    ) -> None:
        grid, block, params, dynamic_shared, _, cluster = call
        self.code = code
        self.device = device
        self.memory: DeviceMemory = device.memory
        self.clock: Clock = device.clock
        self.grid = grid
        self.block = block
        self.limits = limits
        self.dynamic_shared: int = dynamic_shared
        padded = params.ljust(-(-len(params) // 8) * 8 + 8)
        self.param_bytes: NDArray[np.uint8] = np.frombuffer(padded, dtype=np.uint8)
        self.params: Parameters = Parameters(self.param_bytes)
        self.shared_bytes: int = code.shared_bytes + dynamic_shared
        self.reserved_start: int = aligned(self.shared_bytes, _SHARED_ALIGN)
        if reserved_shared:
            self.shared_bytes = self.reserved_start + reserved_shared
        self.shared_stride: int = aligned(self.shared_bytes, _SHARED_ALIGN)
        self.local_stride: int = aligned(_stack_bytes(code, limits), 16)
        self._shared = np.empty(0, dtype=np.uint8)
        self._caches: dict[int, LaunchCache] = {}
        self.cluster: ClusterShape = ClusterShape(grid, cluster or (1, 1, 1))
        self.is_cluster: bool = cluster is not None
        self.workspace: int = 0
        self.lacks_workspace: bool = False
        self.output: Output = Output()
        self.observers: tuple[Observer, ...] = ()
        self.bounding: tuple[Observer, ...] = ()
        if watchers:
            self._begin_observers(watchers)

    def for_thread(self) -> Self:
        """Return the same plan for another thread, with arrays of its own that chunks share."""
        plan = copy(self)
        plan.params = Parameters(self.param_bytes)
        plan._shared = np.empty(0, dtype=np.uint8)
        plan._caches = {}
        return plan

    @property
    def is_observed(self) -> bool:
        """True if observers, or the check of synchronisation, follow the threads."""
        return self.limits.check_synchronisation or bool(self.observers)

    def _begin_observers(self, watchers: tuple[Watcher, ...]) -> None:
        launch = ObservedLaunch(
            self.code,
            self.memory,
            self.block,
            self.cluster,
            self.param_bytes,
            self.shared_bytes,
            self.reserved_start,
            lambda: self.code.find_origins(self._pointers()),
        )
        for watcher in watchers:
            observer = watcher.begin(launch)
            if observer is not None:
                self.observers += (observer,)
                if "spans" in observer.events:
                    self.bounding += (observer,)
        if self.bounding:  # sites may have cached wider bounds in the last launch
            self.memory.version += 1

    def _pointers(self) -> frozenset[int]:
        """Return the offsets of the parameters that are addresses."""
        offsets = range(0, len(self.param_bytes) - 7, 8)
        return frozenset(offset for offset in offsets if self._is_pointer(offset))

    def _is_pointer(self, offset: int) -> bool:
        address = pointer_at(self.param_bytes, offset)
        memories = (self.memory, *self.device.peers)
        return (
            any(memory.base <= address <= memory.base + memory.nbytes for memory in memories)
            or self.device.host(address) is not None
        )

    def spans(self, site: Site, space: str) -> tuple[Span, ...]:
        """Return where alone an instruction may access a space; () for no bounds."""
        for observer in self.bounding:
            spans = observer.spans(site, space)
            if spans:
                return spans
        return ()

    @contextmanager
    def ended(self) -> Iterator[None]:
        """Let the observers know how the launch, which runs in the block, has ended."""
        try:
            yield
        except BaseException as error:
            for observer in self.observers:
                observer.fail(error)
            raise
        for observer in self.observers:
            observer.end()

    def cache_for(self, shape: Geometry) -> LaunchCache:
        """Return the cache that the chunks of a geometry share."""
        cache = self._caches.get(shape.blocks)
        if cache is None:
            cache = self._caches[shape.blocks] = LaunchCache(self.limits.share_from)
        return cache

    def shared_memory(self, nbytes: int) -> NDArray[np.uint8]:
        """Zeroed shared memory for the next chunk; the last one's is used again."""
        if len(self._shared) < nbytes:
            self._shared = np.zeros(nbytes, dtype=np.uint8)
        else:
            self._shared[:] = 0
        return self._shared[:nbytes]


def _stack_bytes(code: KernelFacts, limits: Limits) -> int:
    """Return the local memory of a thread for the kernel and the functions that it may call."""
    stack = code.stack_bytes
    if code.calls_by_address:
        stack += limits.stack_bytes // _SHARE_OF_OTHERS
    if code.is_recursive:
        stack = max(stack, limits.stack_bytes)
    return stack


class Division:
    """A mask that a branch gave before, and the positions of its elements.

    `parts`: elements at these positions of cached arrays, by the arrays' identity; `places`: the
    cached positions of a fibre of these threads.
    """

    __slots__ = ("mask", "parts", "places", "positions")

    def __init__(self, mask: Bools) -> None:
        self.mask: Bools = mask
        self.positions: Index = mask.nonzero()[0]
        self.parts: dict[int, Array] = {}
        self.places: dict[str, Any] = {}  # arrays of any type, as `Fibre.place` gives them


class LaunchCache:
    """The arrays that chunks of one geometry share.

    A block-invariant value (`codegen/analysis/block_invariant.py`) is the same array in every chunk
    of the same geometry. So are the bounds and element indices of accesses by it, and its parts at
    branches. They are found by the identity of arrays, which the cache therefore retains.

    Attributes:
        fewest: threads of a chunk from which on it shares (`Limits.share_from`).
        values: block-invariant values by their slots.
        starts: where each lane's shared or local memory starts, by space and shift.
    """

    def __init__(self, fewest: int) -> None:
        self.fewest = fewest
        self.values: dict[int, Array] = {}
        self.starts: dict[tuple[str, int], Index] = {}
        self._addresses: dict[int, Addresses] = {}
        self._alive: list[Array] = []
        self._divisions: dict[tuple[int, int], Division] = {}
        self._misses: dict[int, int] = {}
        self._room = _MOST_BYTES

    def store(self, slot: int, value: Array) -> None:
        """Store a block-invariant value for all threads of a chunk."""
        if self._remember(value):
            self.values[slot] = value

    def addresses(self, value: Any) -> Addresses:  # an array or scalar of 32 or 64 bits
        """The addresses in a register; those of a cached array are found again."""
        addresses = self._addresses.get(id(value))
        return addresses_in(value) if addresses is None else addresses

    def division(self, block: int, mask: Bools, count: int) -> Division | None:
        """A mask of the chunk's threads that part at a branch to `block`, `count` of them there.

        None where such masks do not come again.
        """
        key = (block, count)
        cached = self._divisions.get(key)
        misses = self._misses.get(block, 0)
        if misses > _MOST_MISSES or len(mask) < self.fewest:
            return None
        if cached is not None and _equal(cached.mask, mask):
            self._misses[block] = misses - 2
            return cached
        self._misses[block] = misses + 1
        if self._room < 9 * len(mask):
            return None
        self._room -= 9 * len(mask)
        division = self._divisions[key] = Division(mask)
        return division

    def part(self, value: Array, division: Division) -> Array:
        """The value's elements at the positions of a division."""
        part = division.parts.get(id(value))
        if part is not None:
            return part
        elements: Array = value.take(division.positions, mode="clip")
        if id(value) in self._addresses and self._remember(elements):
            division.parts[id(value)] = elements
        return elements

    def _remember(self, value: Array) -> bool:
        """Retain an array, with capacity for the indices that its accesses will compute."""
        if id(value) in self._addresses:
            return True
        nbytes = value.nbytes + 16 * len(value)
        if self._room < nbytes:
            return False
        self._room -= nbytes
        self._alive.append(value)
        if value.dtype.itemsize in (4, 8) and value.dtype.kind in "iu":
            signed = value.view(np.int64 if value.dtype.itemsize == 8 else np.int32)
            self._addresses[id(value)] = Addresses(0, Varying(signed, cached=True))
        else:
            self._addresses[id(value)] = _NO_ADDRESSES
        return True


_NO_ADDRESSES = Addresses(0, None)


def _equal(a: Bools, b: Bools) -> bool:
    if len(a) != len(b):
        return False
    if len(a) % 8 == 0 and a.flags.c_contiguous and b.flags.c_contiguous:
        return bool((a.view(np.uint64) == b.view(np.uint64)).all())
    return bool((a == b).all())
