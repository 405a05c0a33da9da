"""A state machine over contexts, streams, arrays, events, graphs, modules and pinned arrays.

The model has a NumPy array for each memory, views as NumPy's own, and for each object whether it
was closed. What uses something closed must raise `ClosedError` and change nothing.

With `--threads N`, as many threads each run a machine of their own, on the same devices.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import itertools
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, Phase, Verbosity, seed as with_seed, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import cudadrv
from cudadrv.errors import ClosedError
from tests.contract.order.lab import Lab
from tests.contract.order.late_kernels import HostInts, Ints, LateKernels, count_from

from .report import Report

N = 1024
_EXAMPLES = 100
_EXAMPLES_IN_THREADS = 10
_DEADLOCK_S = 600.0
_MOST = 6
_MOST_CONTEXTS = 2
_index = st.integers(0, 1 << 16)
_value = st.integers(-1_000_000, 1_000_000)


@dataclass
class Life:
    """Whether something was closed; what is under it says so too."""

    under: tuple[Life, ...] = ()
    ended: bool = False

    @property
    def closed(self) -> bool:
        """Whether it, or what it is of, was closed."""
        return self.ended or any(life.closed for life in self.under)


@dataclass
class AContext:
    """A context, its late kernels, and whether it is the machine's own."""

    real: cudadrv.Context
    kernels: LateKernels
    is_own: bool
    life: Life = field(default_factory=Life)
    module: Life = field(default_factory=Life)


@dataclass
class AStream:
    """A stream."""

    real: cudadrv.Stream
    of: AContext
    life: Life


@dataclass
class AnArray:
    """An array or a view, with the values that it must have."""

    real: Ints
    values: HostInts
    of: AContext
    life: Life
    base: Life | None = None  # of the array that a view is of; a view of a view has the same


@dataclass
class AGraph:
    """An executable, and what a replay does to the values."""

    real: cudadrv.GraphExec
    replay: Callable[[], None]
    of: AContext
    life: Life


@dataclass
class AnEvent:
    """An event."""

    real: cudadrv.Event
    of: AContext
    life: Life


class Living(Protocol):
    """What can be closed."""

    @property
    def life(self) -> Life: ...


_LivingT = TypeVar("_LivingT", bound=Living)


def picked(among: Sequence[_LivingT], index: int) -> _LivingT:
    """One of them; mostly one that is open."""
    alive = [each for each in among if not each.life.closed]
    return alive[index % len(alive)] if alive and index % 7 else among[index % len(among)]


