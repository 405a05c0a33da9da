"""Programs of operations on streams made at random, and a model of which of them nothing orders.

The model keeps, of each operation, the set of those that it comes after. Driver API, "Stream
synchronization behavior": the legacy stream and those that were made to block wait for each other.
"""

from __future__ import annotations

import ctypes
import random
from dataclasses import dataclass, field
from typing import Final

from cudadrv.driver._api import (
    CUdeviceptr,
    CUevent,
    CUgraphExec,
    CUstream,
    CUstreamCaptureMode,
)
from cudadrv.emulator import Emulator, Finding
from cudadrv.emulator.timeline.schedule import OrderName

from ..calls import CAPTURE_RELAXED, LEGACY, Parameters, functions, launch, load, ok
from ..kernels import FILL
from ..machine import BLOCKING, NON_BLOCKING, UNTIMED

_REGIONS: Final = 6
_BYTES: Final = 16
_COUNT: Final = """
.visible .entry count(.param .u64 p) {
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd1, %rd1;
  red.relaxed.gpu.global.add.u32 [%rd1], 1;
  ret;
}"""
Regions = tuple[int, int]
"""The first region, and the one behind the last."""


@dataclass(frozen=True, slots=True)
class Work:
    """A fill, a copy, a kernel that stores, or one that counts by an atomic operation."""

    kind: str
    written: Regions
    read: Regions | None = None

    def races_with(self, other: Work) -> bool:
        """Whether the two must not meet."""
        if self.kind == other.kind == "count":
            return False
        return any(
            one is not None and two is not None and one[0] < two[1] and two[0] < one[1]
            for one, two in (
                (self.written, other.written),
                (self.written, other.read),
                (self.read, other.written),
            )
        )


def random_work(rng: random.Random) -> Work:
    """On one region or two of them, one after the other."""
    kind = rng.choice(["fill", "copy", "kernel", "count"])
    first, size = rng.randrange(_REGIONS - 1), rng.choice([1, 1, 2])
    if kind != "copy":
        return Work(kind, (first, first + 1 if kind == "count" else first + size))
    others = [at for at in range(_REGIONS - 1) if abs(at - first) >= size]
    source = rng.choice(others)
    return Work(kind, (first, first + size), (source, source + size))


