"""Memory of other libraries' resources, and ours lent to them; stand-ins have only what is used."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import pytest

import cudadrv
from cudadrv import allocators, using_memory
from cudadrv.errors import ArgumentTypeError
from cudadrv.memory import CountedMemory, DriverMemory
from cudadrv.memory.resource import MemoryStream
from tests.memory_place import place_on

_Install = Callable[..., None]


def in_use(memory: CountedMemory) -> int:
    return memory.statistics().in_use_bytes


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> _Install:
    """Puts a stand-in in the place of a library's module."""

    def put(name: str, **contents: object) -> None:
        module = ModuleType(name)
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, name, module)

    return put


class CupyPool:
    """A pool whose memory goes back when what stands for it is dropped."""

    def __init__(self) -> None:
        self.streams: list[int] = []
        self.live = 0
        self.current: list[tuple[str, int]] = []

    @contextmanager
    def made_current(self, what: str, number: int) -> Iterator[None]:
        self.current.append((what, number))
        yield
        self.current.pop()

    def malloc(self, nbytes: int) -> object:
        (_, device), (_, number) = self.current
        self.streams.append(number)
        stream = cudadrv.cuda_context_for(device).external_stream(number)
        return CupyPointer(self, nbytes, place_on(stream))


class CupyPointer:
    def __init__(self, pool: CupyPool, nbytes: int, place: MemoryStream) -> None:
        self.ptr = DriverMemory().allocate(nbytes, place)
        self._pool, self._nbytes, self._place = pool, nbytes, place
        pool.live += 1

    def __del__(self) -> None:
        self._pool.live -= 1
        DriverMemory().deallocate(self.ptr, self._nbytes, self._place)


def test_arrays_have_their_memory_from_a_pool_of_cupy(
    stream: cudadrv.Stream, install: _Install
) -> None:
    pool = CupyPool()
    cuda = SimpleNamespace(
        Device=lambda number: pool.made_current("device", number),
        ExternalStream=lambda number: pool.made_current("stream", number),
    )
    install("cupy", cuda=cuda, get_default_memory_pool=lambda: pool)
    with using_memory(allocators.CupyMemory()):
        array = stream.zeros(5, "i4")
    assert pool.streams == [int(stream.handle)]
    assert pool.live == 1
    assert stream.to_host(array).tolist() == [0] * 5
    array.close()
    assert pool.live == 0


def test_cupy_has_its_memory_from_a_resource(stream: cudadrv.Stream, install: _Install) -> None:
    class PythonFunctionAllocator:
        def __init__(
            self, malloc: Callable[[int, int], int], free: Callable[[int, int], None]
        ) -> None:
            self.give, self.free = malloc, free

        def malloc(self, nbytes: int) -> int:
            return self.give(nbytes, 0)

    made: list[PythonFunctionAllocator] = []

    def make(malloc: Callable[[int, int], int], free: Callable[[int, int], None]) -> object:
        made.append(PythonFunctionAllocator(malloc, free))
        return made[0]

    current = SimpleNamespace(ptr=int(stream.handle))
    cuda = SimpleNamespace(PythonFunctionAllocator=make, get_current_stream=lambda: current)
    install("cupy", cuda=cuda)
    memory = CountedMemory()
    address = allocators.cupy_allocator(memory)(100)
    assert isinstance(address, int)
    assert in_use(memory) == 100
    made[0].free(address, 0)
    assert in_use(memory) == 0


class RmmStream:
    """A stream of RMM over what has ``__cuda_stream__``."""

    def __init__(self, stream: object) -> None:
        self._stream = stream

    def __cuda_stream__(self) -> tuple[int, int]:
        found: tuple[int, int] = self._stream.__cuda_stream__()  # type: ignore[attr-defined]
        return found


class CallbackMemoryResource:
    """RMM's resource of that name, as far as it is used."""

    def __init__(
        self,
        allocate: Callable[[int, RmmStream], int],
        deallocate: Callable[[int, int, RmmStream], None],
    ) -> None:
        self.allocate, self.deallocate = allocate, deallocate


def test_rmm_has_its_memory_from_a_resource_and_gives_it_to_arrays(
    context: cudadrv.Context, install: _Install
) -> None:
    mr = SimpleNamespace(CallbackMemoryResource=CallbackMemoryResource)
    gpu = SimpleNamespace(getDevice=lambda: 0)
    install("rmm", mr=mr, _cuda=SimpleNamespace(gpu=gpu))
    install("rmm.mr", get_per_device_resource=lambda ordinal: {0: theirs}[ordinal])
    install("rmm.pylibrmm")
    install("rmm.pylibrmm.stream", Stream=RmmStream)
    memory = CountedMemory()
    theirs: object = allocators.rmm_resource(memory)
    assert isinstance(theirs, CallbackMemoryResource)
    with context.new_stream() as a, context.new_stream() as b:
        address = theirs.allocate(64, RmmStream(a))
        assert in_use(memory) == 64
        theirs.deallocate(address, 64, RmmStream(b))
        assert in_use(memory) == 0
        for resource in (allocators.RmmMemory(), allocators.RmmMemory(theirs)):
            with using_memory(resource):
                array = a.zeros(3, "i4")
            assert in_use(memory) == 12
            assert a.to_host(array).tolist() == [0, 0, 0]
            array.close()
            assert in_use(memory) == 0


class TorchFunctions:
    """Calls functions at addresses, as PyTorch does from C."""

    def __init__(self, allocate: int, free: int) -> None:
        pointer, size, device = ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int
        self.allocate = ctypes.CFUNCTYPE(pointer, size, device, pointer)(allocate)
        self.free = ctypes.CFUNCTYPE(None, pointer, size, device, pointer)(free)


def test_pytorch_has_its_memory_from_a_resource(stream: cudadrv.Stream, install: _Install) -> None:
    install(
        "torch",
        cuda=SimpleNamespace(memory=SimpleNamespace(_CUDAAllocator=lambda allocator: allocator)),
        _C=SimpleNamespace(_cuda_customAllocator=TorchFunctions),
    )
    memory = CountedMemory()
    theirs = allocators.torch_allocator(memory)
    assert isinstance(theirs, TorchFunctions)
    number = int(stream.handle)
    address = theirs.allocate(256, 0, number)
    assert address
    assert in_use(memory) == 256
    theirs.free(address, 256, 0, number)
    assert in_use(memory) == 0
    assert theirs.allocate(0, 0, number) is None
    theirs.free(None, 0, 0, number)
    on_default = theirs.allocate(16, 0, None)  # the legacy default stream
    theirs.free(on_default, 16, 0, None)
    assert in_use(memory) == 0


def test_what_is_no_resource_is_not_handed_out(install: _Install) -> None:
    install("cupy", cuda=SimpleNamespace())
    wrong: cudadrv.memory.MemoryResource = 3  # type: ignore[assignment]  # on purpose
    with pytest.raises(ArgumentTypeError, match="resource is 3, .* allocate and deallocate"):
        allocators.cupy_allocator(wrong)
