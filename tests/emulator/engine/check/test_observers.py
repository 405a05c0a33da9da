"""An observer that is passed to a launch receives what the threads do."""

from __future__ import annotations

import numpy as np

from ptx.emulate.observer import Access, ObservedLaunch, Observer
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
    runner.launch("k", 1, 32, array, limits=Limits(watchers=(watcher, lambda launch: None)))
    assert [each for each in watched.found if each[0] != "loaded"] == [
        ("ld", "global", 32), ("st", "shared", 32), ("swapped", "global", 5), ("st", "local", 32),
    ]  # fmt: skip
    (launch,) = launches
    assert (launch.block, launch.code.kernel, launch.shared_bytes) == ((32, 1, 1), "k", 128)
