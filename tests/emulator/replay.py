"""Random programs in random orders, and the traces that they leave.

`python -m tests.emulator.replay --programs 200` prints the digest of their traces: it is the same
on every machine and every Python.
"""

from __future__ import annotations

import argparse
import hashlib
import random
from typing import Final

from cudadrv.driver._api import CUdeviceptr, CUstream

from .calls import LEGACY, ok
from .machine import BLOCKING, NON_BLOCKING, UNTIMED, Machine, captured

PROGRAMS: Final = 200
DIGEST: Final = "d03b57f4685861a4efa170e59ae584679635406d54c5ddb434f0185bc7bb1c13"
"""Of so many; another once the choice of the next operation is made otherwise."""
_ACTS: Final = 25
_CELLS: Final = 4


class _Program:
    """What a number makes: streams, cells of memory, and acts on them."""

    def __init__(self, machine: Machine, number: int) -> None:
        self._machine, self._api = machine, machine.api
        self._chance = random.Random(number)
        self._streams = [
            machine.a,
            machine.b,
            machine.stream(NON_BLOCKING),
            machine.stream(BLOCKING),
            LEGACY,
        ]
        self.cells = [machine.memory() for _ in range(_CELLS)]
        for cell in self.cells:
            ok(self._api.cuMemsetD32Async(cell, 0, 1, machine.a))
        self._pinned = machine.pinned(4)
        self._event = ok(self._api.cuEventCreate(UNTIMED))
        self._graph = captured(machine, self.cells[0])
        self._acts = (
            self._increment, self._set, self._record, self._wait, self._allocate, self._copy,
            self._call, self._replay, self._query,
        )  # fmt: skip

    def act(self) -> None:
        """The next one, on some stream and some cell."""
        act = self._acts[int(self._chance.random() * len(self._acts))]
        stream = self._streams[int(self._chance.random() * len(self._streams))]
        act(stream, self.cells[int(self._chance.random() * _CELLS)])

    def _increment(self, stream: CUstream, cell: CUdeviceptr) -> None:
        self._machine.increment(cell, stream)

    def _set(self, stream: CUstream, cell: CUdeviceptr) -> None:
        ok(self._api.cuMemsetD32Async(cell, int(self._chance.random() * 100), 1, stream))

    def _record(self, stream: CUstream, _: CUdeviceptr) -> None:
        ok(self._api.cuEventRecord(self._event, stream))

    def _wait(self, stream: CUstream, _: CUdeviceptr) -> None:
        ok(self._api.cuStreamWaitEvent(stream, self._event, 0))

    def _allocate(self, stream: CUstream, cell: CUdeviceptr) -> None:
        block = ok(self._api.cuMemAllocAsync(64, stream))
        ok(self._api.cuMemcpyDtoDAsync(cell, block, 4, stream))
        ok(self._api.cuMemFreeAsync(block, stream))

    def _copy(self, stream: CUstream, cell: CUdeviceptr) -> None:
        ok(self._api.cuMemcpyDtoHAsync(self._pinned, cell, 4, stream))

    def _call(self, stream: CUstream, _: CUdeviceptr) -> None:
        self._machine.host_call(lambda _: None, stream)

    def _replay(self, stream: CUstream, _: CUdeviceptr) -> None:
        ok(self._api.cuGraphLaunch(self._graph, stream))

    def _query(self, stream: CUstream, _: CUdeviceptr) -> None:
        self._api.cuStreamQuery(stream)


def trace_of(program: int, seed: int) -> tuple[str, ...]:
    """What ran, in its order, and what was in memory then."""
    machine = Machine("random", seed)
    chosen = _Program(machine, program)
    for _ in range(_ACTS):
        chosen.act()
    ok(machine.api.cuCtxSynchronize())
    values = [machine.read(cell, machine.a) for cell in chosen.cells]
    return (*machine.api.executed, *map(str, values))


def digest_of(count: int) -> str:
    """The digest of the traces of so many programs, each in the order of its number."""
    found = hashlib.sha256()
    for number in range(count):
        found.update("\n".join(trace_of(number, number)).encode())
    return found.hexdigest()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.emulator.replay")
    parser.add_argument("--programs", type=int, default=PROGRAMS)
    print(digest_of(parser.parse_args().programs))
