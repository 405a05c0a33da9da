"""What closing means: the name is taken away, the driver's object goes when nothing needs it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pytest

import cudadrv
from cudadrv import Event
from cudadrv.errors import ClosedError, WrongDeviceError
from cudadrv.texture import CudaArray, Surface, Texture

from .lab import Lab
from .late_kernels import WIDTH, LateKernels, count_from, over

N = 1024


class Thing(Protocol):
    """What can be closed."""

    @property
    def closed(self) -> bool: ...

    def close(self) -> None: ...


def settled(lab: Lab) -> list[str]:
    """What is wrong when everything was dropped."""
    lab.settle()
    wrong = lab.unraisable.take()
    if lab.is_emulated and any(lab.leftovers()):
        wrong.append(f"{lab.leftovers()} bytes are not given back")
    return wrong


def use_what_is_closed(lab: Lab) -> None:
    """Make one of everything on a context, close that while it works, and use all of them."""
    own = cudadrv.Context.create(0)
    kernels = LateKernels(own, lab.kernels[0].cycles)
    stream, default = own.new_stream(), own.default_stream
    array, out = stream.to_device(count_from(1, N)), default.zeros(N, np.int32)
    view = array[5:]
    image = CudaArray(own, (N // WIDTH, WIDTH), np.int32, surface=True)
    surface, texture = Surface(image), Texture(array)
    event, unused = stream.record(), Event(own)
    with stream.capture() as graph:
        kernels.bump(stream, array, 1)
    executable = graph.instantiate()
    prepared = kernels.kernel("bump").bind(stream, over(N)).prepare(array, N, 1, 0)
    launcher = kernels.kernel("read").bind(stream, over(N))
    executable.launch(stream)
    launcher(out, array, N, kernels.cycles)
    other = lab.contexts[0].new_stream()
    elsewhere = other.zeros(N, np.int32)
    own.close()
    uses: dict[str, Callable[[], object]] = {
        "new stream": own.new_stream,
        "default stream": lambda: own.default_stream.synchronize(),
        "synchronise": own.synchronize,
        "bind": own.bind,
        "event of it": lambda: Event(own),
        "load": lambda: LateKernels(own, 0),
        "stream": stream.synchronize,
        "allocate": lambda: stream.empty(N, np.int32),
        "capture": lambda: stream.capture().__enter__(),
        "fill": lambda: stream.fill(array, 1),
        "copy there": lambda: other.copy(elsewhere, array),
        "download": lambda: stream.to_host(view),
        "launch": lambda: kernels.write(stream, array, 1),
        "launcher": lambda: launcher(out, array, N, 0),
        "prepared": prepared,
        "kernel": lambda: kernels.kernel("spin").handle,
        "image": lambda: image.copy_to(stream),
        "surface": lambda: surface.handle,
        "texture": lambda: texture.handle,
        "event": event.synchronize,
        "unused event": lambda: unused.record(other),
        "wait": lambda: other.wait(event),
        "wait for the stream": lambda: other.wait(stream),
        "graph": graph.instantiate,
        "executable": lambda: executable.launch(other),
    }
    for text, use in uses.items():
        with pytest.raises(ClosedError):
            use()
            pytest.fail(f"{text}: no error")
    things: tuple[Thing, ...] = (
        own, stream, array, view, image, surface, texture, event, unused, graph, executable,
        kernels.module,
    )  # fmt: skip
    for thing in things:
        thing.close()
        assert thing.closed, thing
        assert "closed" in repr(thing) or "of nothing" in repr(thing)
    assert (other.to_host(elsewhere) == 0).all()
    other.close()


def test_everything_of_a_closed_context_is_closed_and_its_memory_comes_back(lab: Lab) -> None:
    for _ in range(3):
        use_what_is_closed(lab)
    assert settled(lab) == []


def test_the_address_of_an_array_goes_with_its_context(lab: Lab) -> None:
    own = cudadrv.Context.create(0)
    stream = own.new_stream()
    array = stream.zeros(N, np.int32)
    view, texture = array[5:], Texture(array)
    own.close()
    with lab.contexts[0].new_stream() as other:
        out = other.zeros(N, np.int32)
        uses: tuple[Callable[[], object], ...] = (
            lambda: view.ptr,
            lambda: array.__cuda_array_interface__,
            lambda: lab.kernels[0].read(other, out, array),
            lambda: lab.kernels[0].fetch(other, out, texture),
        )
        for use in uses:
            # In another context it is also memory that lies elsewhere.
            with pytest.raises((ClosedError, WrongDeviceError)):
                use()


def test_a_context_closes_while_its_objects_are_in_a_circle(lab: Lab) -> None:
    def make() -> None:
        own = cudadrv.Context.create(0)
        stream = own.new_stream()
        everything: list[object] = [own, stream, stream.zeros(N, np.int32), stream.record()]
        everything.append(everything)

    for _ in range(5):
        make()
    assert settled(lab) == []


def test_memory_and_stream_in_one_circle_are_both_released(lab: Lab) -> None:
    for order in range(2):
        stream = lab.contexts[0].new_stream()
        circle: list[object] = [stream, stream.zeros(N, np.int32)]
        if order:
            circle.reverse()
        circle.append(circle)
        del circle, stream
    assert settled(lab) == []


def test_kernels_of_a_closed_module_are_closed_and_those_under_way_finish(lab: Lab) -> None:
    context = lab.contexts[0]
    with context.new_stream() as stream:
        kernels = LateKernels(context, lab.kernels[0].cycles)
        x, out = stream.to_device(count_from(3, N)), stream.zeros(N, np.int32)
        launcher = kernels.kernel("bump").bind(stream, over(N))
        prepared = launcher.prepare(x, N, 1, 0)
        with stream.capture() as graph:
            kernels.read(stream, out, x)
        executable = graph.instantiate()
        kernels.bump(stream, x, 10)
        kernels.module.close()
        for use in (
            prepared,
            lambda: launcher(x, N, 1, 0),
            lambda: kernels.bump(stream, x, 1),
            lambda: kernels.kernel("bump").bind(stream, over(N)),
            lambda: kernels.module.kernel("bump"),
        ):
            with pytest.raises(ClosedError):
                use()
        executable.launch(stream)  # it holds the kernels that it needs
        assert np.array_equal(stream.to_host(x), count_from(13, N))
        assert np.array_equal(stream.to_host(out), count_from(13, N))


def test_arrays_of_a_closed_stream_are_used_on_others(lab: Lab) -> None:
    context, kernels = lab.contexts[0], lab.kernels[0]
    first = context.new_stream()
    x, out = first.to_device(count_from(3, N)), first.zeros(N, np.int32)
    kernels.bump(first, x, 4)
    first.close()
    for use in (
        first.synchronize,
        lambda: first.fill(x, 1),
        lambda: first.to_host(x),
        lambda: kernels.bump(first, x, 1),
    ):
        with pytest.raises(ClosedError):
            use()
    with context.new_stream() as second, context.new_stream() as third:
        kernels.bump(second, x, 10)
        kernels.read(third, out, x)
        assert np.array_equal(third.to_host(out), count_from(17, N))
        assert np.array_equal(second.to_host(x), count_from(17, N))
    x.close()
    with pytest.raises(ClosedError):
        _ = x.ptr


def test_all_views_of_a_closed_array_are_closed(lab: Lab) -> None:
    context, kernels = lab.contexts[0], lab.kernels[0]
    with context.new_stream() as stream, context.new_stream() as other:
        out = other.zeros(N, np.int32)
        x = stream.to_device(count_from(3, N))
        views: list[cudadrv.DeviceArray[Any]] = [
            x,
            x[10:20],
            x.reshape(2, -1),
            x.view(np.uint8),
            x[10:20][2:3],
        ]
        texture = Texture(x)
        kernels.read(other, out, x)
        x.close()
        for view in views:
            assert view.closed
            for use in (
                lambda view=view: view.ptr,
                lambda view=view: stream.to_host(view),
                lambda view=view: other.fill(view, 0),
            ):
                with pytest.raises(ClosedError):
                    use()
        with pytest.raises(ClosedError):
            kernels.fetch(stream, out, texture)
        new = stream.empty(N, np.int32)
        stream.fill(new, -1)
        assert np.array_equal(other.to_host(out), count_from(3, N))


def test_views_keep_memory_whose_base_is_dropped(lab: Lab) -> None:
    context, kernels = lab.contexts[0], lab.kernels[0]
    with context.new_stream() as a, context.new_stream() as b:
        x = a.to_device(count_from(3, N))
        view = x[N // 2 :]
        kernels.bump(b, x, 5)
        del x
        gc.collect()
        new = a.empty(N, np.int32)
        a.fill(new, -1)
        assert np.array_equal(a.to_host(view), count_from(8, N)[N // 2 :])


def test_a_closed_graph_holds_nothing_and_its_last_run_finishes(lab: Lab) -> None:
    context, kernels = lab.contexts[0], lab.kernels[0]
    with context.new_stream() as a, context.new_stream() as b:
        x, out = a.to_device(count_from(3, N)), b.zeros(N, np.int32)
        with a.capture() as graph:
            kernels.bump(a, x, 1)
            kernels.read(a, out, x)
        executable = graph.instantiate()
        executable.launch(b)
        del x
        executable.close()
        graph.close()
        new = a.empty(N, np.int32)
        a.fill(new, -1)
        assert np.array_equal(b.to_host(out), count_from(4, N))
        with pytest.raises(ClosedError):
            executable.launch(b)
        del graph, executable, new, out
    del a, b
    assert settled(lab) == []
