"""The ways of an argument to a kernel: launches, prepared launches, captures, nodes of graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.errors import CudadrvError

from .facts import Parameter
from .oracle import REJECTED
from .parameters import SLOT_BYTES, Case
from .values import Value

ONE: Final = LaunchConfig(1, 1)
_UNTOUCHED: Final = 0xEE
Outcome: TypeAlias = bytes | str
"""What the kernel found, `REJECTED`, or what went wrong."""


class Slots:
    """Memory of the device, a slot for each kernel that is launched, and one that nobody reads."""

    def __init__(self, stream: cudadrv.Stream, count: int) -> None:
        self.stream, self.spare = stream, count
        self.out = stream.empty((count + 1) * SLOT_BYTES, "u1")
        stream.fill(self.out, _UNTOUCHED)
        self._errors: dict[int, str] = {}

    def attempt(self, slot: int, launch: Callable[[], object]) -> bool:
        """Make a launch for a slot; whether it was accepted."""
        try:
            launch()
        except CudadrvError as error:
            found = f"{type(error).__name__}: {error}"
            # An argument is named; a closed one, and one of another device, name themselves.
            is_named = "argument " in found or not isinstance(error, cudadrv.ArgumentError)
            self._errors[slot] = REJECTED if is_named else f"unnamed: {found}"
        except Exception as error:
            self._errors[slot] = f"raised {error!r}"
        else:
            return True
        return False

    def outcomes(self, parameter: Parameter) -> list[Outcome]:
        """What stands in each slot; a launch that was rejected has written nothing."""
        data = self.stream.to_host(self.out).reshape(-1, SLOT_BYTES)
        found: list[Outcome] = []
        for slot, row in enumerate(data[:-1]):
            is_touched = bool((row != _UNTOUCHED).any())
            if slot in self._errors:
                found.append("written though it raised" if is_touched else self._errors[slot])
            elif (row[parameter.nbytes :] != _UNTOUCHED).any():
                found.append("more bytes than the parameter has")
            else:
                found.append(row[: parameter.nbytes].tobytes())
        return found


Results: TypeAlias = Iterator[tuple[Value, Sequence[Outcome]]]
"""Each value, with an outcome for each launch."""


def _results(values: Sequence[Value], slots: Slots, case: Case, times: int = 1) -> Results:
    outcomes = slots.outcomes(case.parameter)
    for number, value in enumerate(values):
        yield value, outcomes[number * times : (number + 1) * times]


def first_launches(stream: cudadrv.Stream, case: Case, values: Sequence[Value]) -> Results:
    """The first, second and third launch of a launcher of its own, by `bind`."""
    slots = Slots(stream, 3 * len(values))
    for number, value in enumerate(values):
        launcher = case.kernel.bind(stream, ONE, ordered=number % 2 == 0)
        for slot in range(3 * number, 3 * number + 3):
            args = case.args(slots.out, slot, value.value)
            slots.attempt(slot, lambda: launcher(*args))  # noqa: B023
    return _results(values, slots, case, 3)


def one_launcher(stream: cudadrv.Stream, case: Case, values: Sequence[Value]) -> Results:
    """`Kernel.launch` for one value after the other: each has the history of those before it."""
    slots = Slots(stream, len(values))
    for slot, value in enumerate(values):
        args = case.args(slots.out, slot, value.value)
        slots.attempt(slot, lambda: case.kernel.launch(stream, ONE, *args))  # noqa: B023
    return _results(values, slots, case)


def after_another(
    stream: cudadrv.Stream, case: Case, values: Sequence[Value], first: Value
) -> Results:
    """A launcher whose code was made for another value: that must not pack this one wrongly."""
    slots = Slots(stream, len(values))
    launcher: cudadrv.Launcher | None = None
    for slot, value in enumerate(values):
        if launcher is None:
            launcher = case.kernel.bind(stream, ONE)
            for _ in range(4):
                launcher(*case.args(slots.out, slots.spare, first.value))
        args = case.args(slots.out, slot, value.value)
        is_accepted = slots.attempt(slot, partial(launcher, *args))
        if is_accepted and type(value.value) is not type(first.value):
            launcher = None  # its code may be for both from now on
    return _results(values, slots, case)


def after_an_equal(
    stream: cudadrv.Stream, case: Case, values: Sequence[Value], first: Value
) -> Results:
    """A launcher whose last launch had equal arguments, also the slot: it must pack them anew."""
    slots = Slots(stream, len(values))
    for slot, value in enumerate(values):
        launcher = case.kernel.bind(stream, ONE)
        for _ in range(4):
            launcher(*case.args(slots.out, slot, first.value))
        stream.fill(slots.out[slot * SLOT_BYTES : (slot + 1) * SLOT_BYTES], _UNTOUCHED)
        args = case.args(slots.out, slot, value.value)
        slots.attempt(slot, partial(launcher, *args))
    return _results(values, slots, case)


def prepared(stream: cudadrv.Stream, case: Case, values: Sequence[Value]) -> Results:
    """`Launcher.prepare`, and three calls."""
    slots, launcher = Slots(stream, len(values)), case.kernel.bind(stream, ONE)
    for slot, value in enumerate(values):
        args = case.args(slots.out, slot, value.value)
        launches: list[Callable[[], None]] = []
        if slots.attempt(slot, lambda: launches.append(launcher.prepare(*args))):  # noqa: B023
            for _ in range(3):
                launches[0]()
    return _results(values, slots, case)


def prepared_after_another(
    stream: cudadrv.Stream, case: Case, values: Sequence[Value], first: Value
) -> Results:
    """`Launcher.prepare`, each time after it made code for another value."""
    slots, launcher = Slots(stream, len(values)), case.kernel.bind(stream, ONE)
    for slot, value in enumerate(values):
        for _ in range(2):
            launcher.prepare(*case.args(slots.out, slots.spare, first.value))
        args = case.args(slots.out, slot, value.value)
        slots.attempt(slot, lambda: launcher.prepare(*args)())  # noqa: B023
    return _results(values, slots, case)


def captured(stream: cudadrv.Stream, case: Case, values: Sequence[Value]) -> Results:
    """Launches in one capture, in which the wrong ones raise."""
    slots = Slots(stream, len(values))
    with stream.capture() as graph:
        one = case.args(slots.out, slots.spare, good(case.parameter))
        case.kernel.launch(stream, ONE, *one)
        for slot, value in enumerate(values):
            args = case.args(slots.out, slot, value.value)
            slots.attempt(slot, lambda: case.kernel.launch(stream, ONE, *args))  # noqa: B023
    graph.instantiate().launch(stream)
    return _results(values, slots, case)


def nodes(stream: cudadrv.Stream, case: Case, values: Sequence[Value]) -> Results:
    """A node of a graph each."""
    slots, graph = Slots(stream, len(values)), stream.context.new_graph()
    for slot, value in enumerate(values):
        args = case.args(slots.out, slot, value.value)
        slots.attempt(slot, lambda: graph.add_kernel(case.kernel, ONE, *args))  # noqa: B023
    graph.instantiate().launch(stream)
    return _results(values, slots, case)


def updated_nodes(stream: cudadrv.Stream, case: Case, values: Sequence[Value]) -> Results:
    """A node each, which gets the value later."""
    slots, graph = Slots(stream, len(values)), stream.context.new_graph()
    first = case.args(slots.out, slots.spare, good(case.parameter))
    for slot, value in enumerate(values):
        node = graph.add_kernel(case.kernel, ONE, *first)
        args = case.args(slots.out, slot, value.value)
        slots.attempt(slot, lambda: node.update(case.kernel, ONE, *args))  # noqa: B023
    graph.instantiate().launch(stream)
    return _results(values, slots, case)


def updated_executables(stream: cudadrv.Stream, case: Case, values: Sequence[Value]) -> Results:
    """A node each, which gets the value in an executable alone."""
    slots, graph = Slots(stream, len(values)), stream.context.new_graph()
    first = case.args(slots.out, slots.spare, good(case.parameter))
    made = [graph.add_kernel(case.kernel, ONE, *first) for _ in values]
    executable = graph.instantiate()
    for slot, (value, node) in enumerate(zip(values, made, strict=True)):
        args = case.args(slots.out, slot, value.value)
        slots.attempt(
            slot,
            lambda: node.update_in(executable, case.kernel, ONE, *args),  # noqa: B023
        )
    executable.launch(stream)
    return _results(values, slots, case)


def good(parameter: Parameter) -> object:
    """A value that a parameter accepts."""
    if parameter.kind in ("class", "float") and (
        parameter.kind == "class" or parameter.nbytes <= 2
    ):
        return bytes(parameter.nbytes)
    return 0.0 if parameter.kind == "float" else 0


WAYS: Final = (
    first_launches, one_launcher, prepared, captured, nodes, updated_nodes, updated_executables,
)  # fmt: skip
