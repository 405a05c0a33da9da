"""Device arrays in `In`: launches on several streams read them at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import cudadrv
from cudadrv import Context, In, LaunchConfig, Stream, emulator
from cudadrv.errors import ArgumentError, ArgumentTypeError, ClosedError
from cudadrv.memory.array import AnyDeviceArray
from tests.noted_calls import calls_of

SOURCE = """
template <typename T> __global__ void copied(const T* from, T* to) {
    to[threadIdx.x] = from[threadIdx.x];
}
template <typename T> __global__ void doubled(T* x) { x[threadIdx.x] *= 2; }
extern "C" __global__ void untyped(const float* from, float* to) {
    to[threadIdx.x] = from[threadIdx.x];
}
"""
COUNT = 32
CONFIG = LaunchConfig(1, COUNT)


@pytest.fixture(params=["immediate", "late"])
def context(request: pytest.FixtureRequest) -> Iterator[Context]:
    with emulator.session(order=request.param):
        yield cudadrv.cuda_context_for(0)


@pytest.fixture
def kernels(context: Context) -> cudadrv.Module:
    return context.compile(
        SOURCE, name_expressions=["copied<float>", "copied<float4>", "doubled<float>"]
    )


Launch = Callable[[Stream, object, AnyDeviceArray], object]


def ways(kernels: cudadrv.Module, name: str) -> dict[str, Launch]:
    """Each way to launch a kernel with two arrays."""
    kernel = kernels.kernel(name)
    bound: dict[Stream, cudadrv.Launcher] = {}

    def by_launcher(stream: Stream, source: object, to: AnyDeviceArray) -> None:
        if stream not in bound:
            bound[stream] = kernel.bind(stream, CONFIG)
        bound[stream](source, to)

    def by_graph(stream: Stream, source: object, to: AnyDeviceArray) -> None:
        with stream.capture() as graph:
            kernel.launch(stream, CONFIG, source, to)
        graph.instantiate().launch(stream)

    def by_node(stream: Stream, source: object, to: AnyDeviceArray) -> None:
        graph = stream.context.new_graph()
        graph.add_kernel(kernel, CONFIG, source, to)
        graph.instantiate().launch(stream)

    return {
        "launch": lambda stream, source, to: kernel.launch(stream, CONFIG, source, to),
        "launcher": by_launcher,
        "prepared": lambda stream, source, to: kernel.bind(stream, CONFIG).prepare(source, to)(),
        "captured": by_graph,
        "node": by_node,
    }


@pytest.mark.parametrize("name", ["copied<float>", "untyped"])
def test_launches_on_three_streams_read_an_array_between_two_writes(
    context: Context, kernels: cudadrv.Module, name: str
) -> None:
    failures = []
    for way, launch in ways(kernels, name).items():
        streams = [context.new_stream() for _ in range(3)]
        for repeat in range(4):  # the first launches run other code than later ones
            x = streams[0].to_device(np.full(COUNT, 1 + repeat, "f4"))
            outs = [stream.zeros(COUNT, np.float32) for stream in streams]
            for stream, out in zip(streams, outs, strict=True):
                launch(stream, In(x), out)
            writer = streams[repeat % 3]
            kernels.kernel("doubled<float>").launch(writer, CONFIG, x)
            found = [stream.to_host(each)[0] for stream, each in zip(streams, outs, strict=True)]
            found.append(streams[-1].to_host(x)[-1])
            if found != [1 + repeat] * 3 + [2 + 2 * repeat]:
                failures.append((way, repeat, found))
    assert not failures


def test_launches_that_read_wait_for_no_other_reader(
    context: Context, kernels: cudadrv.Module
) -> None:
    """Neither stream waits any more once each has read the array after its last write."""
    waits = {}
    for way, launch in ways(kernels, "copied<float>").items():
        for given in (In, lambda array: array):
            one, other = context.new_stream(), context.new_stream()
            x, a, b = one.zeros(COUNT, "f4"), one.zeros(COUNT, "f4"), other.zeros(COUNT, "f4")
            for _ in range(3):
                launch(one, given(x), a)
                launch(other, given(x), b)
            with calls_of("cuStreamWaitEvent") as calls:
                for _ in range(3):
                    launch(one, given(x), a)
                    launch(other, given(x), b)
            waits[way, given is In] = len(calls) if way != "captured" else None
    assert {key: value for key, value in waits.items() if value is not None} == {
        (way, reads): 0 if reads else 6
        for way in ("launch", "launcher", "prepared", "node")
        for reads in (True, False)
    }


def test_launchers_accept_arrays_and_arrays_that_are_read_in_turn(
    context: Context, kernels: cudadrv.Module
) -> None:
    stream = context.new_stream()
    launcher = kernels.kernel("copied<float>").bind(stream, CONFIG)
    out = stream.zeros(COUNT, np.float32)
    whole = stream.to_device(np.arange(2 * COUNT, dtype="f4"))
    values = [whole, In(whole), In(whole[COUNT:]), whole[:COUNT], In(np.full(COUNT, 7, "f4"))]
    for number, value in enumerate(values * 4):
        launcher(value, out)
        first = (0.0, 0.0, COUNT, 0.0, 7.0)[number % 5]
        assert stream.to_host(out)[0] == first, number


def test_a_kernel_that_may_write_rejects_an_array_that_is_read(
    context: Context, kernels: cudadrv.Module
) -> None:
    stream = context.new_stream()
    x, closed = stream.zeros(COUNT, "f4"), stream.zeros(COUNT, "f4")
    closed.close()
    copied, doubled = kernels.kernel("copied<float>"), kernels.kernel("doubled<float>")
    vectors = kernels.kernel("copied<float4>")
    for _ in range(3):
        copied.launch(stream, CONFIG, In(x), x)
        with pytest.raises(
            ArgumentError, match="only read, but the parameter is a device pointer to float"
        ):
            doubled.launch(stream, CONFIG, In(x))
        with pytest.raises(ArgumentError, match="elements of float64"):
            copied.launch(stream, CONFIG, In(stream.zeros(COUNT, "f8")), x)
        with pytest.raises(ArgumentError, match="C-contiguous"):
            copied.launch(stream, CONFIG, In(stream.zeros((COUNT, 2), "f4")[:, 0]), x)
        with pytest.raises(ArgumentError, match="not a multiple of an element"):
            vectors.launch(stream, CONFIG, In(stream.zeros(5, "f4")), x)
        with pytest.raises(ClosedError):
            copied.launch(stream, CONFIG, In(closed), x)
    prepared = copied.bind(stream, CONFIG).prepare(In(x), stream.zeros(COUNT, "f4"))
    prepared()
    x.close()
    with pytest.raises(ClosedError):
        prepared()
    with pytest.raises(ArgumentTypeError, match="Out: array"):
        cudadrv.Out(stream.zeros(4, "f4"))  # type: ignore[arg-type]  # a host array is expected


def test_its_text_names_the_place_of_the_array(context: Context) -> None:
    array = context.new_stream().zeros(4, "f4")
    assert repr(In(array)) == "In(device array (4,) float32)"
    assert repr(In(np.zeros(4, "f4"))) == "In(host array (4,) float32)"
    assert In(array).array is array
