"""The readers of known libraries, on stand-ins that have those libraries' accessors alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import LaunchConfig, emulator
from cudadrv.errors import ArgumentError, WrongDeviceError
from cudadrv.interop import register
from cudadrv.interop.reader import LIBRARIES

from . import stand_ins
from .stand_ins import StandIn

# Said to be const, as no kernel may write JAX's arrays.
SOURCE = """
extern "C" __global__ void twice(const float* x) { const_cast<float*>(x)[threadIdx.x] *= 2; }
"""
PACKAGES = {
    "torch": "torch.",
    "cupy": "cupy.",
    "numba": "numba.cuda.",
    "jax": "jaxlib.",
    "core": "cuda.core.",
    "warp": "warp.",
}


def taken(name: str, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """A stand-in in the library's place, with the readers that are made of it."""
    library: StandIn = getattr(stand_ins, name)()
    for module, loaded in library.modules.items():
        monkeypatch.setitem(sys.modules, module, loaded)
    for kind, reader in LIBRARIES[PACKAGES[name]]():
        register(kind, reader)
    return library


@pytest.fixture(params=list(PACKAGES))
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    return taken(request.param, monkeypatch)


@pytest.fixture
def stream() -> Iterator[cudadrv.Stream]:
    with emulator.session(order="late", devices=2):
        yield cudadrv.cuda_context_for(0).new_stream()


@pytest.fixture
def twice(stream: cudadrv.Stream) -> cudadrv.Launcher:
    context = cudadrv.cuda_context_for(0)
    image = ptx.compile(SOURCE, ptx.CompileOptions(target=context.target))
    return context.load_module(image).kernel("twice").bind(stream, LaunchConfig(1, 4))


def ones(stream: cudadrv.Stream, count: int = 4) -> cudadrv.DeviceArray[Any]:
    array = stream.to_device(np.ones(count, "f4"))
    stream.synchronize()
    return array


def values(stream: cudadrv.Stream, array: cudadrv.DeviceArray[Any]) -> list[float]:
    stream.synchronize()
    read: list[float] = stream.to_host(array).tolist()
    return read


def test_an_array_is_its_memory_wherever_it_moves(
    library: StandIn, stream: cudadrv.Stream, twice: cudadrv.Launcher
) -> None:
    first, second = ones(stream), ones(stream, 5)
    theirs = library.make(first)
    for _ in range(4):
        twice(theirs)
    if library.move is None:
        theirs = library.make(second[1:])
    else:
        library.move(theirs, second[1:])
    twice(theirs)
    assert values(stream, first) == [16.0] * 4
    assert values(stream, second) == [1.0] + [2.0] * 4


def test_another_device_is_rejected_before_and_after_code_was_made(
    library: StandIn, stream: cudadrv.Stream, twice: cudadrv.Launcher
) -> None:
    array, other = ones(stream), ones(cudadrv.cuda_context_for(1).default_stream)
    for _ in range(4):
        with pytest.raises(WrongDeviceError, match="on device 1 was given to <Stream"):
            twice(library.make(other))
        twice(library.make(array))
    assert values(stream, array) == [16.0] * 4


def test_an_array_that_is_not_c_contiguous_raises_before_and_after_code_was_made(
    library: StandIn, stream: cudadrv.Stream, twice: cudadrv.Launcher
) -> None:
    if "cuda.core" in library.modules:
        pytest.skip("needs a library whose arrays have strides")
    base = stream.to_device(np.ones((2, 4), "f4"))
    view = base.T
    stream.synchronize()
    for _ in range(4):
        with pytest.raises(ArgumentError, match=r"is not C-contiguous\n.*Stream\.contiguous"):
            twice(library.make(view))
        twice(library.make(base))
        twice(library.make(base[:1].T))  # the stride of the only row does not matter
    assert stream.to_host(base).tolist() == [[256.0] * 4, [1.0] * 4]


def test_a_launch_comes_after_what_the_librarys_stream_holds(
    library: StandIn, stream: cudadrv.Stream, twice: cudadrv.Launcher
) -> None:
    if library.current is None or "numba" in next(iter(library.modules)):
        pytest.skip("needs a library that tells of a current stream")
    array = ones(stream)
    for _ in range(3):
        twice(library.make(array))
    stream.synchronize()
    theirs = cudadrv.cuda_context_for(0).new_stream()
    theirs.fill(array, 7)
    library.current[0] = int(theirs.handle)
    twice(library.make(array))
    assert values(stream, array) == [14.0] * 4


def test_closed_deleted_and_freed_arrays_say_so(
    stream: cudadrv.Stream, twice: cudadrv.Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = ones(stream)
    jax, core, torch = (taken(name, monkeypatch) for name in ("jax", "core", "torch"))
    deleted, closed, freed = jax.make(array), core.make(array), torch.make(array)
    for theirs in (deleted, closed, freed) * 2:
        twice(theirs)
    deleted.deleted, closed.handle = True, None
    with pytest.raises(ArgumentError, match=r"cannot be read\n.*deleted or donated buffer"):
        twice(deleted)
    with pytest.raises(ArgumentError, match="of type Buffer and was closed"):
        twice(closed)
    freed.lazy = True
    with pytest.raises(ArgumentError, match=r"when it is read\n  give tensor\.resolve_conj\(\)"):
        twice(freed)


def test_an_array_that_jax_still_computes_is_waited_for_on_the_device(
    stream: cudadrv.Stream, twice: cudadrv.Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    jax, array = taken("jax", monkeypatch), ones(stream)
    for _ in range(3):
        twice(jax.make(array))
    stream.synchronize()
    theirs = cudadrv.cuda_context_for(0).new_stream()
    theirs.fill(array, 5)
    computed = jax.make(array)
    computed.ready = False
    twice(computed)  # by DLPack, which is the producer's affair
    twice(computed)
    assert values(stream, array) == [20.0] * 4


def test_an_array_of_numba_with_a_stream_of_its_own_names_it(
    stream: cudadrv.Stream, twice: cudadrv.Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    numba, array = taken("numba", monkeypatch), ones(stream)
    own = numba.make(array)
    for _ in range(3):
        twice(own)
    stream.synchronize()
    theirs = cudadrv.cuda_context_for(0).new_stream()
    theirs.fill(array, 7)
    own.stream = int(theirs.handle)
    # Numba's arrays have the interface, too; it is what is asked here.
    own.__class__.__cuda_array_interface__ = {
        **array.__cuda_array_interface__,
        "stream": own.stream,
    }
    twice(own)
    assert values(stream, array) == [14.0] * 4


def test_an_allocation_of_numba_is_queried_once_where_it_is(
    stream: cudadrv.Stream, twice: cudadrv.Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    numba, array = taken("numba", monkeypatch), ones(stream)
    theirs = [numba.make(array) for _ in range(5)]
    for each in theirs:
        twice(each)
    theirs[0].asked.clear()
    for each in theirs:
        twice(each)
    assert theirs[0].asked == []
    assert values(stream, array) == [1024.0] * 4


@pytest.mark.slow
def test_a_library_is_loaded_by_its_own_objects_alone() -> None:
    code = (
        "import sys, enum, fractions, numpy\n"
        "from cudadrv.interop.reader import found_for\n"
        "seen = (int, fractions.Fraction, numpy.ndarray, enum.Enum)\n"
        "print([found_for(each) for each in seen])\n"
        "print([name for name in sys.modules if name.startswith('cudadrv.interop.')])\n"
        "print({'torch', 'cupy', 'numba', 'jax', 'warp'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "[None, None, None, None]",
        "['cudadrv.interop.reader']",
        "set()",
    ]
