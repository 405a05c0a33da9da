"""The race check of one launch: its instructions, its global memory, and its reports.

Accesses are compared by the rules of `memory_model.py`, never by the order in which the emulator
executed them. `chunk_races.py` does that for each chunk of blocks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.accelerations import ALL, Accelerations, DeferredWork
from ptx.emulate.check.access_step import AccessStep
from ptx.emulate.check.async_copies import VirtualThreads
from ptx.emulate.check.findings import Access, Finding, Findings, demangled
from ptx.emulate.check.kernel_accesses import KernelAccesses
from ptx.emulate.check.lazy_shadow_memory import FEWEST_LISTED, LazyShadowMemory
from ptx.emulate.check.memory_model import AccessRole
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
from ptx.emulate.memory.pointer_extents import Origin
from ptx.emulate.memory.site import Site
from ptx.emulate.model.errors import Where
from ptx.emulate.model.geometry import Dim3, coordinates
from ptx.isa.instruction_facts import (
    ASYNC,
    CONSTANT,
    NARROW,
    TENSOR_MAP,
    TEXTURE,
    InstructionKind,
)
from ptx.isa.model import Address, Instruction, Register, source_place

_MOST_ELSEWHERE = 1 << 23  # accesses of threads
# Why a race may be intentional.
GUESS = "the value read is a guess that a compare-and-swap checks"
SAME_VALUE = "both write the same value"
WITHOUT_ACQUIRE = "the flag or counter was read before a barrier, though no fence comes between"
WITHOUT_RELEASE = (
    "the flag or counter was written after a barrier, though each fence comes before that"
)
LOST = "an update is lost, but each access is volatile or relaxed, which PTX calls no race"
VOLATILE = "volatile, but nothing orders these lanes since compute capability 7.0"
# Synchronisation that would order an access after an asynchronous operation in flight.
_COPY = "a wait for the asynchronous copy, and a barrier after it for other threads"
_WORKERS = {
    "wgmma": "wgmma.wait_group for the product, and after it a barrier or arrival for others",
    "tcgen05.mma": "tcgen05.commit, and a wait for the phase of the mbarrier object that it tells",
    "tcgen05.cp": "tcgen05.commit, and a wait for the phase of the mbarrier object that it tells",
    "tcgen05.ld": "tcgen05.wait::ld, and after it a barrier or arrival for others",
    "tcgen05.st": "tcgen05.wait::st, and after it a barrier or arrival for others",
}
_COUNTED = "a wait for the phase of the mbarrier object that counts the asynchronous copy"
_ATOMIC = (
    "one atomic operation, such as atomicAdd(), in the place of the second one's load and store: "
    "it has loaded before the first one wrote, and that write is lost"
)
PENDING = "result not waited for"
PROXY_FENCE = "proxy fence missing"
# The fence that makes a write visible to a proxy.
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
UNFENCED_COPY = "NVIDIA's libraries leave this fence out after cp.async"
_SYNCHRONISED = "a flag or lock handed over by atomics with __threadfence() on both sides"


_ONE_INDEX = "do two threads compute one index by mistake?"
_UPDATE = "an atomic operation, such as atomicAdd()"


def _address_of(site: Site) -> Address | None:
    """Return the operand with the address of a load or store; None of other instructions."""
    if site.facts.kind not in (InstructionKind.LOAD, InstructionKind.STORE):
        return None
    addresses = [each for each in site.instruction.operands if isinstance(each, Address)]
    return addresses[0] if len(addresses) == 1 else None


def _reserved(units: int) -> Stamps:
    return reserve(units * 8).view(np.int64)


def _work_of(instruction: Instruction) -> str:
    """Return the name of an instruction for tensor cores."""
    facts = instruction.facts
    return facts.name if facts.opcode == "tcgen05" else facts.opcode


class RaceCheck:
    """The races of one launch.

    Args:
        code: the kernel.
        block: threads of a block.
        block_at: gives the coordinates of a block by its number.
        memory: the device's memory.
        findings: takes the races.
        cluster_blocks: blocks of a cluster.
        accelerations: what saves work; tests leave some out.
        origins_of: returns the parameters or variables that the addresses of a site come from.

    Attributes:
        levels: how many scopes there are: a block, a cluster if it has several blocks, and all.
        lowest_level: the first level at which accesses can synchronise.
        has_narrow: whether any access names a scope below the last level.
        shift: turns the number of a thread into that of its block.
        global_shift, shared_shift: turn the number of a byte into that of its unit.
        in_global: the accesses to global memory.
        synchronization: the synchronisation of threads through memory, except `deferred`.
        virtual_threads: the threads that perform asynchronous operations.
        proxy_fences: the proxy fences, by their kinds.
        reads_by_async: whether anything reads shared memory through the async proxy.
        has_copies: whether any asynchronous copy was begun.
        stored_texels: flags of bytes that surfaces wrote, by images' addresses.
        hidden: of each chunk, the stores that the others do not see yet.
        guesses: the sites, by number, of speculative reads so far.
        elsewhere: accesses to memory that is not the device's own, and whether they are writes.
    """

    def __init__(
        self,
        code: KernelFacts,
        block: Dim3,
        block_at: Callable[[int], Dim3],
        memory: DeviceMemory,
        findings: Findings,
        cluster_blocks: int,
        accelerations: Accelerations = ALL,
        origins_of: Callable[[Site], frozenset[Origin]] = lambda site: frozenset(),
    ) -> None:
        self.kernel: str = code.kernel
        self.cluster_blocks: int = cluster_blocks
        self.accelerations: Accelerations = accelerations
        self.memory: DeviceMemory = memory
        self.levels: int = 3 if cluster_blocks > 1 else 2
        self.shift: int = block_shift(block[0] * block[1] * block[2])
        self._accesses = accesses = KernelAccesses.of(code)
        self.has_narrow: bool = accesses.has_narrow
        self.reads_by_async: bool = accesses.reads_by_async
        self.global_shift: int = accesses.global_shift
        self.shared_shift: int = accesses.shared_shift
        # Without narrow scopes the last level alone is needed.
        is_narrow = self.has_narrow or code.may_fence_narrowly
        self.lowest_level: int = 0 if is_narrow else self.levels - 1
        self.in_global: ShadowMemory = self.shadow_memory(
            memory.nbytes >> self.global_shift, _reserved, FEWEST_LISTED
        )
        self.synchronization: Synchronization = Synchronization(
            self.shift, self.levels, accelerations
        )
        self.deferred: DeferredWork = DeferredWork() if accelerations.defers else DeferredWork(-1)
        self.virtual_threads: VirtualThreads = VirtualThreads()
        self.proxy_fences: dict[str, ProxyFenceLog] = {}
        self.has_copies: bool = False
        self.stored_texels: dict[int, NDArray[np.uint8]] = {}
        self.hidden: list[LateStores] = []
        self.guesses: list[int] = []
        self.elsewhere: list[tuple[AccessStep, bool]] = []
        self._elsewhere_count = 0
        self._code = code
        self._block = block
        self._block_at = block_at
        self._findings = findings
        self._origins_of = origins_of
        self._shared = sorted((offset, name) for name, offset in code.shared_offsets.items())
        self._numbers: dict[Site, int] = {}
        self._sites: list[tuple[Site, AccessRole]] = []
        # Pairs of sites that were reported, by the kind of the report.
        self._reported: set[tuple[int, int]] = set()
        self._lost: set[tuple[int, int]] = set()
        self._unfenced: set[tuple[int, int]] = set()
        self._early: set[int] = set()

    def end(self) -> None:
        """Discard the clocks of the launch's threads: there are no queries after its end."""
        del self.synchronization, self.deferred

    def forget_accesses(self) -> None:
        """Forget all accesses."""
        self.in_global = ShadowMemory(0, _reserved, self.shift)
        self.elsewhere.clear()

    def shadow_memory(
        self, units: int, made_by: Callable[[int], Stamps], fewest: int
    ) -> ShadowMemory:
        """Return a shadow memory of so many units; `fewest`: bytes of listed addresses at least."""
        if self.accelerations.lists_accesses:
            return LazyShadowMemory(units, made_by, self.shift, fewest, self.accelerations)
        return ShadowMemory(units, made_by, self.shift)

    def note_elsewhere(self, step: AccessStep, *, writes: bool) -> None:
        """Record an access to memory that is not the device's own, for other launches.

        Limitation: it is not compared within a launch, and after many accesses not recorded.
        """
        self._elsewhere_count += step.count
        if self._elsewhere_count <= _MOST_ELSEWHERE:
            self.elsewhere.append((step, writes))

    # Sites: the instructions that access memory.

    @property
    def site_count(self) -> int:
        """Number of sites that have accessed memory."""
        return len(self._sites)

    def number_of(self, site: Site) -> int:
        """Return the number of a site; those beyond what a stamp holds share the last one."""
        number = self._numbers.get(site)
        if number is None:
            number = min(len(self._sites), MOST_SITES - 1)
            if number == len(self._sites):
                role = self._accesses.role(site, self._code)
                self._sites.append((site, role))
                if role.is_guess:
                    self.guesses.append(number)
            self._numbers[site] = number
        return number

    def role(self, number: int) -> AccessRole:
        """Return the role of a site by its number."""
        return self._sites[number][1]

    def level_of(self, scope: str) -> int:
        """Return how far a scope reaches: from 0, the block, to the last level, all blocks."""
        return {"cta": 0, "cluster": self.levels - 2}.get(scope, self.levels - 1)

    def is_wide(self, number: int) -> bool:
        """Return whether a site's accesses are strong for other launches, too."""
        role = self.role(number)
        return role.strong and role.scope not in NARROW

    # Reports.

    def is_reported(self, first: int, second: int) -> bool:
        """Return whether a race of two sites was reported."""
        return (first, second) in self._reported

    def is_unfenced(self, first: int, second: int) -> bool:
        """Return whether a missing proxy fence between two sites was reported."""
        return (first, second) in self._unfenced or (first, second) in self._reported

    def is_lost(self, first: int, second: int) -> bool:
        """Return whether a lost update of two sites was reported."""
        return (first, second) in self._lost

    def report(
        self, old: int, new: int, space: str, address: int, owner: int, *, benign: str
    ) -> None:
        """Report a race of two accesses by their stamps.

        Args:
            old, new: the stamps.
            space, address: the memory.
            owner: the block whose shared memory it is.
            benign: why it may be intentional, or "".
        """
        stamps = np.array([old, new], dtype=np.int64)
        first, second = sites_of(stamps).tolist()
        is_virtual = bool(self.virtual_threads.are_virtual(threads_of(stamps))[0])
        if benign == LOST:
            self._lost.add((first, second))
        elif benign not in (SAME_VALUE, WITHOUT_ACQUIRE, WITHOUT_RELEASE):
            self._reported.add((first, second))
        missing = _ATOMIC if benign == LOST else ""
        if is_virtual:
            missing = _WORKERS.get(_work_of(self._sites[first][0].instruction), _COUNTED)
        elif in_flight(stamps)[0]:
            missing = _COPY
        self._report_pair(stamps, space, address, owner, benign=benign, missing=missing)

    def report_unfenced(
        self, old: int, new: int, proxy: str, space: str, address: int, owner: int
    ) -> None:
        """Report a write that a later read through another proxy may not see."""
        stamps = np.array([old, new], dtype=np.int64)
        first, second = sites_of(stamps).tolist()
        self._unfenced.add((first, second))
        is_copy = proxy == ASYNC and self._sites[first][0].facts.kind is InstructionKind.COPY
        self._report_pair(
            stamps,
            space,
            address,
            owner,
            benign=UNFENCED_COPY if is_copy else "",
            missing=self._overlap(first, second) + _FENCES_OF[proxy],
            kind=PROXY_FENCE,
        )

    def report_early(self, stamp: int, address: int, owner: int) -> None:
        """Report an access to the shared memory of another block that may not have begun."""
        stamps = np.array([stamp])
        thread, site = int(threads_of(stamps)[0]), int(sites_of(stamps)[0])
        if site not in self._early:
            self._early.add(site)
            self._report(
                self._access(thread, site),
                None,
                "shared",
                address,
                self._sites[site][0].total,
                memory=f"shared memory of block {self._block_at(owner)}",
                variable=self._variable("shared", address),
                missing="a barrier of the cluster, such as cluster.sync(), that comes first",
            )

    def report_texel(self, where: Where, memory: DeviceMemory, address: int, nbytes: int) -> None:
        """Report a read of a texel, of an image at an address, that the launch has written."""
        self._report(
            Access("read", where),
            None,
            "texture",
            address,
            nbytes,
            memory=str(memory.find(address) or ""),
            missing=_FENCES_OF[TEXTURE],
            kind=PROXY_FENCE,
        )

    def report_pending(
        self, producer: Instruction, first: Where, second: Where, register: str
    ) -> None:
        """Report a register that is read before its result has been waited for."""
        name = _work_of(producer)
        wait = "tcgen05.wait::ld" if name == "tcgen05.ld" else "wgmma.commit_group and wait_group"
        self._report(
            Access("write", first),
            Access("read", second),
            "register",
            0,
            0,
            missing=f"{wait} between them",
            variable=register,
            kind=PENDING,
        )

    def access_of_any(self, number: int, queued_at: str) -> Access:
        """Return an access by a site, without a thread."""
        access = self._access(0, number)
        where = replace(access.where, block=None, thread=None)
        return replace(access, where=where, queued_at=queued_at)

    def _report_pair(
        self,
        stamps: Stamps,
        space: str,
        address: int,
        owner: int,
        *,
        benign: str = "",
        missing: str = "",
        kind: str = "",
    ) -> None:
        (first, second), (first_thread, second_thread) = (
            sites_of(stamps).tolist(),
            threads_of(stamps).tolist(),
        )
        first_thread = self.virtual_threads.issuer(first_thread, first)
        second_thread = self.virtual_threads.issuer(second_thread, second)
        memory = ""
        if space == "global":
            memory = str(self.memory.find(address) or "")
        elif self.cluster_blocks > 1:
            memory = f"shared memory of block {self._block_at(owner)}"
        self._report(
            self._access(first_thread, first),
            self._access(second_thread, second),
            space,
            address,
            self._sites[second][0].total,
            memory=memory,
            benign=benign,
            variable=self._variable(space, address),
            missing=missing
            or self._question(first, second)
            + self._missing(first_thread, second_thread, first, second, space),
            kind=kind,
        )

    def _report(
        self,
        first: Access,
        second: Access | None,
        space: str,
        address: int,
        nbytes: int,
        *,
        missing: str,
        memory: str = "",
        variable: str = "",
        benign: str = "",
        kind: str = "",
    ) -> None:
        self._findings.add(
            Finding(
                check="race",
                kernel=self.kernel,
                first=first,
                second=second,
                space=space,
                address=address,
                nbytes=nbytes,
                memory=memory,
                benign=benign,
                missing=missing,
                variable=variable,
                kind=kind,
            )
        )

    def _variable(self, space: str, address: int) -> str:
        """Return the name in CUDA of the variable at an address, or ""."""
        if space == "shared":
            index = bisect_right(self._shared, address, key=itemgetter(0)) - 1
            return demangled(self._shared[index][1]) if index >= 0 else ""
        allocation = self.memory.find(address)
        words = ("", "") if allocation is None else (*allocation.origin.split(), "", "")
        return demangled(words[1]) if words[0] == "variable" else ""  # as a module's layout says

    def _access(self, thread: int, number: int) -> Access:
        site, role = self._sites[number]
        instruction = site.instruction
        file, line = source_place(instruction.location, self._code.files)
        where = Where(
            kernel=self.kernel,
            block=self._block_at(thread >> self.shift),
            thread=coordinates(thread & (1 << self.shift) - 1, self._block),
            instruction=instruction.text,
            ptx_line=instruction.line,
            source_file=file,
            source_line=line,
        )
        return Access("atomic" if role.is_atomic else "write" if role.writes else "read", where)

    def _overlap(self, first: int, second: int) -> str:
        """Return the question whether two parameters of two sites overlap; "" if they are one."""
        origins = [self._origins_of(self._sites[number][0]) for number in (first, second)]
        names = [origin.shown for each in origins for origin in each if origin.parameter >= 0]
        if len(names) != 2 or not all(origins) or names[0] == names[1]:
            return ""
        names.sort(key=lambda name: (len(name), name))
        return f"do arguments {names[0]} and {names[1]} overlap by mistake? Else "

    def _question(self, first: int, second: int) -> str:
        """Return the question about another cause of a race of two sites; "" if there is none.

        Not every race lacks synchronisation: its accesses may not be meant to meet.
        """
        (first_site, first_role), (second_site, second_role) = (
            self._sites[first],
            self._sites[second],
        )
        if first_role.strong or second_role.strong:
            return ""
        overlap = self._overlap(first, second)
        if overlap:
            return overlap
        addresses = [_address_of(site) for site in (first_site, second_site)]
        have_index = all(isinstance(each and each.base, Register) for each in addresses)
        question = f"{_ONE_INDEX} Else " if have_index else ""
        if first_role.writes and second_role.writes:
            return question
        is_update = addresses[0] is not None and addresses[0] == addresses[1]
        return f"{question}{_UPDATE}, " if is_update else ""

    def _missing(
        self, first_thread: int, second_thread: int, first: int, second: int, space: str
    ) -> str:
        """Return the remedies that would order two threads at two sites."""
        roles = self.role(first), self.role(second)
        is_strong = roles[0].strong, roles[1].strong
        if all(is_strong) and not (roles[0].is_volatile and roles[1].is_volatile):
            narrow = min(roles[0].scope, roles[1].scope, key=self.level_of)
            return f"an atomic operation of scope {narrow} does not reach the other block"
        blocks = first_thread >> self.shift, second_thread >> self.shift
        if blocks[0] != blocks[1]:
            remedies = ["an atomic operation on both sides"] if any(is_strong) else []
            if first == second:
                remedies = ["an atomic operation", "one block that writes alone"]
            if blocks[0] // self.cluster_blocks == blocks[1] // self.cluster_blocks:
                remedies.append("a barrier of the cluster, such as cluster.sync()")
            remedies += ["two launches", "a grid-wide barrier"]
            return f"{', '.join(remedies)}, or {_SYNCHRONISED}"
        warp = (
            "__syncwarp() or " if first_thread >> WARP_SHIFT == second_thread >> WARP_SHIFT else ""
        )
        barrier_remedy = f"{warp}__syncthreads() between them"
        if first == second:  # both execute one instruction, which may be in no loop
            barrier_remedy = (
                "an atomic operation, one thread that writes alone, or, in a loop, "
                f"{warp}__syncthreads() in each step"
            )
        # A kernel with atomics may use flags where threads meet at no barrier.
        if space == "global" and any(role.is_atomic for _, role in self._sites):
            return f"{barrier_remedy}, or {_SYNCHRONISED}"
        return barrier_remedy
