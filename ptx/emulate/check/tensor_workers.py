"""What tensor cores do beside the threads: products of warp groups, and all of `tcgen05`.

PTX ISA, "Asynchronous Warpgroup Level Matrix", "TensorCore 5th Generation Family Instructions": it
is done as if by another thread. Here workers stand for these threads:

- a warp group has one for its `wgmma` products; threads of it that wait for a group know of all
  groups up to that one, whichever of its warps they are in;
- a thread has one for its `tcgen05.mma` and `tcgen05.cp`, which are done in their order; who waits
  for an mbarrier object to which it commits knows of all that it began before;
- a warp has one for its `tcgen05.ld` and one for its `tcgen05.st`, for which its threads wait.

A worker has a number like a thread's, and its epoch is the group that its work belongs to. So a
thread knows that an epoch of it is over as it knows that of a thread.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from ptx.emulate.check.keys import key_of_thread
from ptx.emulate.check.stamps import EPOCH_SHIFT, MOST_EPOCHS, THREAD_SHIFT, Stamps
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import WARP, Geometry

if TYPE_CHECKING:
    from ptx.emulate.check.clocks import Clocks
    from ptx.emulate.check.races import RaceCheck

WorkerKind = Literal["products", "work", "loads", "stores"]
_THREADS_OF_ONE: Final = {"products": 4 * WARP, "work": 1, "loads": WARP, "stores": WARP}
_LATEST: Final = MOST_EPOCHS - 1


class TensorWorkers:
    """The workers of a chunk, whose first block has the number `first`."""

    def __init__(self, launch: RaceCheck, geometry: Geometry, first: int, clocks: Clocks) -> None:
        self._launch = launch
        self._geometry = geometry
        self._first = first
        self._clocks = clocks
        # By kind, the group that each thread's next work belongs to.
        self._groups: defaultdict[WorkerKind, Stamps] = defaultdict(
            lambda: np.zeros(geometry.threads, dtype=np.int64)
        )
        # Likewise, below which group it has waited for all of its work.
        self._done: defaultdict[WorkerKind, Stamps] = defaultdict(
            lambda: np.zeros(geometry.threads, dtype=np.int64)
        )

    def group(self, kind: WorkerKind, lanes: Index) -> Stamps:
        """The group that each thread's next work belongs to."""
        return self._groups[kind][lanes]

    def done(self, kind: WorkerKind, lanes: Index) -> Stamps:
        """The group below which each thread has waited for its work."""
        return self._done[kind][lanes]

    def stamps(self, kind: WorkerKind, lanes: Index, site: int) -> Stamps:
        """(n,) stamps, without a site, of what is begun for each of these threads."""
        masters, of = np.unique(self._masters(kind, lanes), return_inverse=True)
        groups = np.minimum(self.group(kind, lanes), _LATEST)
        workers = np.array([self._worker(kind, each) for each in masters.tolist()])[of]
        for worker, thread in zip(workers.tolist(), self._clocks.threads[lanes].tolist(),
                                  strict=True):  # fmt: skip
            self._launch.counted.note_issuer(worker, site, thread)
        stamps: Stamps = (workers + 1) << THREAD_SHIFT | groups << EPOCH_SHIFT
        return stamps

    def commit(self, kind: WorkerKind, lanes: Index) -> None:
        """What was begun for these threads is a group."""
        self._groups[kind][lanes] += 1

    def wait(self, kind: WorkerKind, lanes: Index, pending: int = 0) -> None:
        """These threads wait for all groups but so many of the newest."""
        self._launch.handover_log.settle()
        masters = self._masters(kind, lanes)
        done = self.group(kind, lanes) - pending
        self._done[kind][lanes] = np.maximum(self.done(kind, lanes), done)
        threads = self._clocks.threads[lanes]
        for master in np.unique(masters).tolist():
            known = self._launch.counted.known_number(self._place(kind, master))
            mine = masters == master
            over = int(done[mine].max())
            if known is not None and over > 0:
                self._launch.handovers.learn(threads[mine].tolist(), key_of_thread(known), over)

    def hand_over(self, lanes: Index, objects: Index) -> None:
        """`tcgen05.commit`: an mbarrier object tells of all that each thread began."""
        launch = self._launch
        launch.handover_log.settle()
        self.commit("work", lanes)
        groups = self._groups["work"][lanes]
        for lane, group, number in zip(
            lanes.tolist(), groups.tolist(), objects.tolist(), strict=True
        ):
            worker = self._worker("work", lane)
            place = f"mbarrier {self._first}", number
            over = ((key_of_thread(worker), group),)
            launch.handovers.write(place, worker, over, 0, at_once=True)

    def _masters(self, kind: WorkerKind, lanes: Index) -> Index:
        """The first of the threads with which each one shares a worker."""
        within = self._geometry.index("thread")[lanes]
        masters: Index = lanes - within % _THREADS_OF_ONE[kind]
        return masters

    def _place(self, kind: WorkerKind, master: int) -> tuple[str, int]:
        return f"{kind} {self._first}", master

    def _worker(self, kind: WorkerKind, master: int) -> int:
        block = self._first + int(self._geometry.index("slot")[master])
        return self._launch.counted.number_of(self._place(kind, master), block)
