"""Races: accesses to the same bytes, one of them a write, that nothing orders.

A thread's accesses are compared with the last ones to the same memory, by what is known through
barriers (`clocks`) and through memory (`handover`), never by the order in which the emulator ran.
PTX ISA, "Memory Consistency Model", "Data-Race".
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.accelerations import DeferredWork
from ptx.emulate.check.access_step import AccessStep
from ptx.emulate.check.async_copies import VirtualThreads
from ptx.emulate.check.findings import Access, Finding, Findings, demangled
from ptx.emulate.check.memory_model import (
    ASYNC,
    CONSTANT,
    NARROW,
    TENSOR_MAP,
    TEXTURE,
    AccessRole,
    role_of,
)
from ptx.emulate.check.proxy_fences import ProxyFenceLog
from ptx.emulate.check.shadow_memory import ShadowMemory
from ptx.emulate.check.stamps import (
    MOST_SITES,
    WARP_SHIFT,
    Stamps,
    block_shift,
    in_flight,
    sites_of,
    threads_of,
)
from ptx.emulate.check.synchronizes_with import Synchronization
from ptx.emulate.kernel_facts import KernelFacts
from ptx.emulate.memory.device_memory import DeviceMemory, reserve
from ptx.emulate.memory.late_stores import LateStores
from ptx.emulate.memory.site import Site
from ptx.emulate.model.errors import Where
from ptx.emulate.model.geometry import Dim3, coordinates
from ptx.isa.model import Instruction
from ptx.isa.source_place import source_place

_MOST_ELSEWHERE = 1 << 23  # accesses of threads
# Why a race may be meant so.
GUESS = "the value read is a guess that a compare-and-swap checks"
SAME_VALUE = "both write the same value"
HEARD = "the flag or counter was read before a barrier, though no fence comes between"
FENCED = "the flag or counter was written behind a barrier, though each fence comes before that"
LOST = "an update is lost, but each access is volatile or relaxed, which PTX calls no race"
VOLATILE = "volatile, but nothing orders these lanes since compute capability 7.0"
# What would order an access after a copy that is under way.
_COPY = "a wait for the asynchronous copy, and a barrier behind it for other threads"
_WORKERS = {
    "wgmma": "wgmma.wait_group for the product, and behind it a barrier or arrival for others",
    "tcgen05.mma": "tcgen05.commit, and a wait for the phase of the mbarrier object that it tells",
    "tcgen05.cp": "tcgen05.commit, and a wait for the phase of the mbarrier object that it tells",
    "tcgen05.ld": "tcgen05.wait::ld, and behind it a barrier or arrival for others",
    "tcgen05.st": "tcgen05.wait::st, and behind it a barrier or arrival for others",
}
_COUNTED = "a wait for the phase of the mbarrier object that counts the asynchronous copy"
_ATOMIC = (
    "one atomic operation, such as atomicAdd(), in the place of the second one's load and store: "
    "it has loaded before the first one wrote, and that write is lost"
)
PENDING = "result not waited for"
PROXY_FENCE = "proxy fence missing"
# What makes a write visible to a proxy.
_FENCES_OF = {
    ASYNC: "fence.proxy.async, such as cuda::ptx::fence_proxy_async(), by each thread that wrote,"
    " before the barrier or arrival by which the reading thread knows of it",
    TENSOR_MAP: "fence.proxy.tensormap::generic, .release by each thread that wrote the tensor map"
    " (or tensormap.cp_fenceproxy) and .acquire by the one that copies with it",
    TEXTURE: "the read-only path (__ldg(), const __restrict__, textures) sees no writes of its own"
    " launch, and no fence changes that: load by an ordinary pointer, or in a later launch",
    CONSTANT: "constant memory shows no writes of the same launch, and no fence changes that: load"
    " by an ordinary pointer, or in a later launch",
}
UNFENCED_COPY = "NVIDIA's libraries leave this fence out behind cp.async"
_HANDED = "a flag or lock handed over by atomics with __threadfence() on both sides"


def _reserved(units: int) -> Stamps:
    return reserve(units * 8).view(np.int64)


def _work_of(instruction: Instruction) -> str:
    """The name of an instruction for tensor cores."""
    words = (instruction.opcode, *instruction.modifiers[:1])
    return ".".join(words if instruction.opcode == "tcgen05" else words[:1])


def _least_element(sites: Sequence[Site], space: str) -> int:
    """The bytes of the smallest element that a kernel accesses in a space, at most 4."""
    return min([site.nbytes for site in sites if site.space in (space, "generic")] + [4])


class RaceCheck:
    """The races of one launch.

    Args:
        code: what it runs.
        block: threads of a block.
        block_at: gives the coordinates of a block by its number.
        memory: the device's memory.
        findings: where races are put.
        cluster_blocks: blocks of a cluster.

    Attributes:
        levels: how many scopes there are: a block, a cluster if it has several, and all.
        handovers: what threads know through memory, but for what `deferred` has.
        lowest_level: the first level at which anything can be handed over by accesses.
        counted: the copies that mbarrier objects count.
        proxy_fences: the proxy fences, by what they are for.
        reads_by_async: whether anything reads shared memory through the async proxy.
        has_copies: whether any asynchronous copy was begun.
        hidden: of each chunk, the stores that the others do not see yet.
        guesses: the sites, by number, that have read what a compare-and-swap checks.
    """

    def __init__(
        self,
        code: KernelFacts,
        block: Dim3,
        block_at: Callable[[int], Dim3],
        memory: DeviceMemory,
        findings: Findings,
        cluster_blocks: int,
    ) -> None:
        self.kernel: str = code.kernel
        self.cluster_blocks = cluster_blocks
        self.levels: int = 3 if cluster_blocks > 1 else 2
        self.shift: int = block_shift(block[0] * block[1] * block[2])
        self.global_shift: int = _least_element(code.sites, "global").bit_length() - 1
        self.shared_shift: int = _least_element(code.sites, "shared").bit_length() - 1
        self.has_narrow: bool = any(
            role_of(site.instruction, writes=site.writes).scope in NARROW for site in code.sites
        )
        # Without narrow scopes a narrower level tells no more than the last one.
        self.lowest_level: int = (
            0 if self.has_narrow or code.may_fence_narrowly else self.levels - 1
        )
        self.memory = memory
        self.in_global: ShadowMemory = ShadowMemory(
            memory.nbytes >> self.global_shift, _reserved, self.shift
        )
        self.handovers: Synchronization = Synchronization(self.shift, self.levels)
        self.deferred: DeferredWork = DeferredWork()
        self.counted: VirtualThreads = VirtualThreads()
        self.proxy_fences: dict[str, ProxyFenceLog] = {}
        self.reads_by_async: bool = any(
            site.space == "shared"
            and not site.writes
            and role_of(site.instruction, writes=False).proxy == ASYNC
            for site in code.sites
        )
        self.stored_texels: dict[int, NDArray[np.uint8]] = {}  # by images' addresses
        self.has_copies: bool = False
        self._code = code
        self._block = block
        self._block_at = block_at
        self._findings = findings
        self._shared = sorted((at, name) for name, at in code.shared_offsets.items())
        self._numbers: dict[Site, int] = {}
        self._sites: list[tuple[Site, AccessRole]] = []
        self.hidden: list[LateStores] = []
        self.guesses: list[int] = []
        self._reported: set[tuple[int, int]] = set()
        self._lost: set[tuple[int, int]] = set()
        self._unfenced: set[tuple[int, int]] = set()
        self._early: set[int] = set()
        self.elsewhere: list[tuple[AccessStep, bool]] = []
        self._steps_elsewhere = 0

    @property
    def site_count(self) -> int:
        """How many sites have accessed memory."""
        return len(self._sites)

    def hidden_from(self, own: LateStores | None) -> list[LateStores]:
        """The stores that the chunk with its `own` ones does not see yet."""
        return [each for each in self.hidden if each is not own and each]

    def is_wide(self, number: int) -> bool:
        """Whether a site's accesses may meet those of other launches: atomic or volatile ones."""
        role = self.role(number)
        return role.strong and role.scope not in NARROW

    def note_elsewhere(self, step: AccessStep, *, writes: bool) -> None:
        """Threads access memory that is not the device's own; it is not looked at within a launch.

        Where that is much, what comes later is left out.
        """
        self._steps_elsewhere += step.count
        if self._steps_elsewhere <= _MOST_ELSEWHERE:
            self.elsewhere.append((step, writes))

    def access_of_any(self, number: int, queued_at: str) -> Access:
        """An access by a site, by some thread or other."""
        site, role = self._sites[number]
        what = "atomic" if role.is_atomic else "write" if role.writes else "read"
        return Access(what, replace(self._where(0, site.instruction), block=None, thread=None),
                      queued_at)  # fmt: skip

    def let_go(self) -> None:
        """Forget all accesses."""
        self.in_global = ShadowMemory(0, _reserved, self.shift)
        self.elsewhere.clear()

    def end(self) -> None:
        """The launch is at its end: nobody asks any more what its threads know."""
        self.handovers, self.deferred = Synchronization(self.shift, self.levels), DeferredWork()

    def number_of(self, site: Site) -> int:
        """The number of a site; those beyond what a stamp holds share the last one."""
        number = self._numbers.get(site)
        if number is None:
            number = min(len(self._sites), MOST_SITES - 1)
            if number == len(self._sites):
                instruction, writes = site.instruction, site.writes
                is_guess = id(instruction) in self._code.guesses
                update = self._code.updates.get(id(instruction))
                role = role_of(
                    instruction, writes=writes, is_guess=is_guess, update=update,
                    is_poll=id(instruction) in self._code.polls,
                )  # fmt: skip
                self._sites.append((site, role))
                if is_guess:
                    self.guesses.append(number)
            self._numbers[site] = number
        return number

    def role(self, number: int) -> AccessRole:
        """The role of a site by its number."""
        return self._sites[number][1]

    def level_of(self, scope: str) -> int:
        """How far a scope reaches: from 0, the block, to the last level, all blocks."""
        return {"cta": 0, "cluster": self.levels - 2}.get(scope, self.levels - 1)

    def is_reported(self, first: int, second: int) -> bool:
        """Whether a race of two sites is known."""
        return (first, second) in self._reported

    def is_unfenced(self, first: int, second: int) -> bool:
        """Whether it is known that a proxy fence is missing between two sites."""
        return (first, second) in self._unfenced or (first, second) in self._reported

    def is_told_lost(self, first: int, second: int) -> bool:
        """Whether a write of one site was told that an update of another one lost."""
        return (first, second) in self._lost

    def report_unfenced(
        self, old: int, new: int, proxy: str, space: str, address: int, owner: int
    ) -> None:
        """Report a write that a later read through another proxy may not see."""
        both = np.array([old, new], dtype=np.int64)
        first, second = sites_of(both).tolist()
        self._unfenced.add((first, second))
        missing = _FENCES_OF[proxy]
        is_copy = proxy == ASYNC and self._sites[first][0].instruction.opcode == "cp"
        benign = UNFENCED_COPY if is_copy else ""
        self._add(both, space, address, owner, benign=benign, missing=missing, kind=PROXY_FENCE)

    def report(
        self, old: int, new: int, space: str, address: int, owner: int, *, benign: str
    ) -> None:
        """Report a race between what two stamps tell of, in the shared memory of a block or not."""
        both = np.array([old, new], dtype=np.int64)
        first, second = sites_of(both).tolist()
        is_counted = bool(self.counted.are_counted(threads_of(both))[0])
        if benign == LOST:
            self._lost.add((first, second))
        elif benign not in (SAME_VALUE, HEARD, FENCED):
            self._reported.add((first, second))
        missing = _ATOMIC if benign == LOST else ""
        if in_flight(both)[0] or is_counted:
            name = _work_of(self._sites[first][0].instruction)
            missing = _WORKERS.get(name, _COUNTED) if is_counted else _COPY
        self._add(both, space, address, owner, benign=benign, missing=missing)

    def _add(
        self, both: Stamps, space: str, address: int, owner: int, *, benign: str = "",
        missing: str = "", kind: str = "",
    ) -> None:  # fmt: skip
        first, second = sites_of(both).tolist()
        threads = [
            self.counted.issuer(thread, site)
            for thread, site in zip(threads_of(both).tolist(), (first, second), strict=True)
        ]
        memory = f"of block {self._block_at(owner)}" if self.cluster_blocks > 1 else ""
        if space == "global":
            memory = str(self.memory.find(address) or "")
        self._findings.add(
            Finding(
                check="race",
                kernel=self.kernel,
                first=self._access(threads[0], first),
                second=self._access(threads[1], second),
                space=space,
                address=address,
                nbytes=self._sites[second][0].total,
                memory=memory,
                benign=benign,
                variable=self._variable(space, address),
                missing=missing or self._missing(threads, first, second, space),
                kind=kind,
            )
        )

    def report_early(self, stamp: int, address: int, owner: int) -> None:
        """Report an access to the shared memory of another block that may not have begun."""
        ((thread,), (site,)) = (of(np.array([stamp])).tolist() for of in (threads_of, sites_of))
        if site in self._early:
            return
        self._early.add(site)
        self._findings.add(
            Finding(
                check="race",
                kernel=self.kernel,
                first=self._access(thread, site),
                second=None,
                space="shared",
                address=address,
                nbytes=self._sites[site][0].total,
                memory=f"of block {self._block_at(owner)}",
                benign="",
                variable=self._variable("shared", address),
                missing="a barrier of the cluster, such as cluster.sync(), that comes first",
            )
        )

    def report_texel(self, where: Where, memory: DeviceMemory, address: int, nbytes: int) -> None:
        """Report a read of a texel, of an image at an address, that the launch has written."""
        self._findings.add(
            Finding(
                check="race", kernel=self.kernel, first=Access("read", where), second=None,
                space="texture", address=address, nbytes=nbytes,
                memory=str(memory.find(address) or ""), benign="", missing=_FENCES_OF[TEXTURE],
                kind=PROXY_FENCE,
            )
        )  # fmt: skip

    def report_pending(
        self, begun: Instruction, first: Where, second: Where, register: str
    ) -> None:
        """Report a register that is read before its result has been waited for."""
        name = _work_of(begun)
        wait = "tcgen05.wait::ld" if name == "tcgen05.ld" else "wgmma.commit_group and wait_group"
        self._findings.add(
            Finding(
                check="race", kernel=self.kernel, first=Access("write", first),
                second=Access("read", second), space="register", address=0, nbytes=0, memory="",
                benign="", missing=f"{wait} between them", variable=register, kind=PENDING,
            )
        )  # fmt: skip

    def _variable(self, space: str, address: int) -> str:
        """The name of the variable at an address, where it has one; as it is in CUDA."""
        if space == "shared":
            at = bisect_right(self._shared, address, key=itemgetter(0)) - 1
            return demangled(self._shared[at][1]) if at >= 0 else ""
        allocation = self.memory.find(address)
        words = ("", "") if allocation is None else (*allocation.origin.split(), "", "")
        return demangled(words[1]) if words[0] == "variable" else ""  # as a module's layout says

    def _access(self, thread: int, number: int) -> Access:
        site, role = self._sites[number]
        what = "atomic" if role.is_atomic else "write" if role.writes else "read"
        return Access(what, self._where(thread, site.instruction))

    def _where(self, thread: int, instruction: Instruction) -> Where:
        file, line = source_place(instruction.location, self._code.files)
        return Where(
            kernel=self.kernel,
            block=self._block_at(thread >> self.shift),
            thread=coordinates(thread & (1 << self.shift) - 1, self._block),
            instruction=instruction.text,
            ptx_line=instruction.line,
            source_file=file,
            source_line=line,
        )

    def _missing(self, threads: list[int], first: int, second: int, space: str) -> str:
        one, other = threads
        roles = self.role(first), self.role(second)
        if all(role.strong for role in roles) and not all(role.is_volatile for role in roles):
            narrow = min((role.scope for role in roles), key=self.level_of)
            return f"an atomic operation of scope {narrow} does not reach the other block"
        if one >> self.shift != other >> self.shift:
            ways = ["an atomic operation on both sides"] if any(r.strong for r in roles) else []
            clusters = {(thread >> self.shift) // self.cluster_blocks for thread in threads}
            if self.cluster_blocks > 1 and len(clusters) == 1:
                ways.append("a barrier of the cluster, such as cluster.sync()")
            ways += ["two launches", "a grid-wide barrier"]
            return f"{', '.join(ways)}, or {_HANDED}"
        warp = "__syncwarp() or " if one >> WARP_SHIFT == other >> WARP_SHIFT else ""
        between = f"{warp}__syncthreads() between them"
        # A kernel with atomics may hand over by them where threads meet at no barrier.
        if space == "global" and any(role.is_atomic for _, role in self._sites):
            return f"{between}, or {_HANDED}"
        return between
