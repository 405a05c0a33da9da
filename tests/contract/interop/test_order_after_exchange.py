"""What comes after the stream that a library's exchange functions name, with work done late."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import cudadrv
import ptx
from cudadrv import LaunchConfig, emulator
from cudadrv.interop import Reader, register

from .exchanging_library import Library

SOURCE = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }'


@pytest.fixture
def context() -> Iterator[cudadrv.Context]:
    with emulator.session(order="late"):
        yield cudadrv.cuda_context_for(0)


@pytest.fixture
def library() -> Library:
    return Library()


def launcher_on(stream: cudadrv.Stream) -> cudadrv.Launcher:
    context = stream.context
    assert isinstance(context, cudadrv.Context)
    image = ptx.compile(SOURCE, ptx.CompileOptions(target=context.target))
    return context.load_module(image).kernel("twice").bind(stream, LaunchConfig(1, 4))


def test_a_launch_comes_after_the_stream_on_which_the_library_works(
    context: cudadrv.Context, library: Library
) -> None:
    stream = context.new_stream()
    launcher = launcher_on(stream)
    for value in (5, 6, 7):  # another current stream at each launch
        with context.new_stream() as producer:
            array = producer.zeros(4, "f4")
            producer.fill(array, value)
            library.current = int(producer.handle)
            launcher(library.kind(array))
            stream.synchronize()
            assert producer.to_host(array).tolist() == [2.0 * value] * 4


def test_an_imported_array_comes_after_the_stream_on_which_the_library_works(
    context: cudadrv.Context, library: Library
) -> None:
    stream, producer = context.new_stream(), context.new_stream()
    array = producer.zeros(4, "f4")
    producer.fill(array, 5)
    library.current = int(producer.handle)
    taken = stream.import_array(library.kind(array))
    assert stream.to_host(taken).tolist() == [5.0] * 4


def test_an_imported_array_comes_after_the_stream_that_its_reader_reports(
    context: cudadrv.Context,
) -> None:
    stream, producer = context.new_stream(), context.new_stream()
    requested = []

    class Exporting:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

        def __dlpack__(self, *, stream: int, max_version: tuple[int, int]) -> object:
            requested.append(stream)
            return array.__dlpack__(stream=-1, max_version=max_version)

    register(
        Exporting,
        Reader(lambda _: array.ptr, lambda _: 0, lambda ordinal: int(producer.handle)),
    )
    array = producer.zeros(4, "f4")
    for value in (5, 6):
        producer.fill(array, value)
        taken = stream.import_array(Exporting())
        assert stream.to_host(taken).tolist() == [value] * 4
    assert requested == [-1, -1]


def test_the_legacy_stream_is_waited_for_where_the_library_works_on_it(
    context: cudadrv.Context, library: Library
) -> None:
    default, stream = context.default_stream, context.new_stream()
    array = default.zeros(4, "f4")
    default.synchronize()
    legacy = context.external_stream(0)
    assert library.current == 0
    with legacy.unordered():
        legacy.fill(array, 5)
    taken = stream.import_array(library.kind(array))
    assert stream.to_host(taken).tolist() == [5.0] * 4


def test_a_capture_waits_on_the_host_for_the_stream_on_which_the_library_works(
    context: cudadrv.Context, library: Library
) -> None:
    stream, producer = context.new_stream(), context.new_stream()
    launcher = launcher_on(stream)
    array = producer.zeros(4, "f4")
    producer.fill(array, 5)
    library.current = int(producer.handle)
    with stream.capture() as graph:
        launcher(library.kind(array))
    graph.instantiate().launch(stream)
    stream.synchronize()
    assert producer.to_host(array).tolist() == [10.0] * 4


def test_a_stream_that_its_user_orders_waits_for_no_library(
    context: cudadrv.Context, library: Library
) -> None:
    stream, producer = context.new_stream(), context.new_stream()
    array = producer.zeros(4, "f4")
    producer.synchronize()
    producer.fill(array, 5)
    library.current = int(producer.handle)
    with stream.unordered():
        taken = stream.import_array(library.kind(array))
        assert stream.to_host(taken).tolist() == [0.0] * 4
    producer.synchronize()
