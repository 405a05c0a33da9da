"""Many threads that make, use, close and drop objects of all kinds, their own and shared ones."""

from __future__ import annotations

import faulthandler
import gc
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

import cudadrv
from cudadrv import DeviceArena, Event
from cudadrv.errors import ClosedError, CudadrvError
from cudadrv.texture import CudaArray, Surface, Texture
from tests.contract.order.lab import POOL_SLACK, Lab
from tests.contract.order.late_kernels import WIDTH, Ints, LateKernels, count_from

from .report import Report
from .thread_memory import MemoryTurns, N

THREADS: Final = 16
_SHARED: Final = 4
_MOST_FAULTS: Final = 10
_PATIENCE_S: Final = 300.0
_DEADLOCK_S: Final = 60.0


@dataclass
class Shared:
    """What all threads use, and any of them may close, drop or replace.

    Attributes:
        streams: some of a device.
        arrays: some of a device, each with the value that all its elements have.
        textures: some of a device over arrays, with the value likewise.
        events: some of a device, recorded.
    """

    streams: list[cudadrv.Stream]
    arrays: list[tuple[Ints, int]]
    textures: list[tuple[Texture, int]]
    events: list[Event]

    @classmethod
    def on(cls, context: cudadrv.Context) -> Shared:
        """A full set."""
        shared = cls([], [], [], [])
        for number in range(_SHARED):
            shared.streams.append(context.new_stream())
            shared.arrays.append(new_array(context, number))
            shared.textures.append(new_texture(context, number))
            shared.events.append(shared.streams[-1].record(timing=False))
        return shared


def new_array(context: cudadrv.Context, value: int) -> tuple[Ints, int]:
    """An array of one value."""
    return context.new_stream().to_device(np.full(N, value, np.int32)), value


def new_texture(context: cudadrv.Context, value: int) -> tuple[Texture, int]:
    """A texture over such an array."""
    return Texture(new_array(context, value)[0]), value


@dataclass
class Outcome:
    """What happened.

    Attributes:
        turns: how often each kind of work was done.
        closed: how often another thread had closed what was used.
        faults: wrong values and errors, in words.
    """

    turns: dict[str, int] = field(default_factory=dict)
    closed: int = 0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        done = ", ".join(f"{name} {count}" for name, count in sorted(self.turns.items()))
        head = f"{sum(self.turns.values())} turns ({done}), {self.closed} found something closed"
        return "\n\n".join((head, *self.faults[:_MOST_FAULTS], f"{len(self.faults)} faults"))


