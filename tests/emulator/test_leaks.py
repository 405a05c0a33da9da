"""What a program leaves behind is told with where it was made; what the library keeps is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cudadrv
from cudadrv import emulator
from cudadrv.emulator import Leak
from cudadrv.emulator.leaks import LIBRARYS_OWN
from cudadrv.errors import CheckError
from tests.emulator.engine.kernel_runner import ptx_text

HERE = Path(__file__).name
PTX = ptx_text("ret;")
KEPT: list[object] = []


def line_of(words: str) -> str:
    """The place of the first line of this file that has these words."""
    lines = Path(__file__).read_text().splitlines()
    return f"{HERE}:{next(at for at, line in enumerate(lines, 1) if words in line)}"


def keeps_memory(stream: cudadrv.Stream) -> object:
    return stream.zeros(100, np.int32)  # makes memory


def keeps_a_stream(stream: cudadrv.Stream) -> object:
    return stream.context.new_stream()  # makes a stream


def keeps_an_event(stream: cudadrv.Stream) -> object:
    return cudadrv.Event(stream.context)  # makes an event


def keeps_a_module(stream: cudadrv.Stream) -> object:
    return stream.context.load_module(PTX)  # makes a module


def keeps_pinned_memory(stream: cudadrv.Stream) -> object:
    return cudadrv.pinned_empty(100, np.int32)  # makes pinned


def keeps_a_graph(stream: cudadrv.Stream) -> object:
    array = stream.zeros(4, np.int32)
    with stream.capture() as graph:  # makes a graph
        stream.fill(array, 1)
    return graph


CASES: dict[str, tuple[Callable[[cudadrv.Stream], object], str]] = {
    "device memory": (keeps_memory, "memory"),
    "stream": (keeps_a_stream, "a stream"),
    "event": (keeps_an_event, "an event"),
    "module": (keeps_a_module, "a module"),
    "pinned memory": (keeps_pinned_memory, "pinned"),
    "graph": (keeps_a_graph, "a graph"),
}


def use_much(stream: cudadrv.Stream) -> None:
    """What makes the library keep things for itself: events, default streams, pinned buffers."""
    other = stream.context.new_stream()
    array = stream.zeros(1 << 20, np.float32)
    other.copy(array, np.ones(1 << 20, np.float32))
    other.wait(stream)
    assert stream.to_host(array).sum() >= 0
    stream.context.default_stream.synchronize()
    stream.synchronize()
    other.synchronize()


@pytest.mark.parametrize("what", CASES)
def test_what_is_retained_is_reported_with_where_it_was_made(what: str) -> None:
    make, words = CASES[what]

    def program() -> None:
        stream = cudadrv.cuda_context_for(0).new_stream()
        use_much(stream)
        KEPT.append(make(stream))

    try:
        with pytest.raises(CheckError) as caught, emulator.session(check=("leak",)):
            program()
    finally:
        KEPT.clear()
    told = {each.what for each in caught.value.findings if isinstance(each, Leak)}
    assert told <= {what, "stream", "device memory"}  # what it is made of is kept by it
    (found,) = [each for each in caught.value.findings if getattr(each, "what", "") == what]
    assert isinstance(found, Leak)
    assert found.made_at.endswith(line_of(f"# makes {words}"))


def test_what_a_function_of_the_driver_made_is_reported_where_it_was_called() -> None:
    with emulator.session(check=("leak",), raise_findings=False) as machine:
        context = cudadrv.cuda_context_for(0)
        context.synchronize()
        code, address = machine.cuMemAlloc(64)  # calls the driver
        assert not code
        del context
    (found,) = machine.findings
    assert isinstance(found, Leak)
    assert (found.what, found.nbytes, found.handle) == ("device memory", 64, int(address))
    assert found.made_at.endswith(line_of("# calls the driver"))


def test_what_the_library_keeps_by_device_is_no_leak() -> None:
    """A client, its streams and modules are there as long as the driver is in use."""
    with emulator.session(check=("leak",)) as machine:
        client = cudadrv.CudaClient(0)
        client.synchronize()
        default = cudadrv.cuda_context_for(0).default_stream
        default.synchronize()
    assert machine.findings == ()
    assert client.stream.context is default.context


def test_without_the_check_nothing_is_reported() -> None:
    with emulator.session(check=()) as machine:
        KEPT.append(cudadrv.cuda_context_for(0).new_stream())
    KEPT.clear()
    assert machine.findings == ()


@pytest.mark.parametrize("make", [make for make, _ in CASES.values()])
def test_what_is_released_is_no_leak(make: Callable[[cudadrv.Stream], object]) -> None:
    def program() -> None:
        stream = cudadrv.cuda_context_for(0).new_stream()
        use_much(stream)
        make(stream)

    with emulator.session(check=("leak",)) as machine:
        program()
    assert machine.findings == ()


def test_files_and_functions_of_the_librarys_own_objects_exist() -> None:
    root = Path(cudadrv.__file__).parent
    for name, function in LIBRARYS_OWN:
        path = root / name
        assert path.exists(), name
        assert not function or f"def {function}" in path.read_text(), (name, function)
