"""What a program works on: the objects, and a model of the values that they must have.

The model does every act at once, in program order, by NumPy. The library promises the same, for all
streams, also if objects were closed or dropped meanwhile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

import cudadrv
from cudadrv import DeviceArena
from cudadrv.errors import ClosedError
from cudadrv.texture import CudaArray, Surface, Texture
from tests.contract.order.lab import Lab
from tests.contract.order.late_kernels import WIDTH, HostInts, Ints, LateKernels, count_from, over

_T = TypeVar("_T")
_OUTS: Final = 5
_PREPARED_ADDS: Final = 3

# What is closed with a thing.
CLOSED_WITH: Final = {
    "x": ("view", "texture", "prepared"),
    "image": ("surface",),
    "module": ("prepared",),
    "B": ("prepared",),
    "context": (
        "A", "B", "C", "x", "view", "y", "texture", "prepared", "image", "surface", "module",
        "graph", "exec", "event",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Scene:
    """How things stand when the first act begins.

    Attributes:
        text: the same in words.
        n: elements of each array.
        begin: what is queued then.
        names: what it takes.
    """

    text: str
    n: int
    begin: Callable[[World], None]
    names: frozenset[str] = frozenset()


class World:
    """The objects of one program, by name, and the model.

    The streams are A, B and C, and D of the second device. x comes from A, y from B; `view` is the
    middle of x, `far` an array of D. What is read goes to arrays of C, each of which is compared at
    the end.

    Attributes:
        values: what the memory of a name must hold; that of x outlives the name, since a graph or
            a texture may still have it.
    """

    def __init__(self, lab: Lab, scene: Scene, names: frozenset[str]) -> None:
        self.lab = lab
        self.n = scene.n
        self.names = names
        self.context: cudadrv.Context | None = (
            cudadrv.Context.create(0) if "context" in names else lab.contexts[0]
        )
        self.is_own = "context" in names
        self.lost = False
        self.values: dict[str, HostInts] = {}
        self.arrays: dict[str, Ints] = {}
        self.streams: dict[str, cudadrv.Stream] = {}
        self.events: dict[str, cudadrv.Event] = {}
        self.pinned: list[HostInts] = []
        self.calls: list[int] = []
        self.texture: Texture | None = None
        self.image: CudaArray[np.int32] | None = None
        self.surface: Surface | None = None
        self.graph: cudadrv.Graph | None = None
        self.exec: cudadrv.GraphExec | None = None
        self.kernels: LateKernels | None = None
        self.prepared: cudadrv.launch.PreparedLaunch | None = None
        self.arena: DeviceArena[np.int32] | None = None
        self.allocator: cudadrv.memory.CudaAllocator | None = None
        self.circle: World | None = None
        # What a replay of the executable does.
        self._replay: list[Callable[[], None]] = []
        self._outs: list[Ints] = []
        self._seen: list[tuple[str, Ints, HostInts]] = []
        self._seen_on_host: list[tuple[str, HostInts, HostInts]] = []
        self._calls_expected: list[int] = []
        self._next_value = 1000
        self._make()
        scene.begin(self)

    # What the acts take

    def stream(self, name: str) -> cudadrv.Stream:
        """A stream by its letter; "default" is the context's own."""
        if name == "default":
            return _public(self.arrays["x"].context).default_stream
        return self.streams[name]

    def value(self) -> int:
        """A number that no other act writes."""
        self._next_value += 100_000
        return self._next_value

    def out(self) -> Ints:
        """An array of C to read into."""
        return self._outs.pop()

    def saw(self, text: str, out: Ints, expected: HostInts) -> None:
        """`out` must have this at the end."""
        self._seen.append((text, out, expected.copy()))

    def saw_on_host(self, text: str, out: HostInts, expected: HostInts) -> None:
        """A host array must have this at the end."""
        self._seen_on_host.append((text, out, expected.copy()))

    def call_on_host(self, stream: str) -> None:
        """Queue a call that leaves a number."""
        number = self.value()
        self.stream(stream).call_on_host(self.calls.append, number)
        self._calls_expected.append(number)

    # What graphs do

    def capture(self, stream: str, name: str, out_name: str = "replayed") -> cudadrv.Graph:
        """A graph that adds to an array and reads it; its model is kept by `adopt`."""
        kernels, array, by = _given(self.kernels), self.arrays[name], 7 + len(name)
        with self.stream(stream).capture() as graph:
            kernels.bump(self.stream(stream), array, by)
            kernels.read(self.stream(stream), self.arrays[out_name], array)

        values = self.values  # alone: with the world in it, this would be a circle

        def replay() -> None:
            values[name] += by
            values[out_name][:] = values[name]

        self._captured = replay
        return graph

    def swap_replay(
        self, replay: list[Callable[[], None]] | None = None
    ) -> list[Callable[[], None]]:
        """The executable does what was captured last, or `replay`; what it did until now."""
        former, self._replay = self._replay, [self._captured] if replay is None else replay
        return former

    def replay(self, stream: str) -> None:
        """Launch the executable."""
        _given(self.exec).launch(self.stream(stream))
        for each in self._replay:
            each()

    def run_prepared(self) -> None:
        """Call the prepared launch, which adds to x on B."""
        _given(self.prepared)()
        self.values["x"] += _PREPARED_ADDS

    # The end

    def drop(self, name: str) -> None:
        """Let the program's reference go."""
        for kept in (self.arrays, self.streams, self.events):
            kept.pop(name, None)
        if name == "module":
            self.kernels = None
        elif name in ("context", "texture", "image", "surface", "graph", "exec", "prepared",
                      "arena", "allocator"):  # fmt: skip
            setattr(self, name, None)

    def close(self, name: str) -> None:
        """Call the object's `close`."""
        for kept in (self.arrays, self.streams, self.events):
            if name in kept:
                kept[name].close()
                return
        if name == "module":
            _given(self.kernels).module.close()
        else:
            getattr(self, name).close()
        self.lost |= name == "context"

    def differences(self) -> list[str]:
        """Wait for everything, and compare: what has other values than the model, in words."""
        for context in {id(c): c for c in (*self.lab.contexts, *self._own_context())}.values():
            context.synchronize()
        if self.calls != self._calls_expected and not self.lost:
            return [f"host functions gave {self.calls}, not {self._calls_expected}"]
        return list(self._wrong())

    def _own_context(self) -> Iterator[cudadrv.Context]:
        if self.is_own and not self.lost:
            yield self.streams["C"].context

    def _wrong(self) -> Iterator[str]:
        compared: list[tuple[str, Ints, HostInts]] = []
        if not self.lost:
            compared += self._seen
            compared += [
                (f"{name} at the end", array, self.values[name])
                for name, array in self.arrays.items()
                if name in self.values and name != "far" and not array.closed
            ]
        if "far" in self.arrays and not self.arrays["far"].closed:
            compared.append(("far at the end", self.arrays["far"], self.values["far"]))
        for text, array, expected in compared:
            with _public(array.context).new_stream() as stream:
                yield from _difference(text, stream.to_host(array), expected)
        for text, found, expected in () if self.lost else self._seen_on_host:
            yield from _difference(text, found, expected)
        if self.image is not None and not self.image.closed and not self.lost:
            with _public(self.image.context).new_stream() as stream:
                texels = self.image.copy_to(stream).reshape(-1)
            yield from _difference("the image at the end", texels, self.values["image"])

    # The beginning

    def _make(self) -> None:
        lab, n, names = self.lab, self.n, self.names
        context = _given(self.context)
        for letter in "ABC":
            self.streams[letter] = context.new_stream()
        a, b, c = (self.streams[letter] for letter in "ABC")
        self.kernels = lab.kernels[0]
        # With kernels of its own, a program has the last reference to its streams.
        if self.is_own or names & {"own kernels", "module"}:
            self.kernels = LateKernels(context, self.kernels.cycles)
        for name, stream in (("x", a), ("y", b), ("replayed", c)):
            self.values[name] = count_from(self.value(), n)
            self.arrays[name] = stream.to_device(self.values[name])
        self._outs += [c.zeros(n, np.int32) for _ in range(_OUTS)]
        if "view" in names:
            self.arrays["view"] = self.arrays["x"][n // 4 : n // 2]
        if "texture" in names:
            self.texture = Texture(self.arrays["x"])
        if names & {"image", "surface"}:
            self._make_image()
        if names & {"far", "D"}:
            self._make_far()
        if names & {"graph", "exec"}:
            self.graph = self.capture("A", "x")
            self.exec = self.graph.instantiate()
            self.swap_replay()
        if "prepared" in names:
            launcher = self.kernels.kernel("bump").bind(b, over(n))
            self.prepared = launcher.prepare(
                self.arrays["x"], n, _PREPARED_ADDS, self.kernels.cycles
            )
        if "arena" in names:
            self.arena = DeviceArena(np.int32)
        if "allocator" in names:
            self.allocator = cudadrv.memory.CudaAllocator(a)
        if "pinned" in names:
            self.pinned += [cudadrv.pinned_empty(n, np.int32) for _ in range(4)]
        if "event" in names:
            self.events["event"] = a.record(timing=False)
        for stream in self.streams.values():
            stream.synchronize()

    def _make_image(self) -> None:
        texels = count_from(self.value(), self.n)
        self.values["image"] = texels
        self.image = CudaArray.from_host(self.streams["A"], texels.reshape(-1, WIDTH), surface=True)
        self.surface = Surface(self.image)

    def _make_far(self) -> None:
        self.streams["D"] = self.lab.contexts[1].new_stream()
        self.values["far"] = count_from(self.value(), self.n)
        self.arrays["far"] = self.streams["D"].to_device(self.values["far"])


def _given(thing: _T | None) -> _T:
    """What the program's legality says is there."""
    assert thing is not None
    return thing


given: Final = _given


def _difference(text: str, found: HostInts, expected: HostInts) -> Iterator[str]:
    wrong = np.flatnonzero(found != expected)
    if wrong.size:
        at = int(wrong[0])
        yield (
            f"{text}: {wrong.size} of {expected.size} wrong, at {at} {int(found[at])} "
            f"instead of {int(expected[at])}"
        )


def refused(act: Callable[[World], None], world: World) -> str:
    """What is wrong with an act that must raise `ClosedError`; "" if it does."""
    with contextlib.suppress(ClosedError):
        act(world)
        return "no ClosedError"
    return ""


def _public(context: object) -> cudadrv.Context:
    """What an array calls its context, which makes streams."""
    assert isinstance(context, cudadrv.Context)
    return context
