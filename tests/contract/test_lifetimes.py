"""What becomes of objects when what they belong to is closed, and that none can be copied."""

from __future__ import annotations

import copy
import gc
import pickle

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import Event, LaunchConfig
from cudadrv.client import SobolDvCache
from cudadrv.errors import ClosedError, InvalidValueError

from .conftest import compile_module

ONE = LaunchConfig(1, 1)
SOURCE = """
__device__ int counter = 5;
extern "C" __global__ void bump(int* x) { *x += counter; }
"""


@pytest.fixture(scope="module")
def own_image(context: cudadrv.Context) -> ptx.Image:
    options = ptx.CompileOptions(target=context.target)
    return ptx.compile(SOURCE, options, name_expressions=("&counter",))


def test_a_closed_context_closes_what_is_of_it(own_image: ptx.Image) -> None:
    own = cudadrv.Context.create(0)
    stream = own.new_stream()
    array = stream.zeros(1, "i4")
    module = own.load_module(own_image)
    counter = module.global_array("&counter", (), "i4")
    event, recorded = Event(own), stream.record()
    with stream.capture() as graph:
        module.kernel("bump").launch(stream, ONE, array)
    executable = graph.instantiate()
    other = cudadrv.cuda_context_for(0).new_stream()
    own.close()
    for use in (
        lambda: event.record(other),
        recorded.synchronize,
        lambda: recorded.elapsed_ms(event),
        lambda: other.wait(recorded),
        lambda: executable.launch(other),
        stream.record,
    ):
        with pytest.raises(ClosedError):
            use()
    for item in (event, recorded, graph, executable, module, stream, array, counter):
        item.close()
        assert item.closed
        assert "closed" in repr(item) or "of nothing" in repr(item)
    gc.collect()
    assert other.to_host(other.zeros(2, "i4")).tolist() == [0, 0]
    other.close()


def test_variables_of_a_closed_module_are_closed(
    context: cudadrv.Context, stream: cudadrv.Stream, own_image: ptx.Image
) -> None:
    module = context.load_module(own_image)
    first, second = (module.global_array("&counter", dtype="i4") for _ in range(2))
    view = first.view("u1")
    first_again = module.global_array("&counter", dtype="i4")
    first_again.close()
    assert stream.to_host(first).tolist() == stream.to_host(second).tolist() == [5]
    module.close()
    for variable in (first, second, view):
        assert variable.closed
        with pytest.raises(ClosedError, match="the device array of shape"):
            stream.to_host(variable)


def test_a_variable_smaller_than_one_element_is_rejected(
    context: cudadrv.Context, own_image: ptx.Image
) -> None:
    module = context.load_module(own_image)
    with pytest.raises(InvalidValueError, match="does not fit a buffer of 4 bytes"):
        module.global_array("&counter", dtype="f8")


def test_a_variable_keeps_its_module(context: cudadrv.Context, stream: cudadrv.Stream) -> None:
    counter = compile_module(context, SOURCE, "&counter").global_array("&counter", dtype="i4")
    gc.collect()
    assert stream.to_host(counter).tolist() == [5]


def test_objects_of_the_driver_are_neither_copied_nor_pickled(
    context: cudadrv.Context, stream: cudadrv.Stream, own_image: ptx.Image
) -> None:
    module = context.load_module(own_image)
    with stream.capture() as graph:
        pass
    handles = (context, stream, stream.record(), module, module.kernel("bump"), graph)
    for handle in (*handles, graph.instantiate()):
        for make in (copy.copy, copy.deepcopy, pickle.dumps):
            what = f"a {type(handle).__name__} cannot be copied or pickled"
            with pytest.raises(TypeError, match=what):
                make(handle)


def test_what_shares_objects_of_the_driver_is_neither_copied_nor_pickled(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    """Two pools or arenas over one list would lend the same memory twice."""
    runtime = cudadrv.GpuRuntime.current()
    assert runtime is not None
    handles: tuple[object, ...] = (
        context.new_stream_pool(2), context.legacy_stream, context.limits, cudadrv.DeviceArena(),
        cudadrv.memory.ArenaMemory(), cudadrv.memory.CudaAllocator(stream),
        cudadrv.memory.CountedMemory(), cudadrv.memory.PinnedPool(),
        cudadrv.blas.LinearAlgebra(stream), SobolDvCache(stream), runtime,
    )  # fmt: skip
    if context.device.compute_capability >= (9, 0):
        handles += (context.sm_resource, context.new_graph().new_condition())
    for handle in handles:
        for make in (copy.copy, copy.deepcopy, pickle.dumps):
            what = f"a {type(handle).__name__} cannot be copied or pickled"
            with pytest.raises(TypeError, match=what):
                make(handle)


def test_objects_of_the_driver_say_where_they_are(stream: cudadrv.Stream) -> None:
    event = stream.record()
    assert repr(event) == f"<Event {int(event.handle):#x} on device 0>"
    with stream.capture() as graph:
        assert repr(graph) == "<Graph of nothing on device 0>"
    assert repr(graph) == f"<Graph {int(graph.handle):#x} on device 0>"
    with graph, graph.instantiate() as executable:
        assert repr(executable) == f"<GraphExec {int(executable.handle):#x} on device 0>"
    assert graph.closed
    assert repr(executable) == "<GraphExec closed on device 0>"
    with pytest.raises(AttributeError, match="has no attribute 'query'"):
        _ = event.query  # type: ignore[attr-defined]  # what is tested


def test_an_event_that_blocks_is_waited_for(stream: cudadrv.Stream) -> None:
    with Event(stream.context, blocking=True, timing=False) as event:
        event.record(stream)
        event.synchronize()
        assert event.is_done()


def test_images_are_taken_from_any_bytes(
    context: cudadrv.Context, stream: cudadrv.Stream, own_image: ptx.Image
) -> None:
    for data in (own_image.data, bytearray(own_image.data), memoryview(own_image.data)):
        out = stream.zeros(1, "i4")
        context.load_module(data).kernel("bump").launch(stream, ONE, out)
        assert stream.to_host(out).tolist() == [5]
    with pytest.raises(TypeError, match="not NoneType: give a file as a Path"):
        context.load_module(None)  # type: ignore[arg-type]  # what is tested


def test_a_module_without_kernels_has_none(context: cudadrv.Context) -> None:
    module = compile_module(context, "__device__ int alone = 3;", "&alone")
    assert module.kernel_names == ()
    with pytest.raises(cudadrv.errors.KernelNotFoundError, match="no kernel 'k'; it has: &alone"):
        module.kernel("k")
    assert np.prod(module.global_array("&alone", dtype="i4").shape) == 1