class OrderMachine(RuleBasedStateMachine):
    """Everything that the rules have made and not dropped.

    Args:
        lab: where the machine runs.
        is_alone: whether no other machine runs there. Only then each run looks for what it left.
    """

    def __init__(self, lab: Lab, *, is_alone: bool = True) -> None:
        super().__init__()
        self.lab = lab
        self.is_alone = is_alone
        if is_alone:
            lab.settle()
            lab.forgive()
        self.contexts = [AContext(lab.contexts[0], lab.kernels[0], False)]
        self.streams: list[AStream] = []
        self.arrays: list[AnArray] = []
        self.graphs: list[AGraph] = []
        self.events: list[AnEvent] = []
        self.later: list[tuple[HostInts, HostInts, cudadrv.Event, AContext]] = []
        self._make_stream(self.contexts[0])
        self._make_array(self.streams[0], 0)

    def teardown(self) -> None:
        """Compare what is left, drop everything, and ask for what must not be left."""
        try:
            self.check_all()
        finally:
            for kept in (self.contexts, self.streams, self.arrays, self.graphs, self.events,
                         self.later):  # fmt: skip
                kept.clear()
            if self.is_alone:
                self.require_nothing_left()

    def require_nothing_left(self) -> None:
        """Wait for all work; the run left no memory and no error of a finalizer."""
        try:
            self.lab.settle()
        except cudadrv.CudaError:
            self.lab.renew()
            raise
        assert self.lab.unraisable.take() == []
        if self.lab.is_emulated:
            assert not any(self.lab.leftovers())

    def attempt(self, act: Callable[[], object], *lives: Life) -> bool:
        """Act; whether it was done. It must be refused just if one of the lives has ended."""
        expected = any(life.closed for life in lives)
        try:
            act()
        except ClosedError:
            assert expected, "ClosedError without reason"
            return False
        assert not expected, "no ClosedError"
        return True

    def stream_of(self, index: int, of: AContext) -> AStream:
        """A stream of a context; a new one if it has none."""
        found = [stream for stream in self.streams if stream.of is of]
        return picked(found, index) if found else self._make_stream(of)

    def _make_stream(self, of: AContext) -> AStream:
        stream = AStream(of.real.new_stream(), of, Life((of.life,)))
        self.streams.append(stream)
        return stream

    def _make_array(self, stream: AStream, value: int) -> None:
        values = count_from(value, N)
        real = stream.real.to_device(values)
        self.arrays.append(AnArray(real, values.copy(), stream.of, Life((stream.of.life,))))

    # Making

    @precondition(lambda self: len(self.contexts) < _MOST_CONTEXTS)
    @rule()
    def new_context(self) -> None:
        real = cudadrv.Context.create(0)
        life = Life()
        kernels = LateKernels(real, self.lab.kernels[0].cycles)
        self.contexts.append(AContext(real, kernels, True, life, Life((life,))))

    @precondition(lambda self: len(self.streams) < _MOST)
    @rule(index=_index)
    def new_stream(self, index: int) -> None:
        of = self.contexts[index % len(self.contexts)]
        if of.life.closed:
            self.attempt(of.real.new_stream, of.life)
        else:
            self._make_stream(of)

    @precondition(lambda self: self.streams and len(self.arrays) < _MOST)
    @rule(index=_index, value=_value)
    def new_array(self, index: int, value: int) -> None:
        stream = picked(self.streams, index)
        if stream.life.closed:
            self.attempt(lambda: stream.real.empty(N, np.int32), stream.life)
        else:
            self._make_array(stream, value)

    @precondition(lambda self: self.arrays and len(self.arrays) < _MOST)
    @rule(index=_index, start=st.integers(0, N), stop=st.integers(0, N))
    def new_view(self, index: int, start: int, stop: int) -> None:
        base = picked(self.arrays, index)
        if not base.life.closed:
            start, stop = sorted((start % base.real.size, stop % base.real.size))
            start, stop = start // 64 * 64, (stop // 64 + 1) * 64
            stop = min(stop, base.real.size)
            of = base.base or base.life
            real, values = base.real[start:stop], base.values[start:stop]
            self.arrays.append(AnArray(real, values, base.of, Life((of,)), of))

    @precondition(lambda self: self.streams and len(self.events) < _MOST)
    @rule(index=_index)
    def new_event(self, index: int) -> None:
        stream = picked(self.streams, index)
        made: list[cudadrv.Event] = []
        if self.attempt(lambda: made.append(stream.real.record(timing=False)), stream.life):
            self.events.append(AnEvent(made[0], stream.of, Life((stream.of.life,))))

    # Work

    @precondition(lambda self: self.arrays)
    @rule(index=_index, on=_index, value=_value)
    def fill(self, index: int, on: int, value: int) -> None:
        array = picked(self.arrays, index)
        if not array.of.life.closed:
            stream = self.stream_of(on, array.of)
            if self.attempt(lambda: stream.real.fill(array.real, value), stream.life, array.life):
                array.values[:] = value

    @precondition(lambda self: self.arrays)
    @rule(index=_index, on=_index, value=_value, writes=st.booleans())
    def launch(self, index: int, on: int, value: int, writes: bool) -> None:
        array = picked(self.arrays, index)
        of = array.of
        if of.life.closed:
            return
        stream = self.stream_of(on, of)
        work = of.kernels.write if writes else of.kernels.bump
        if self.attempt(
            lambda: work(stream.real, array.real, value), stream.life, array.life, of.module
        ):
            if writes:
                array.values[:] = count_from(value, array.values.size)
            else:
                array.values[:] += np.int32(value)

    @precondition(lambda self: self.arrays)
    @rule(to=_index, of=_index, on=_index)
    def copy(self, to: int, of: int, on: int) -> None:
        target, source = picked(self.arrays, to), picked(self.arrays, of)
        n = min(target.values.size, source.values.size)
        overlap = np.shares_memory(target.values, source.values)
        if overlap or target.of is not source.of or target.of.life.closed:
            return
        stream = self.stream_of(on, target.of)
        if self.attempt(
            lambda: stream.real.copy(target.real[:n], source.real[:n]),
            stream.life,
            target.life,
            source.life,
        ):
            target.values[:n] = source.values[:n]

    @precondition(lambda self: self.arrays)
    @rule(index=_index, on=_index, value=_value, is_pinned=st.booleans())
    def upload(self, index: int, on: int, value: int, is_pinned: bool) -> None:
        array = picked(self.arrays, index)
        if array.of.life.closed:
            return
        stream, n = self.stream_of(on, array.of), array.values.size
        host = cudadrv.pinned_empty(n, np.int32) if is_pinned else np.empty(n, np.int32)
        host[:] = count_from(value, n)
        if self.attempt(
            lambda: stream.real.copy(array.real, host, wait=False), stream.life, array.life
        ):
            array.values[:] = count_from(value, n)

    @precondition(lambda self: self.arrays)
    @rule(index=_index, on=_index, is_pinned=st.booleans())
    def download(self, index: int, on: int, is_pinned: bool) -> None:
        array = picked(self.arrays, index)
        if array.of.life.closed:
            return
        stream, n = self.stream_of(on, array.of), array.values.size
        out = cudadrv.pinned_empty(n, np.int32) if is_pinned else np.empty(n, np.int32)
        if self.attempt(
            lambda: stream.real.to_host(array.real, out, wait=not is_pinned),
            stream.life,
            array.life,
        ):
            if is_pinned:
                # Not the context: the driver rejects that while another machine captures.
                done = stream.real.record(timing=False)
                self.later.append((out, array.values.copy(), done, array.of))
            else:
                assert np.array_equal(out, array.values)

    @precondition(lambda self: self.events and self.streams)
    @rule(index=_index, on=_index, records=st.booleans())
    def use_event(self, index: int, on: int, records: bool) -> None:
        event = picked(self.events, index)
        if event.of.life.closed:
            self.attempt(event.real.synchronize, event.life)
            return
        stream = self.stream_of(on, event.of)
        if records:
            self.attempt(lambda: event.real.record(stream.real), event.life, stream.life)
        else:
            self.attempt(lambda: stream.real.wait(event.real), event.life, stream.life)

    @precondition(lambda self: self.arrays and len(self.graphs) < _MOST)
    @rule(index=_index, on=_index, by=st.integers(1, 9), value=_value)
    def capture(self, index: int, on: int, by: int, value: int) -> None:
        array = picked(self.arrays, index)
        of = array.of
        if of.life.closed or of.module.closed:
            return
        stream, values, made = self.stream_of(on, of), array.values, list[cudadrv.GraphExec]()
        half = values[: values.size // 2]

        def record() -> None:
            with stream.real.capture() as graph:
                of.kernels.bump(stream.real, array.real, by)
                stream.real.fill(array.real[: half.size], value)
            made.append(graph.instantiate())

        def replay() -> None:
            values[:] += np.int32(by)
            half[:] = value

        if self.attempt(record, stream.life, array.life):
            self.graphs.append(AGraph(made[0], replay, of, Life((of.life,))))

    @precondition(lambda self: self.graphs)
    @rule(index=_index, on=_index)
    def replay(self, index: int, on: int) -> None:
        graph = picked(self.graphs, index)
        if graph.of.life.closed:
            return
        stream = self.stream_of(on, graph.of)
        if self.attempt(lambda: graph.real.launch(stream.real), graph.life, stream.life):
            graph.replay()

    # Ends

    @precondition(lambda self: self.streams)
    @rule(index=_index)
    def close_stream(self, index: int) -> None:
        stream = picked(self.streams, index)
        stream.real.close()
        stream.life.ended = True

    @precondition(lambda self: self.arrays)
    @rule(index=_index)
    def close_array(self, index: int) -> None:
        array = picked(self.arrays, index)
        array.real.close()
        array.life.ended = True

    @precondition(lambda self: self.graphs)
    @rule(index=_index)
    def close_graph(self, index: int) -> None:
        graph = picked(self.graphs, index)
        graph.real.close()
        graph.life.ended = True

    @precondition(lambda self: self.events)
    @rule(index=_index)
    def close_event(self, index: int) -> None:
        event = picked(self.events, index)
        event.real.close()
        event.life.ended = True

    @precondition(lambda self: len(self.contexts) > 1)
    @rule(only_module=st.booleans())
    def close_context(self, only_module: bool) -> None:
        of = self.contexts[-1]
        if only_module:
            of.kernels.module.close()
            of.module.ended = True
        else:
            of.real.close()
            of.life.ended = True

    @rule(index=_index, kind=st.sampled_from(["contexts", "streams", "arrays", "graphs", "events"]))
    def drop(self, index: int, kind: str) -> None:
        kept: list[object] = getattr(self, kind)
        first = 1 if kind == "contexts" else 0  # the primary one stays
        if len(kept) > first:
            del kept[first + index % (len(kept) - first)]

    @rule()
    def collect(self) -> None:
        gc.collect()

    # Checks

    @rule()
    def check_all(self) -> None:
        """Everything, on new streams, which must come after what there was."""
        for array in self.arrays:
            if not array.life.closed:
                context = array.real.context
                assert isinstance(context, cudadrv.Context)
                with context.new_stream() as stream:
                    assert np.array_equal(stream.to_host(array.real), array.values)
        for out, expected, done, of in self.later:
            if not of.life.closed:
                done.synchronize()
                assert np.array_equal(out, expected)
        self.later.clear()

    @invariant()
    def closed_is_told(self) -> None:
        for kept in (self.streams, self.graphs, self.events):
            for each in kept:
                if each.life.closed:
                    assert each.real.closed
        for array in self.arrays:
            assert not array.life.ended or array.real.closed


def machine_in(lab: Lab, *, is_alone: bool = True) -> type[OrderMachine]:
    """The machine as Hypothesis wants it: a class that is made without arguments."""

    class MachineInLab(OrderMachine):
        def __init__(self) -> None:
            super().__init__(lab, is_alone=is_alone)

    return MachineInLab


def run_examples(
    machine: type[OrderMachine], seed: int, *, examples: int = _EXAMPLES, shrinks: bool = True
) -> str:
    """Run some examples; the traceback of the one that fails, or "".

    Args:
        machine: what to run.
        seed: of the examples.
        examples: how many.
        shrinks: whether to look for the smallest one that fails, and for what it depends on.
    """
    some = settings(
        max_examples=examples,
        stateful_step_count=60,
        deadline=None,
        database=None,
        verbosity=Verbosity.normal,
        suppress_health_check=list(HealthCheck),
        phases=tuple(Phase) if shrinks else (Phase.generate,),
    )
    try:
        run_state_machine_as_test(with_seed(seed)(machine), settings=some)
    except Exception:  # whatever it is, it is a finding
        return f"seed {seed}: {traceback.format_exc()}"
    return ""


def _in_threads(lab: Lab, count: int, end: float, seed: int) -> Report:
    """Let each of several threads run a machine of its own until a time, or a failure."""
    report = Report()

    def work(number: int) -> None:
        machine = machine_in(lab, is_alone=False)
        for each in itertools.count(seed + number, count):
            with lock:
                report.count("examples", _EXAMPLES_IN_THREADS)
            # A failure depends on the other threads: no smaller example is likely to repeat it.
            text = run_examples(machine, each, examples=_EXAMPLES_IN_THREADS, shrinks=False)
            with lock:
                report.failures += [text] * bool(text)
                if report.failures or time.monotonic() >= end:
                    return

    lock = threading.Lock()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lab.settle()
    report.failures += lab.unraisable.take()
    if lab.is_emulated and any(lab.leftovers()):
        report.failures.append(f"{lab.leftovers()} bytes of the devices are not freed")
    return report


def _options(given: tuple[str, ...]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m campaigns model", allow_abbrev=False)
    parser.add_argument("--threads", type=int, default=1, help="machines that run at once (1)")
    return parser.parse_args(given)


def run_campaign(seconds: float, seed: int, *options: str) -> Report:
    """Run the state machine, a hundred examples with each seed; the first failure ends it."""
    threads = _options(options).threads
    warnings.simplefilter("error")
    report, end = Report(), time.monotonic() + seconds
    with Lab() as lab:
        faulthandler.dump_traceback_later(seconds + _DEADLOCK_S, exit=True)
        if threads > 1:
            report = _in_threads(lab, threads, end, seed)
        else:
            for number in itertools.count(seed):
                faulthandler.dump_traceback_later(seconds + _DEADLOCK_S, exit=True)
                report.count("examples", _EXAMPLES)
                text = run_examples(machine_in(lab), number)
                report.failures += [text] * bool(text)
                if text or time.monotonic() >= end:
                    break
    faulthandler.cancel_dump_traceback_later()
    return report