class Worker(MemoryTurns):
    """One thread's work: each method is a turn; it says whether it uses what is shared."""

    def __init__(
        self, lab: Lab, shared: list[Shared], arena: DeviceArena[np.int32], seed: int
    ) -> None:
        super().__init__(lab, seed)
        self.shared = shared
        self.arena = arena
        self.outcome = Outcome(faults=self.faults)
        self.own_work: tuple[Callable[[int], None], ...] = (
            self.use_own_arrays, self.use_graph, self.use_module, self.use_image,
            self.use_allocator, self.use_pinned, self.use_host_function, self.use_context,
            self.collect, *self.memory_work,
        )  # fmt: skip
        self.shared_work: tuple[Callable[[int], None], ...] = (
            self.use_shared_stream, self.read_shared_array, self.read_shared_texture,
            self.wait_for_shared_event, self.copy_between_devices, self.use_arena,
            self.replace_shared,
        )  # fmt: skip

    def turn(self) -> None:
        """Do something."""
        device = self.chance.randrange(len(self.shared))
        work = self.chance.choice((*self.own_work, *self.shared_work, *self.shared_work))
        name = work.__name__
        self.outcome.turns[name] = self.outcome.turns.get(name, 0) + 1
        try:
            work(device)
        except ClosedError:
            if work not in self.shared_work:
                self.fault(f"{name} of its own objects: {traceback.format_exc()}")
            self.outcome.closed += 1
        except Exception:
            self.fault(f"{name}: {traceback.format_exc()}")

    def fault(self, text: str) -> None:
        """Remember what is wrong."""
        if len(self.outcome.faults) < _MOST_FAULTS:
            self.outcome.faults.append(text)

    def check(
        self,
        what: str,
        found: Ints | np.ndarray[tuple[int, ...], np.dtype[np.int32]],
        expected: object,
        stream: cudadrv.Stream | None = None,
    ) -> None:
        """Compare values, which may still be on a device."""
        values = found if isinstance(found, np.ndarray) else _given(stream).to_host(found)
        if not np.array_equal(values, np.broadcast_to(np.asarray(expected), values.shape)):
            self.fault(f"{what}: {values[:4]}... instead of {expected}")

    def end(self, *things: cudadrv.Stream | Ints | cudadrv.GraphExec | CudaArray[np.int32]) -> None:
        """Close some of them, in any order; the others are dropped."""
        for thing in self.chance.sample(things, self.chance.randrange(len(things) + 1)):
            thing.close()

    # With objects of its own

    def use_own_arrays(self, device: int) -> None:
        """Two streams work on one array by turns."""
        context, kernels = self.lab.contexts[device], self.lab.kernels[device]
        a, b = context.new_stream(), context.new_stream()
        x, out = a.to_device(count_from(5, N)), b.zeros(N, np.int32)
        kernels.bump(a, x, 3)
        kernels.bump(b, x, 4)
        kernels.read(a, out, x)
        self.check("two streams", b.to_host(out), count_from(12, N))
        kernels.read(b, out, x)
        self.end(a, x)
        self.check("after the end", b.to_host(out), count_from(12, N))
        self.end(b, out)

    def use_graph(self, device: int) -> None:
        """A graph outlives what it uses."""
        context, kernels = self.lab.contexts[device], self.lab.kernels[device]
        a, b = context.new_stream(), context.new_stream()
        x, out = a.to_device(count_from(0, N)), b.zeros(N, np.int32)
        with a.capture() as graph:
            kernels.bump(a, x, 1)
            kernels.read(a, out, x)
        executable = graph.instantiate()
        for _ in range(self.chance.randrange(1, 4)):
            executable.launch(b)
            kernels.bump(a, x, 1)
        del x
        executable.launch(b)
        found = b.to_host(out)
        self.check("a graph", found, count_from(int(found[0]), N))
        self.end(executable, a, b, out)

    def use_module(self, device: int) -> None:
        """Kernels under way outlive their module."""
        context = self.lab.contexts[device]
        kernels = LateKernels(context, self.lab.kernels[device].cycles)
        stream = context.new_stream()
        x = stream.zeros(N, np.int32)
        kernels.write(stream, x, 7)
        kernels.module.close()
        try:
            kernels.write(stream, x, 8)
        except ClosedError:
            pass
        else:
            self.fault("a kernel of a closed module was launched")
        self.check("a closed module", x, count_from(7, N), stream)

    def use_image(self, device: int) -> None:
        """A surface is written and a box copied."""
        context, kernels = self.lab.contexts[device], self.lab.kernels[device]
        stream = context.new_stream()
        image = CudaArray(context, (N // WIDTH, WIDTH), np.int32, surface=True)
        kernels.paint(stream, Surface(image), N, 9)
        out = stream.zeros((N // WIDTH, WIDTH), np.int32)
        image.copy_to(stream, out)
        self.end(image)
        self.check("an image", out.reshape(-1), count_from(9, N), stream)

    def use_allocator(self, device: int) -> None:
        """Raw blocks are reused in one stream's order."""
        context, kernels = self.lab.contexts[device], self.lab.kernels[device]
        stream = context.new_stream()
        allocator, out = cudadrv.memory.CudaAllocator(stream), stream.zeros(N, np.int32)
        address = allocator.allocate(4 * N)
        kernels.write_at(stream, address, N, 3)
        kernels.read(stream, out, address)
        allocator.deallocate(address, 4 * N)
        again = allocator.allocate(4 * N)
        kernels.write_at(stream, again, N, -1)
        allocator.deallocate(again, 4 * N)
        self.check("a block", out, count_from(3, N), stream)
        self.end(stream)

    def use_pinned(self, device: int) -> None:
        """A pinned array is dropped while it is copied."""
        stream = self.lab.contexts[device].new_stream()
        host = cudadrv.pinned_empty(N, np.int32)
        host[:] = 6
        x = stream.zeros(N, np.int32)
        stream.copy(x, host, wait=False)
        del host
        self.check("a pinned array", x, 6, stream)

    def use_host_function(self, device: int) -> None:
        """Calls come in order, each with its own arguments."""
        stream, seen = self.lab.contexts[device].new_stream(), list[int]()
        numbers = [self.chance.randrange(1 << 30) for _ in range(20)]
        for number in numbers:
            stream.call_on_host(seen.append, number)
        stream.synchronize()
        if seen != numbers:
            self.fault(f"host functions gave {seen}, not {numbers}")

    def use_context(self, device: int) -> None:
        """A context of its own is closed over what it holds."""
        if not self.lab.is_emulated and self.chance.random() < 0.95:
            return  # it takes a device a tenth of a second, and all threads wait
        own = cudadrv.Context.create(device)
        stream = own.new_stream()
        x = stream.to_device(count_from(2, N))
        self.check("an own context", x, count_from(2, N), stream)
        stream.fill(x, 1)
        own.close()
        try:
            stream.fill(x, 2)
        except ClosedError:
            pass
        else:
            self.fault("memory of a closed context was filled")

    def collect(self, _: int) -> None:
        """Circles of objects are given back by whichever thread collects."""
        stream = self.lab.contexts[0].new_stream()
        circle: list[object] = [stream, stream.zeros(N, np.int32), stream.record()]
        circle.append(circle)
        if self.chance.random() < 0.2:
            gc.collect()

    # With what is shared

    def use_shared_stream(self, device: int) -> None:
        """Own memory comes from a stream that another thread may close at any moment."""
        kernels = self.lab.kernels[device]
        stream = self.chance.choice(self.shared[device].streams)
        x = stream.to_device(count_from(1, N))
        kernels.bump(stream, x, 2)
        kernels.bump(stream, x, 3)
        with self.lab.contexts[device].new_stream() as own:
            self.check("memory of a shared stream", x, count_from(6, N), own)

    def read_shared_array(self, device: int) -> None:
        """It may be closed before the kernel is queued, and then it is a `ClosedError`."""
        array, value = self.chance.choice(self.shared[device].arrays)
        with self.lab.contexts[device].new_stream() as stream:
            out = stream.zeros(N, np.int32)
            self.lab.kernels[device].read(stream, out, array)
            del array
            self.check("a shared array", out, value, stream)

    def read_shared_texture(self, device: int) -> None:
        """The same through a texture."""
        texture, value = self.chance.choice(self.shared[device].textures)
        with self.lab.contexts[device].new_stream() as stream:
            out = stream.zeros(N, np.int32)
            self.lab.kernels[device].fetch(stream, out, texture)
            del texture
            self.check("a shared texture", out, value, stream)

    def wait_for_shared_event(self, device: int) -> None:
        """Wait on a stream and on the host."""
        event = self.chance.choice(self.shared[device].events)
        with self.lab.contexts[device].new_stream() as stream:
            stream.wait(event)
            stream.wait(self.chance.choice(self.shared[device].streams))
            event.synchronize()

    def copy_between_devices(self, device: int) -> None:
        """A shared array of one device is copied to an own one of another."""
        array, value = self.chance.choice(self.shared[device].arrays)
        other = (device + 1) % len(self.shared)
        with self.lab.contexts[other].new_stream() as stream:
            out = stream.zeros(N, np.int32)
            stream.copy(out, array)
            del array
            self.check("a copy between devices", out, value, stream)

    def use_arena(self, device: int) -> None:
        """Slabs go from thread to thread."""
        stream = self.chance.choice(self.shared[device].streams)
        value = self.chance.randrange(1 << 20)
        bucket, slab = self.arena.alloc(stream, N)
        try:
            stream.fill(slab, value)
            with self.lab.contexts[device].new_stream() as own:
                out = own.zeros(N, np.int32)
                self.lab.kernels[device].read(own, out, slab)
        finally:
            self.arena.release(bucket, slab)
        self.check("a slab", out, value, self.lab.contexts[device].default_stream)

    def replace_shared(self, device: int) -> None:
        """Close or drop something of all, and put a new one in its place."""
        shared, context = self.shared[device], self.lab.contexts[device]
        at, value = self.chance.randrange(_SHARED), self.chance.randrange(1000)
        former: cudadrv.Stream | Ints | Texture | Event
        match self.chance.randrange(4):
            case 0:
                former, shared.streams[at] = shared.streams[at], context.new_stream()
            case 1:
                (former, _), shared.arrays[at] = shared.arrays[at], new_array(context, value)
            case 2:
                (former, _), shared.textures[at] = shared.textures[at], new_texture(context, value)
            case _:
                former, shared.events[at] = shared.events[at], Event(context)
        if self.chance.random() < 0.5:
            former.close()


def _given(stream: cudadrv.Stream | None) -> cudadrv.Stream:
    assert stream is not None
    return stream


def run(lab: Lab, seconds: float, seed: int, threads: int = THREADS) -> Outcome:
    """Let threads work for so long; what they found, and what was left."""
    shared = [Shared.on(context) for context in lab.contexts]
    arena = DeviceArena(np.int32)
    workers = [Worker(lab, shared, arena, 1000 * seed + number) for number in range(threads)]
    end = time.monotonic() + seconds

    def work(worker: Worker) -> None:
        while time.monotonic() < end and not worker.outcome.faults:
            worker.turn()

    running = [threading.Thread(target=work, args=(worker,), daemon=True) for worker in workers]
    for thread in running:
        thread.start()
    result = Outcome()
    for thread in running:
        thread.join(max(end - time.monotonic(), 0) + _PATIENCE_S)
        if thread.is_alive():
            faulthandler.dump_traceback()
            result.faults.append("a deadlock: a thread does not come to its end")
            return result
    for worker in workers:
        for name, count in worker.outcome.turns.items():
            result.turns[name] = result.turns.get(name, 0) + count
        result.closed += worker.outcome.closed
        result.faults += worker.outcome.faults
    for each in shared:
        for kept in (each.streams, each.arrays, each.textures, each.events):
            kept.clear()
    del worker, workers, shared, arena, each, running, thread
    try:
        lab.settle()
    except CudadrvError as error:
        result.faults.append(f"the device is lost: {error}")
        return result
    result.faults += lab.unraisable.take()
    left = max(lab.leftovers())
    if left > (0 if lab.is_emulated else POOL_SLACK):
        result.faults.append(f"{left} bytes are not given back")
    return result


def run_campaign(seconds: float, seed: int) -> Report:
    """Let threads share objects; a deadlock ends the process, with what each thread is at."""
    warnings.simplefilter("error")
    faulthandler.dump_traceback_later(seconds + _DEADLOCK_S, exit=True)
    with Lab() as lab:
        outcome = run(lab, seconds, seed)
    faulthandler.cancel_dump_traceback_later()
    report = Report(dict(outcome.turns), outcome.faults)
    report.notes.append(f"{outcome.closed} uses found an object closed")
    return report
