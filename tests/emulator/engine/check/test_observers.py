"""An observer that is passed to a launch receives what the threads do."""

from __future__ import annotations

import numpy as np
import pytest

from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import ObserverExhausted, Runaway
from ptx.emulate.observer import Access, ObservedLaunch, Observer, Watcher
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text

BODY = """
    .shared .align 4 .b8 s[128]; .reg .b32 %r<4>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd2, %rd1, %rd2; mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.u32 %r2, %r2, %r3;
    ld.global.u32 %r3, [%rd2]; st.shared.u32 [%r2], %r3; atom.global.cas.b32 %r3, [%rd2], 7, 8;
    st.local.u32 [0], %r1; ret;
"""


class AccessList(Observer):
    """Lists the accesses of a launch."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str, int]] = []

    def access(self, access: Access) -> None:
        name = access.site.facts.opcode
        if access.is_complete:
            self.found.append((name, access.space, access.threads.count))

    def swap(self, access: Access, wrote: object) -> None:
        swapped = int(np.count_nonzero(np.broadcast_to(np.asarray(wrote), access.threads.count)))
        self.found.append(("swapped", access.space, swapped))

    def loaded(self, site: object, values: object) -> None:
        self.found.append(("loaded", "", 0))


def test_an_observer_receives_the_accesses_of_its_launch_in_their_order() -> None:
    watched = AccessList()
    launches: list[ObservedLaunch] = []

    def watcher(launch: ObservedLaunch) -> Observer:
        launches.append(launch)
        return watched

    body = BODY.replace(".reg .b32", ".local .align 4 .b8 l[4]; .reg .b32").replace("[0]", "[l]")
    runner = KernelRunner(ptx_text(body, ".param .u64 a"), 1 << 20)
    array = runner.put(np.where(np.arange(32) < 5, 7, 1).astype(np.uint32))
    runner.launch(
        "k", 1, 32, array, limits=Limits(watchers=(Watcher(watcher), Watcher(lambda launch: None)))
    )
    assert [each for each in watched.found if each[0] != "loaded"] == [
        ("ld", "global", 32),
        ("st", "shared", 32),
        ("swapped", "global", 5),
        ("st", "local", 32),
    ]
    (launch,) = launches
    assert (launch.block, launch.code.kernel, launch.shared_bytes) == ((32, 1, 1), "k", 128)


ORDERED = """
    .shared .align 16 .b8 s[1024]; .shared .align 8 .b64 m; .reg .b32 %r<3>; .reg .b64 %rd<3>;
    .reg .pred %p1;
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd2, %rd1, %rd2; mov.u32 %r2, s; mad.lo.u32 %r2, %r1, 4, %r2;
    setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [m], 64; bar.sync 0;
    cp.async.ca.shared.global [%r2], [%rd2], 4; cp.async.commit_group; cp.async.wait_group 0;
    fence.acq_rel.gpu; mbarrier.arrive.shared.b64 %rd2, [m]; bar.warp.sync 0xffffffff;
    bar.sync 1, 64; ret;
"""


class OrderList(Observer):
    """Lists the synchronisation and the copies of a launch, each with its number of threads."""

    def __init__(self) -> None:
        self.found: list[tuple[str, int]] = []

    def pass_block(self, lanes: Index) -> None:
        self.found.append(("block", len(lanes)))

    def pass_warps(self) -> None:
        self.found.append(("warps", 0))

    def arrive(
        self, lanes: Index, kind: str, numbers: Index, scope: str = "", *, releases: bool = True
    ) -> None:
        self.found.append((f"arrive {kind}", len(lanes)))

    def complete(self, kind: str, numbers: Index) -> None:
        self.found.append((f"complete {kind}", len(numbers)))

    def fence(self, lanes: Index, scope: str) -> None:
        self.found.append((f"fence {scope}", len(lanes)))

    def begin_copy(
        self, threads: object, addresses: object, offset: int, site: object, objects: object = None
    ) -> None:
        self.found.append(("copy", 0))

    def commit_copies(self, lanes: Index, *, bulk: bool) -> None:
        self.found.append(("commit", len(lanes)))

    def wait_for_copies(
        self, lanes: Index, pending: int, *, bulk: bool, reads_alone: bool = False
    ) -> None:
        self.found.append((f"wait {pending}", len(lanes)))


def test_an_observer_receives_synchronisation_and_copies_in_their_order() -> None:
    watched = OrderList()
    runner = KernelRunner(ptx_text(ORDERED, ".param .u64 a"), 1 << 20)
    array = runner.put(np.arange(64, dtype=np.uint32))
    runner.launch("k", 1, 64, array, limits=Limits(watchers=(Watcher(lambda launch: watched),)))
    assert [each for each in watched.found if each != ("complete mbarrier", 0)] == [
        ("block", 64), ("copy", 0), ("copy", 0), ("commit", 64), ("wait 0", 64),
        ("fence gpu", 64), ("arrive mbarrier", 64), ("complete mbarrier", 1), ("warps", 0),
        ("block", 64),
    ]  # fmt: skip


class FewBarriers(Observer):
    """Follows one barrier."""

    count = 0

    def pass_block(self, lanes: Index) -> None:
        self.count += 1
        if self.count > 1:
            raise ObserverExhausted("after one barrier")


def test_an_observer_that_cannot_follow_a_launch_ends_it_with_its_message() -> None:
    runner = KernelRunner(ptx_text("bar.sync 0; bar.sync 0; ret;"), 1 << 20)
    with pytest.raises(Runaway, match="after one barrier"):
        runner.launch("k", 1, 64, limits=Limits(watchers=(Watcher(lambda launch: FewBarriers()),)))
