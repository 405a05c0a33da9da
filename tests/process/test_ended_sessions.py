"""What has ended keeps nothing: sessions of the emulator, and traces."""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import pytest

import cudadrv
from cudadrv import ClosedError, CudaClient, LaunchConfig, emulator
from cudadrv.memory.staging import LEAST_STAGED_BYTES
from cudadrv.texture import CudaArray, Texture
from ptx.shown_path import shown_path
from tests.bump_kernel import PTX

ONE = LaunchConfig(1, 1)
cudadrv.client.register_module("ended sessions", 'extern "C" __global__ void k() {}')


def launch(client: CudaClient) -> None:
    count = client.stream.zeros(1, "u4")
    client.context.load_module(PTX).kernel("bump").launch(client.stream, ONE, count)


def load_registered(client: CudaClient) -> None:
    client.module("ended sessions").kernel("k").launch(client.stream, ONE)


def multiply(client: CudaClient) -> None:
    a = client.stream.to_device(np.eye(2))
    client.blas.gemm(a, a, client.stream.zeros((2, 2), "f8"))


def allocate(client: CudaClient) -> None:
    client.allocator.deallocate(client.allocator.allocate(64), 64)


def capture(client: CudaClient) -> None:
    client.capture_graph([], [], lambda each: each.allocator.allocate(64), 1 << 16).launch()


def copy_much(client: CudaClient) -> None:
    host = np.ones(LEAST_STAGED_BYTES, "u1")
    client.stream.to_host(client.stream.to_device(host))
    client.stream.copy(client.stream.empty(64, "u1"), cudadrv.pinned_empty(64, "u1"))


def scatter(client: CudaClient) -> None:
    runtime = cudadrv.GpuRuntime.current()
    assert runtime is not None
    cudadrv.scatter_map(runtime, range(10), lambda ordinal, tile: ordinal)
    with cudadrv.DevicePool() as pool:
        pool.best_available_device()


def read_textures(client: CudaClient) -> None:
    Texture(CudaArray.from_host(client.stream, np.ones((8, 8), "f4")))


def call_on_host(client: CudaClient) -> None:
    client.stream.call_on_host(lambda: None)
    client.synchronize()


def exchange(client: CudaClient) -> None:
    client.stream.import_array(client.stream.zeros(4, "f4"))


def fail(client: CudaClient) -> None:
    with pytest.raises(cudadrv.CudaError):
        client.context.load_module(b"nonsense")


USES: Final[tuple[Callable[[CudaClient], None], ...]] = (
    launch, load_registered, multiply, allocate, capture, copy_much, scatter, read_textures,
    call_on_host, exchange, fail,
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
def test_a_session_that_has_ended_is_released_whatever_was_used(
    use: Callable[[CudaClient], None],
) -> None:
    def run() -> weakref.ref[emulator.Emulator]:
        with emulator.session() as machine:
            use(CudaClient(0))
            return weakref.ref(machine)

    ended = run()
    gc.collect()
    gc.collect()
    assert ended() is None


def test_objects_of_an_ended_session_raise_an_error_that_names_it() -> None:
    source = 'extern "C" __global__ void k(int* x) { *x = 1; }'
    with emulator.session() as machine:
        stream = cudadrv.cuda_context_for(0).default_stream
        own = cudadrv.Context.create(0)
        array, other = stream.zeros(4, "i4"), own.new_stream()
        kernel = stream.context.compile(source).kernel("k")
        launch_bound = kernel.bind(stream, ONE)
        launch_bound(array)
        closed_before = stream.zeros(1, "i4")
        closed_before.close()
    line = (
        Path(__file__)
        .read_text(encoding="utf-8")
        .split("\n")
        .index("    with emulator.session() as machine:")
    )
    uses: dict[str, Callable[[], object]] = {
        "allocate": lambda: stream.zeros(1, "i4"),
        "read": lambda: stream.to_host(array),
        "address": lambda: array.ptr,
        "launch": lambda: kernel.launch(stream, ONE, array),
        "launch bound": lambda: launch_bound(array),
        "record": stream.record,
        "wait": other.synchronize,
        "new stream": own.new_stream,
        "compile": lambda: own.compile(source),
        "context": lambda: stream.context.memory_info(),
        "device": lambda: stream.context.device.memory_info(),
        "plan a fault": lambda: machine.fail("cuMemAlloc"),
        "raw call": lambda: machine.cuCtxSynchronize(),
    }
    for driver_of in (emulator.session, lambda: contextlib.nullcontext()):
        with driver_of():
            for name, use in uses.items():
                with pytest.raises(ClosedError) as caught:
                    use()
                assert f"session opened at {shown_path(__file__)}:{line + 1}" in str(
                    caught.value
                ), name
    with pytest.raises(ClosedError, match="was closed") as caught:
        closed_before.ptr  # noqa: B018
    assert "session" not in str(caught.value)
    for item in (stream, own, array, other, kernel.module):
        assert item.closed
        item.close()


def test_memory_of_an_owner_is_released_at_the_end_of_a_session() -> None:
    released = []
    with emulator.session():
        stream = cudadrv.cuda_context_for(0).default_stream
        memory = stream.alloc(64)
        buffer = cudadrv.DeviceBuffer.adopted(
            stream, memory.ptr, 64, lambda pointer, nbytes, on: released.append(nbytes)
        )
        assert released == []
    assert released == [64]
    assert buffer.closed


def test_pinned_memory_stays_readable_after_its_session() -> None:
    with emulator.session():
        host = cudadrv.pinned_empty(1 << 16, np.int32)
        host[:] = 7
    gc.collect()
    assert (host == 7).all()


def test_an_error_leaves_a_session_without_running_its_queued_work() -> None:
    ran = []
    with pytest.raises(KeyError), emulator.session(order="late"):
        stream = cudadrv.cuda_context_for(0).new_stream()
        array = stream.zeros(4, "i4")
        stream.call_on_host(lambda: ran.append(1))
        raise KeyError
    assert ran == []
    assert array.closed
    assert stream.closed


def test_a_trace_that_has_ended_keeps_no_recording(tmp_path: Path) -> None:
    with emulator.session():
        client = CudaClient(0)
        trace = cudadrv.trace(tmp_path / "trace.json")
        with trace:
            launch(client)
            begun = trace._begun
            assert begun is not None
            kept: list[weakref.ref[object]] = [
                weakref.ref(each) for each in (begun.recorder, begun.traced)
            ]
            del begun
        launch(client)
        gc.collect()
        assert [each() for each in kept] == [None, None]
