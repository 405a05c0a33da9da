"""The acts that programs are made of: work on the arrays, and what disturbs it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

import cudadrv
from tests.contract.order.late_kernels import WIDTH, count_from

from .world import World, given

NOTHING: Final = -1
"""What memory is filled with that takes the place of another."""


@dataclass(frozen=True)
class Act:
    """One step of a program.

    Attributes:
        text: what it does, in words.
        kind: the group of acts that it belongs to.
        run: does it, to the objects and to the model.
        uses: names of what it needs a reference to. If one of them was closed it raises
            `ClosedError`.
        closes: the name that it closes; that raises nothing.
        drops: the name whose reference it lets go; that raises nothing.
        asks: what else the world must have for it.
    """

    text: str
    kind: str
    run: Callable[[World], None]
    uses: frozenset[str] = frozenset()
    closes: str = ""
    drops: str = ""
    asks: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """What the world must have for it."""
        return (self.uses | self.asks | {self.closes, self.drops}) - {""}


def _of(*names: str) -> frozenset[str]:
    return frozenset(names)


def _writes() -> Iterator[Act]:
    for s in ("A", "B"):

        def write(w: World, s: str = s) -> None:
            value = w.value()
            given(w.kernels).write(w.stream(s), w.arrays["x"], value)
            w.values["x"][:] = count_from(value, w.n)

        def fill(w: World, s: str = s) -> None:
            value = w.value()
            w.stream(s).fill(w.arrays["x"], value)
            w.values["x"][:] = value

        def upload(w: World, s: str = s) -> None:
            host = count_from(w.value(), w.n)
            w.stream(s).copy(w.arrays["x"], host)
            w.values["x"][:] = host
            host[:] = NOTHING  # the caller may change it as soon as the copy returns

        def upload_pinned(w: World, s: str = s) -> None:
            host = w.pinned.pop()
            host[:] = count_from(w.value(), w.n)
            expected = host.copy()
            w.stream(s).copy(w.arrays["x"], host, wait=False)
            w.values["x"][:] = expected
            del host
            gc.collect()
            w.pinned.append(cudadrv.pinned_empty(w.n, np.int32))
            w.pinned[-1][:] = NOTHING

        yield Act(f"write x on {s}", "write", write, _of("x", s, "module"))
        yield Act(f"fill x on {s}", "write", fill, _of("x", s))
        yield Act(f"upload to x on {s}", "write", upload, _of("x", s))
        yield Act(
            f"upload to x on {s} from a pinned array, dropped at once",
            "write",
            upload_pinned,
            _of("x", s),
            asks=_of("pinned"),
        )

    def fill_view(w: World) -> None:
        value = w.value()
        w.stream("B").fill(w.arrays["view"], value)
        w.values["x"][w.n // 4 : w.n // 2] = value

    def prepared(w: World) -> None:
        w.run_prepared()

    yield Act("fill the view on B", "write", fill_view, _of("view", "B"))
    yield Act("call the prepared launch on B", "write", prepared, _of("prepared"))


def _reads() -> Iterator[Act]:
    for s in ("A", "B", "C", "default"):

        def read(w: World, s: str = s) -> None:
            out = w.out()
            given(w.kernels).read(w.stream(s), out, w.arrays["x"])
            w.saw(f"x read on {s}", out, w.values["x"])

        uses = _of("x", "module", *(() if s == "default" else s))
        yield Act(f"read x on {s}", "read", read, uses)
    for s in ("A", "B", "C"):

        def only_read(w: World, s: str = s) -> None:
            out = w.out()
            given(w.kernels).read(w.stream(s), out, cudadrv.In(w.arrays["x"]))
            w.saw(f"x read by In on {s}", out, w.values["x"])

        yield Act(f"read x by In on {s}", "read", only_read, _of("x", s, "module"))

    def read_view(w: World) -> None:
        out = w.out()[: w.arrays["view"].size]
        given(w.kernels).read(w.stream("B"), out, w.arrays["view"])
        w.saw("the view read on B", out, w.values["x"][w.n // 4 : w.n // 2])

    yield Act("read the view on B", "read", read_view, _of("view", "B", "module"))
    for s in ("A", "B"):

        def fetch(w: World, s: str = s) -> None:
            out = w.out()
            given(w.kernels).fetch(w.stream(s), out, given(w.texture))
            w.saw(f"the texture read on {s}", out, w.values["x"])

        def download(w: World, s: str = s) -> None:
            host = w.stream(s).to_host(w.arrays["x"])
            w.saw_on_host(f"x downloaded on {s}", host, w.values["x"])

        yield Act(f"read the texture on {s}", "read", fetch, _of("texture", s, "module"))
        yield Act(f"download x on {s}", "read", download, _of("x", s))

    def download_pinned(w: World) -> None:
        stream, host, seen = w.stream("B"), w.pinned.pop(), np.zeros(w.n, np.int32)
        host[:] = NOTHING
        stream.to_host(w.arrays["x"], host, wait=False)
        stream.call_on_host(np.copyto, seen, host)
        w.saw_on_host("x downloaded on B without waiting", seen, w.values["x"])

    yield Act(
        "download x on B to a pinned array without waiting, dropped at once",
        "read",
        download_pinned,
        _of("x", "B"),
        asks=_of("pinned"),
    )


def _copies() -> Iterator[Act]:
    for s, to, of in (
        ("A", "x", "y"), ("B", "x", "y"), ("A", "y", "x"), ("B", "y", "x"), ("C", "y", "x"),
    ):  # fmt: skip

        def copy(w: World, s: str = s, to: str = to, of: str = of) -> None:
            w.stream(s).copy(w.arrays[to], w.arrays[of])
            w.values[to][:] = w.values[of]

        yield Act(f"copy {of} to {to} on {s}", "copy", copy, _of("x", "y", s))
    for s, to, of in (("D", "far", "x"), ("B", "far", "x"), ("D", "x", "far"), ("A", "x", "far")):

        def peer(w: World, s: str = s, to: str = to, of: str = of) -> None:
            w.streams[s].copy(w.arrays[to], w.arrays[of])
            w.values[to][:] = w.values[of]

        uses = _of("x", "far", s)
        yield Act(
            f"copy {of} to {to} between the devices on {s}", "copy", peer, uses, asks=_of("D")
        )


def _images() -> Iterator[Act]:
    for s in ("A", "B"):

        def paint(w: World, s: str = s) -> None:
            value = w.value()
            given(w.kernels).paint(w.stream(s), given(w.surface), w.n, value)
            w.values["image"][:] = count_from(value, w.n)

        def copy_out(w: World, s: str = s) -> None:
            out = w.out()
            given(w.image).copy_to(w.stream(s), out.reshape(-1, WIDTH))
            w.saw(f"the image copied on {s}", out, w.values["image"])

        yield Act(f"paint the image on {s}", "image", paint, _of("surface", s, "module"))
        yield Act(f"copy the image out on {s}", "image", copy_out, _of("image", s))

    def copy_x_in(w: World) -> None:
        given(w.image).copy_from(w.stream("B"), w.arrays["x"].reshape(-1, WIDTH))
        w.values["image"][:] = w.values["x"]

    def copy_to_x(w: World) -> None:
        given(w.image).copy_to(w.stream("B"), w.arrays["x"].reshape(-1, WIDTH))
        w.values["x"][:] = w.values["image"]

    yield Act("copy x to the image on B", "image", copy_x_in, _of("image", "x", "B"))
    yield Act("copy the image to x on B", "image", copy_to_x, _of("image", "x", "B"))


def _graphs() -> Iterator[Act]:
    for s in ("A", "B"):

        def launch(w: World, s: str = s) -> None:
            w.replay(s)

        yield Act(f"launch the graph on {s}", "graph", launch, _of("exec", s))

    def capture(w: World) -> None:
        w.exec = w.capture("B", "x").instantiate()
        w.swap_replay()
        w.replay("A")
        w.replay("B")

    def throw_away(w: World) -> None:
        former = w.exec
        graph = w.capture("A", "x")
        w.exec = graph.instantiate()
        replay = w.swap_replay()
        w.replay("B")
        w.swap_replay(replay)
        w.exec = former

    def update(w: World) -> None:
        with w.capture("A", "y") as graph:
            given(w.exec).update(graph)
        w.swap_replay()

    def own_memory(w: World) -> None:
        stream, value, out = w.stream("B"), w.value(), w.out()
        with stream.capture() as graph:
            scratch = stream.empty(w.n, np.int32)
            given(w.kernels).write(stream, scratch, value)
            stream.copy(out, scratch)
            del scratch
        graph.instantiate().launch(stream)
        w.saw("a graph with memory of its own", out, count_from(value, w.n))

    x = _of("x", "A", "B", "module")
    yield Act("capture x on B, launch on A and B", "graph", capture, x, asks=_of("exec"))
    yield Act("launch a graph of x on B, dropped at once", "graph", throw_away, x)
    yield Act("update the graph to y", "graph", update, _of("exec", "y", "A", "module"))
    yield Act("launch a graph with its own memory on B", "graph", own_memory, _of("B", "module"))


def _new(w: World, s: str) -> None:
    """New memory on a stream takes the place of what was freed, if anything does."""
    stream = w.stream(s)
    for number in (1, 2):
        value = w.value()
        array = stream.empty(w.n, np.int32)
        stream.fill(array, value)
        w.saw(f"new array {number} of {s}", array, np.full(w.n, value, np.int32))


def _memory() -> Iterator[Act]:
    for s in ("A", "B", "C"):

        def new(w: World, s: str = s) -> None:
            _new(w, s)

        def make_way(w: World, s: str = s) -> None:
            w.drop("x")
            _new(w, s)

        yield Act(f"new arrays on {s}", "memory", new, _of(s))
        yield Act(f"drop x, new arrays on {s}", "memory", make_way, _of(s), drops="x")

    def close_and_make_way(w: World) -> None:
        w.close("x")
        _new(w, "A")

    def short_lived(w: World) -> None:
        array = w.stream("B").empty(w.n, np.int32)
        w.stream("B").fill(array, NOTHING)

    def slab(w: World) -> None:
        arena, a, b, value, out = given(w.arena), w.stream("A"), w.stream("B"), w.value(), w.out()
        bucket, slab = arena.alloc(a, w.n)
        given(w.kernels).write(a, slab, value)
        given(w.kernels).read(b, out, slab)
        arena.release(bucket, slab)
        bucket, slab = arena.alloc(a, w.n)
        a.fill(slab, NOTHING)
        arena.release(bucket, slab)
        w.saw("the slab read on B", out, count_from(value, w.n))

    def block(w: World) -> None:
        allocator, a, value, out = given(w.allocator), w.stream("A"), w.value(), w.out()
        address = allocator.allocate(4 * w.n)
        try:
            given(w.kernels).write_at(a, address, w.n, value)
            given(w.kernels).read(a, out, address)
        finally:
            allocator.deallocate(address, 4 * w.n)
        again = allocator.allocate(4 * w.n)
        given(w.kernels).write_at(a, again, w.n, NOTHING)
        allocator.deallocate(again, 4 * w.n)
        w.saw("the block read on A", out, count_from(value, w.n))

    yield Act("close x, new arrays on A", "memory", close_and_make_way, _of("A"), closes="x")
    yield Act("an array on B for a moment", "memory", short_lived, _of("B"))
    yield Act(
        "a slab written on A, read on B, released and reused",
        "memory",
        slab,
        _of("arena", "A", "B", "module"),
    )
    yield Act(
        "a block of the allocator used, given back and reused",
        "memory",
        block,
        _of("allocator", "A", "module"),
    )


def _points() -> Iterator[Act]:
    for s, other in (("A", "B"), ("B", "A")):

        def wait(w: World, s: str = s, other: str = other) -> None:
            w.stream(s).wait(w.stream(other).record(timing=False))

        yield Act(f"let {s} wait for an event of {other}", "point", wait, _of(s, other))

    def record(w: World) -> None:
        w.events["event"].record(w.stream("B"))

    def wait_for_event(w: World) -> None:
        w.stream("B").wait(w.events["event"])

    def call(w: World) -> None:
        w.call_on_host("A")

    def collect(_: World) -> None:
        gc.collect()

    yield Act("record the event on B", "point", record, _of("event", "B"))
    yield Act("let B wait for the event", "point", wait_for_event, _of("event", "B"))
    yield Act("call a host function on A", "point", call, _of("A"))

    def make_circle(w: World) -> None:
        w.circle = w

    yield Act("collect garbage", "point", collect)
    yield Act("leave everything in a circle, for a collection", "point", make_circle)


_CLOSED: Final = (
    "x", "y", "view", "A", "B", "C", "D", "far", "context", "module", "graph", "exec", "texture",
    "image", "surface", "event",
)  # fmt: skip
_DROPPED: Final = (
    "x", "y", "view", "A", "B", "D", "far", "context", "module", "graph", "exec", "texture",
    "image", "surface", "event", "prepared", "arena", "allocator",
)  # fmt: skip


def _ends() -> Iterator[Act]:
    for name in _CLOSED:

        def close(w: World, name: str = name) -> None:
            w.close(name)

        yield Act(f"close {name}", "close", close, closes=name)
    for name in _DROPPED:

        def drop(w: World, name: str = name) -> None:
            w.drop(name)

        # Kernels that others launch too keep the streams that they were launched on.
        asks = _of("own kernels") if name in ("A", "B", "x") else _of()
        yield Act(f"drop {name}", "drop", drop, drops=name, asks=asks)


ACTS: Final = (
    *_writes(), *_reads(), *_copies(), *_images(), *_graphs(), *_memory(), *_points(), *_ends(),
)  # fmt: skip
KINDS: Final = tuple(dict.fromkeys(act.kind for act in ACTS))
