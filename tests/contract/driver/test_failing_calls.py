"""Every driver call of a program fails once: nothing is lost, and the streams work on."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig, Stream, emulator
from cudadrv.driver import deferred_release
from cudadrv.errors import CudadrvError, UnknownError
from cudadrv.memory.reuse.arena import DeviceArena
from cudadrv.texture import CudaArray, Surface, Texture
from tests.bump_kernel import PTX

pytestmark = pytest.mark.slow

ONE = LaunchConfig(1, 1)
_NEVER: Final = 1 << 40
# What is left where its own release is refused; a graph keeps what it uses.
_GRAPHS = {"graph", "executable graph", "user object", "stream", "event", "used"}
_KEPT = {
    "cuStreamDestroy": {"stream"},
    "cuEventDestroy": {"event"},
    "cuGraphDestroy": _GRAPHS,
    "cuGraphExecDestroy": _GRAPHS,
    "cuModuleUnload": {"module"},
    "cuArrayDestroy": {"array"},
    "cuCtxPushCurrent": {"array", "module"},  # to release them
    "cuMemFreeAsync": {"used"},
}
# Those whose planned failure leaves the driver in the middle of something, which a real one ends.
_NOT_TRIED = {"cuCtxPopCurrent", "cuStreamEndCapture"}


def copies(a: Stream, b: Stream, far: Stream) -> None:
    array, other = a.zeros(64, "u4"), far.empty(64, "u4")
    b.fill(array, 3)
    far.copy(other, array)
    a.copy(array, other)
    b.to_host(array)
    a.copy(array, np.ones(64, "u4"))
    b.copy(array[1:], array[:-1])
    b.fill(array, 0x01020304)
    array.__dlpack__()
    assert array.__cuda_array_interface__


def launches(a: Stream, b: Stream, far: Stream) -> None:
    kernel = a.context.load_module(PTX).kernel("bump")
    array = b.zeros(4, "u4")
    for stream in (a, a, a, b, a):
        kernel.launch(stream, ONE, array)
    prepared = kernel.bind(b, ONE).prepare(array)
    prepared()
    kernel.bind(a, ONE, ordered=False)(array)


def graphs(a: Stream, b: Stream, far: Stream) -> None:
    array, host = a.zeros(64, "u4"), np.ones(64, "u4")
    dropped = a.zeros(64, "u4")
    with a.capture() as graph:
        b.wait(a.record())
        del dropped
        b.copy(array, host)
        born = b.zeros(64, "u4")
        b.copy(born, array)
        brief = a.zeros(4, "u4")
        del brief
        a.wait(b)
    executable = graph.instantiate()
    for stream in (a, b, b):
        executable.launch(stream)
    a.to_host(born)
    with a.capture() as second:
        a.fill(array, 1)
    with second.instantiate() as other, a.capture() as third:
        a.fill(array, 2)
    with pytest.raises(CudadrvError):
        other.update(third)


def textures(a: Stream, b: Stream, far: Stream) -> None:
    image = CudaArray.from_host(a, np.ones((8, 8), "f4"), surface=True)
    surface, texture = Surface(image), Texture(image)
    image.copy_to(b)
    texture.close()
    del surface
    image.close()


def slabs(a: Stream, b: Stream, far: Stream) -> None:
    with DeviceArena("f4") as arena:
        bucket, slab = arena.alloc(a, 10)
        arena.release(bucket, slab)
        bucket, slab = arena.alloc(b, 10)
        arena.release(bucket, slab)
    allocator = cudadrv.memory.CudaAllocator(a)
    allocator.deallocate(allocator.allocate(64), 64)
    allocator.reset()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("program", [copies, launches, graphs, textures, slabs])
def test_a_failing_call_leaves_nothing(
    program: Callable[[Stream, Stream, Stream], None],
) -> None:
    with emulator.session(devices=2) as machine:
        contexts = [cudadrv.cuda_context_for(ordinal) for ordinal in range(2)]
        with ExitStack() as faults:
            counted = [
                faults.enter_context(machine.fail(name, nth=_NEVER))
                for name in dir(machine)
                if name.startswith("cu") and name not in _NOT_TRIED
            ]
            run(program, contexts)
        wrong = []
        before = leftovers(machine, contexts)
        for function, times in [(each.function, each.calls) for each in counted]:
            for nth in range(1, times + 1):
                with machine.fail(function, nth=nth):
                    run(program, contexts)
                now = leftovers(machine, contexts)
                more = {kind for kind in now if now[kind] > before[kind]}
                if not more <= _KEPT.get(function, set()):
                    wrong.append((function, nth, more))
                before = now
        assert not wrong


def run(program: Callable[[Stream, Stream, Stream], None], contexts: list[cudadrv.Context]) -> None:
    try:
        a, b = (contexts[0].new_stream() for _ in range(2))
        program(a, b, contexts[1].new_stream())
    except CudadrvError:
        pass


def leftovers(machine: emulator.Emulator, contexts: list[cudadrv.Context]) -> dict[str, int]:
    gc.collect()
    for context in contexts:
        stream = context.default_stream
        with stream.capture() as graph:
            pass
        graph.close()
        assert stream.to_host(stream.zeros(1, "u4")).tolist() == [0]
    deferred_release.run_deferred()
    kinds = ("stream", "event", "graph", "executable graph", "module", "user object", "array")
    existing = machine.live_objects()
    return {kind: existing[kind] for kind in kinds} | {
        "used": sum(cudadrv.memory.pool_info(context.device).used for context in contexts),
        "deferred": deferred_release.waiting_count(),
        "stack": depth_of_stack(machine),
    }


def depth_of_stack(machine: emulator.Emulator) -> int:
    """Return how many contexts the stack of this thread has."""
    popped = []
    while int(machine.cuCtxGetCurrent()[1]):
        popped.append(machine.cuCtxPopCurrent()[1])
    for context in reversed(popped):
        machine.cuCtxPushCurrent(context)
    return len(popped)


def test_a_capture_whose_stream_has_no_known_flags_raises_and_leaves_the_stream_usable() -> None:
    with emulator.session() as machine:
        stream = cudadrv.cuda_context_for(0).new_stream()
        array = stream.zeros(4, "i4")
        with (
            machine.fail("cuStreamGetFlags", with_=999),
            pytest.raises(UnknownError, match="cuStreamGetFlags"),
            stream.capture(),
        ):
            stream.fill(array, 1)
        stream.fill(array, 2)
        with stream.capture() as graph:
            stream.fill(array, 3)
        assert stream.to_host(array).tolist() == [2] * 4
        graph.instantiate().launch(stream)
        assert stream.to_host(array).tolist() == [3] * 4