@dataclass
class Model:
    """What is after what; sets of operations are the bits of a number."""

    streams: int
    blocking: frozenset[int]
    races: list[tuple[Work, Work]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._done: list[Work] = []
        self._tails = [0] * self.streams
        self._host = 0

    def now(self, stream: int) -> int:
        """All that comes before what is put into a stream now."""
        found = self._host
        for other in range(self.streams):
            both = {stream, other}
            if stream == other or (0 in both and both - {0} <= self.blocking):
                found |= self._tails[other]
        return found

    def do(self, stream: int, work: Work) -> None:
        self.wait(stream, self._add(work, self.now(stream)))

    def do_graph(self, stream: int, steps: list[tuple[Work, int]], last: int) -> int:
        """Work with the bits of what it follows in the graph, behind its last launch."""
        start = self.now(stream) | last
        made: list[int] = []
        for work, after in steps:
            before = start
            for at, each in enumerate(made):
                before |= each if after >> at & 1 else 0
            made.append(self._add(work, before))
        for each in made:
            start |= each
        self.wait(stream, start)
        return start

    def wait(self, stream: int, what: int) -> None:
        """What follows in a stream comes after this."""
        self._tails[stream] |= what

    def host_waits(self, what: int) -> None:
        self._host |= what

    def _add(self, work: Work, after: int) -> int:
        for number, each in enumerate(self._done):
            if not after >> number & 1 and work.races_with(each):
                self.races.append((each, work))
        self._done.append(work)
        return after | 1 << len(self._done) - 1


class Program:
    """One that calls the emulator and the model alike."""

    def __init__(self, seed: str, order: OrderName) -> None:
        self._rng = random.Random(seed)
        self._api = api = Emulator(
            1, order=order, seed=1 if order == "random" else None, check=("race",)
        )
        ok(api.cuInit(0))
        ok(api.cuCtxCreate(None, 0, ok(api.cuDeviceGet(0))))
        self._memory = int(ok(api.cuMemAlloc(_REGIONS * _BYTES)))
        self._fill, self._count = functions(api, load(api, FILL, _COUNT), "fill", "count")
        made = [BLOCKING, BLOCKING, NON_BLOCKING, NON_BLOCKING]
        flags = made[: self._rng.randint(1, 4)] if self._rng.random() < 0.5 else made[-2:]
        self._streams = [LEGACY, *(self._stream(each) for each in flags)]
        blocking = frozenset(at for at, each in enumerate(flags, 1) if each == BLOCKING)
        self.model: Model = Model(len(self._streams), blocking)
        self._events: list[tuple[CUevent, int]] = []
        self._graphs: list[tuple[CUgraphExec, list[tuple[Work, int]], int]] = []
        self.said: list[str] = []

    def run(self) -> list[Finding]:
        """What the emulator found."""
        for _ in range(self._rng.randint(0, 1)):
            self._make_graph()
        for _ in range(self._rng.randint(2, 9)):
            self._step()
        ok(self._api.cuCtxSynchronize())
        return [each for each in self._api.findings if isinstance(each, Finding)]

    def _step(self) -> None:
        rng, api, model = self._rng, self._api, self.model
        stream = rng.randrange(len(self._streams))
        kinds = ["work"] * 4 + ["record", "record", "wait", "wait", "host"]
        what = rng.choice(kinds + ["graph"] * 6 * len(self._graphs))
        if what == "work":
            work = random_work(rng)
            self._do(work, self._streams[stream])
            model.do(stream, work)
            what = str(work)
        elif what == "record":
            event = ok(api.cuEventCreate(UNTIMED))
            ok(api.cuEventRecord(event, self._streams[stream]))
            self._events.append((event, model.now(stream)))
        elif what == "wait" and self._events:
            event, known = rng.choice(self._events)
            ok(api.cuStreamWaitEvent(self._streams[stream], event, 0))
            model.wait(stream, known)
        elif what == "graph":
            graph, steps, last = self._graphs.pop()
            ok(api.cuGraphLaunch(graph, self._streams[stream]))
            self._graphs.append((graph, steps, model.do_graph(stream, steps, last)))
        elif what == "host":
            self._host_waits(stream)
        self.said.append(f"{stream}: {what}")

    def _host_waits(self, stream: int) -> None:
        if self._events and self._rng.random() < 0.5:
            event, known = self._rng.choice(self._events)
            ok(self._api.cuEventSynchronize(event))
            self.model.host_waits(known)
        else:
            ok(self._api.cuStreamSynchronize(self._streams[stream]))
            self.model.host_waits(self.model.now(stream))

    def _make_graph(self) -> None:
        """Two branches of a captured graph, that meet at some points, and at its end."""
        rng, api = self._rng, self._api
        branches = [self._stream(NON_BLOCKING), self._stream(NON_BLOCKING)]
        ok(api.cuStreamBeginCapture(branches[0], CUstreamCaptureMode(CAPTURE_RELAXED)))
        steps: list[tuple[Work, int]] = []
        tails = [0, 0]
        self._follow(branches[1], branches[0])
        for _ in range(rng.randint(2, 5)):
            at = rng.randrange(2)
            work = random_work(rng)
            self._do(work, branches[at])
            steps.append((work, tails[at]))
            tails[at] |= 1 << len(steps) - 1
            if rng.random() < 0.5:
                self._follow(branches[1 - at], branches[at])
                tails[1 - at] |= tails[at]
        self._follow(branches[0], branches[1])
        graph = ok(api.cuStreamEndCapture(branches[0]))
        self._graphs.append((ok(api.cuGraphInstantiate(graph, 0)), steps, 0))
        self.said.append(f"graph of {steps}")

    def _follow(self, one: CUstream, other: CUstream) -> None:
        event = ok(self._api.cuEventCreate(UNTIMED))
        ok(self._api.cuEventRecord(event, other))
        ok(self._api.cuStreamWaitEvent(one, event, 0))

    def _stream(self, flags: int) -> CUstream:
        return ok(self._api.cuStreamCreateWithPriority(flags, 0))

    def _do(self, work: Work, stream: CUstream) -> None:
        api, nbytes = self._api, (work.written[1] - work.written[0]) * _BYTES
        there = self._memory + work.written[0] * _BYTES
        if work.kind == "fill":
            ok(api.cuMemsetD8Async(CUdeviceptr(there), 1, nbytes, stream))
        elif work.read is not None:
            source = CUdeviceptr(self._memory + work.read[0] * _BYTES)
            ok(api.cuMemcpyDtoDAsync(CUdeviceptr(there), source, nbytes, stream))
        elif work.kind == "kernel":
            given = (ctypes.c_uint64(there), ctypes.c_uint32(1), ctypes.c_uint8(0))
            block = (nbytes // 4, 1, 1)
            ok(launch(api, self._fill, Parameters(*given), block=block, stream=stream))
        else:
            ok(launch(api, self._count, Parameters(ctypes.c_uint64(there)), stream=stream))


def complaint_about(seed: str, order: OrderName) -> str:
    """What the check says of a program that the model denies; nothing if they agree."""
    program = Program(seed, order)
    found = program.run()
    races = program.model.races
    if bool(races) == bool(found):
        return ""
    what = f"missed: {races[0]}" if races else f"accused: {found[0]}"
    return "\n  ".join([f"seed {seed!r}, {order}: {what}", *program.said])
