"""Straight kernels of few operations: as PTX for the check, and as data for the model."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Final

from tests.emulator.engine.kernel_runner import ptx_text

WORDS: Final = 4
"""Words that all threads access; so many more each block has for itself, and one each thread."""
WARP: Final = 32
HALF: Final = 16
SCOPES: Final = ("cta", "cluster", "gpu")


@dataclass(frozen=True, slots=True)
class Geometry:
    """Blocks and threads of a block, of which a chunk and a cluster have so many blocks."""

    blocks: int
    threads: int
    chunk_blocks: int
    cluster: int = 1

    @property
    def everyone(self) -> int:
        """All threads of the grid."""
        return self.blocks * self.threads


@dataclass(frozen=True, slots=True)
class Guard:
    """Which threads execute an operation: those of some numbers, of one block or of all.

    `half`: of each warp the first or the second half alone.
    """

    block: int | None = None
    start: int = 0
    stop: int = 1 << 16
    half: int | None = None

    def holds(self, block: int, thread: int) -> bool:
        """Whether this thread is one of them."""
        return (
            self.block in (None, block)
            and self.start <= thread < self.stop
            and self.half in (None, thread % WARP // HALF)
        )

    @property
    def tests(self) -> list[str]:
        """As PTX, which sets %p."""
        lines = [f"setp.ge.u32 %p, %thread, {self.start};"]
        if self.stop < Guard().stop:
            lines.append(f"setp.lt.and.u32 %p, %thread, {self.stop}, %p;")
        if self.block is not None:
            lines.append(f"setp.eq.and.u32 %p, %block, {self.block}, %p;")
        if self.half is not None:
            lines.append(f"setp.eq.and.u32 %p, %half, {self.half}, %p;")
        return lines


@dataclass(frozen=True, slots=True)
class Operation:
    """One instruction.

    Attributes:
        guard: who executes it.
        kind: an access: "load", "store", "add", "swap" (which finds another value) or "copy" (from
            a global word to the same shared one, until an "await"); "fence"; "barrier", "named
            barrier" (of all that the guard names in a block), "warp barrier" (of all that it names
            in a warp), "cluster barrier" ("relaxed" or not); "arrive" and, behind it, "wait" of
            others at one named barrier; "arrive at object" and "wait at object", an mbarrier.
        order: "weak", "volatile", "relaxed", "acquire", "release" or "acq_rel".
        scope: one of `SCOPES`, where there is an order.
        space: "global" or "shared".
        rank: of the block of the cluster whose shared memory it is; None for the own one.
        place: "word", "block" (one of each block) or "own" (one of each thread).
        word: its number, or that of the barrier; of objects there is one.
        count: how many of a block arrive and wait at it.
        nbytes: how much of the word it accesses, from its beginning; all of it by strong ones.
    """

    guard: Guard
    kind: str
    order: str = "weak"
    scope: str = "gpu"
    space: str = "global"
    place: str = "word"
    word: int = 0
    nbytes: int = 4
    count: int = 0
    rank: int | None = None

    @property
    def is_access(self) -> bool:
        """Whether it reads or writes memory."""
        return self.kind in ("load", "store", "add", "swap", "copy")

    def owner(self, block: int, geometry: Geometry) -> int:
        """The block whose memory it is, 0 for that of all."""
        if self.space == "global":
            return 0
        return (
            block if self.rank is None else block // geometry.cluster * geometry.cluster + self.rank
        )

    def index(self, block: int, thread: int, geometry: Geometry) -> int:
        """The word that a thread accesses."""
        if self.place == "word":
            return self.word
        number = block * geometry.threads + thread
        return WORDS + block if self.place == "block" else WORDS + geometry.blocks + number

    def text(self, number: int) -> str:
        """As PTX in one line; `number` tells its values from those of others."""
        if self.is_access:
            return self._access(number)
        if self.kind == "wait at object":
            wait = "mbarrier.try_wait.parity.shared.b64 %q, [object], 0;"
            return f"@!%p bra GO; WAIT: {wait} @!%q bra WAIT; GO:"
        how = ".relaxed" if self.order == "relaxed" else ""
        masks = {None: "0xffffffff", 0: "0x0000ffff", 1: "0xffff0000"}
        return (
            "@%p "
            + {
                "fence": f"fence.{'acq_rel' if self.order == 'weak' else 'sc'}.{self.scope};",
                "barrier": "bar.sync 0;",
                "cluster barrier": f"barrier.cluster.arrive{how}; barrier.cluster.wait;",
                "named barrier": f"bar.sync {self._barrier}, {self.guard.stop - self.guard.start};",
                "warp barrier": f"bar.warp.sync {masks[self.guard.half]};",
                "arrive": f"bar.arrive {self.word}, {self.count};",
                "wait": f"bar.sync {self.word}, {self.count};",
                "arrive at object": "mbarrier.arrive.shared.b64 _, [object];",
                "await": "cp.async.wait_all;",
            }[self.kind]
        )

    @property
    def _barrier(self) -> int:
        """A barrier of these warps alone; two warps with other numbers at one are a fault."""
        return 6 + self.guard.start // 32 * 3 + (self.guard.stop - 1) // 32

    def _access(self, number: int) -> str:
        words = {"weak": "", "volatile": ".volatile"}.get(self.order, f".{self.order}.{self.scope}")
        space = self.space if self.rank is None else "shared::cluster"
        where, bits = f"{words}.{space}", 8 * self.nbytes
        if self.kind == "load":
            what = f"@%p ld{where}.u{bits} %value, [%at];"
        elif self.kind == "store":
            what = f"add.u32 %value, %global, {1000 * number}; @%p st{where}.u{bits} [%at], %value;"
        elif self.kind == "add":
            what = f"@%p atom{where}.add.u32 %value, [%at], {1000 * number};"
        elif self.kind == "swap":
            what = f"@%p atom{where}.cas.b32 %value, [%at], 0xffffffff, 7;"
        else:
            what = (
                "sub.u64 %to, %at, %memory; add.u64 %to, %to, %tile;"
                " @%p cp.async.ca.shared.global [%to], [%at], 4;"
            )
        return f"{self._address()} {what}"

    def _address(self) -> str:
        base = "%memory" if self.space == "global" else "%tile"
        far = "" if self.rank is None else f" mapa.shared::cluster.u64 %at, %at, {self.rank};"
        if self.place == "word":
            return f"add.u64 %at, {base}, {4 * self.word};{far}"
        index, first = ("%block", "%words") if self.place == "block" else ("%global", "%blocks")
        return f"add.u32 %i, {index}, {first}; mad.wide.u32 %at, %i, 4, {base};{far}"


@dataclass(frozen=True, slots=True)
class Kernel:
    """Operations, one after the other and so many times, of all threads that their guards name."""

    geometry: Geometry
    operations: tuple[Operation, ...]
    times: int = 1

    @property
    def words(self) -> int:
        """How many words of each space they may access."""
        return WORDS + self.geometry.blocks + self.geometry.everyone

    @property
    def ptx(self) -> str:
        """A module with the kernel "k", which takes the global memory's address."""
        lines = [
            ".reg .pred %p, %q; .reg .u64 %memory, %tile, %at, %to;",
            ".reg .u32 %thread, %block, %half, %global, %value, %i, %words, %blocks, %turn;",
            "mov.u32 %thread, %tid.x; mov.u32 %block, %ctaid.x; bfe.u32 %half, %thread, 4, 1;",
            f"mad.lo.u32 %global, %block, {self.geometry.threads}, %thread;",
            f"mov.u32 %words, {WORDS}; mov.u32 %blocks, {WORDS + self.geometry.blocks};",
            "ld.param.u64 %memory, [memory]; mov.u64 %tile, tile;",
        ]
        if self.geometry.cluster > 1:  # all of them have begun
            lines.append("barrier.cluster.arrive; barrier.cluster.wait;")
        arriving = [each.count for each in self.operations if each.kind == "arrive at object"]
        if arriving:
            lines.append("setp.eq.u32 %p, %thread, 0;")
            lines.append(f"@%p mbarrier.init.shared.b64 [object], {arriving[0]}; bar.sync 0;")
        lines.append("mov.u32 %turn, 0; AGAIN:")
        for number, each in enumerate(self.operations):
            lines += [*each.guard.tests, f"{each.text(number + 1)} // {number}"]
        lines.append(f"add.u32 %turn, %turn, 1; setp.lt.u32 %q, %turn, {self.times};")
        lines.append("@%q bra AGAIN; ret;")
        before = f".shared .align 8 .b64 object; .shared .align 4 .b8 tile[{4 * self.words}];"
        return ptx_text("\n".join(lines), ".param .u64 memory", before)


def random_kernel(rng: random.Random) -> Kernel:
    """A kernel in which something is handed over, mostly but for one mistake or two."""
    blocks, cluster = rng.choice([(1, 1), (1, 1), (2, 1), (3, 1), (2, 2), (4, 2)])
    geometry = Geometry(
        blocks, rng.choice([2, 32, 64, 64, 96]), rng.choice([cluster, blocks]), cluster
    )
    operations: list[Operation] = []
    for _ in range(rng.randint(1, 3)):
        operations += _handed_over(rng, geometry) if rng.random() < 0.6 else _some(rng, geometry)
    for _ in range(rng.choice([0, 1, 1, 2])):
        operations = _mistaken(rng, geometry, operations)
    if rng.random() < 0.25:
        return Kernel(geometry, tuple(operations), rng.choice([2, 3]))
    for two in _arrivals(rng, geometry):
        first, second = sorted(rng.choices(range(len(operations) + 1), k=2))
        operations.insert(second, two[1])
        operations.insert(first, two[0])
    return Kernel(geometry, tuple(operations))


def _arrivals(rng: random.Random, geometry: Geometry) -> list[tuple[Operation, Operation]]:
    """Some threads arrive at a barrier, others wait there; each barrier is used once."""
    made = []
    if rng.random() < 0.25 and geometry.threads > WARP:
        border = rng.randrange(WARP, geometry.threads, WARP)
        some, others = Guard(stop=border), Guard(start=border, stop=geometry.threads)
        if rng.random() < 0.5:
            some, others = others, some
        arrive = Operation(some, "arrive", word=2, count=geometry.threads)
        made.append((arrive, replace(arrive, guard=others, kind="wait")))
    if rng.random() < 0.25:
        some, others = (replace(_guard(rng, geometry), block=None) for _ in range(2))
        count = sum(some.holds(0, thread) for thread in range(geometry.threads))
        if count:
            arrive = Operation(some, "arrive at object", word=0, count=count)
            made.append((arrive, replace(arrive, guard=others, kind="wait at object")))
    return made


def _guard(rng: random.Random, geometry: Geometry) -> Guard:
    block = rng.choice([None, *range(geometry.blocks)])
    what = rng.random()
    if what < 0.4:
        thread = rng.randrange(geometry.threads)
        return Guard(block, thread, thread + 1)
    if what < 0.6:
        return replace(_warps(rng, geometry), block=block)
    return Guard(block, half=rng.choice([None, None, None, 0, 1]))


def _warps(rng: random.Random, geometry: Geometry) -> Guard:
    """Some warps of all blocks, one after the other."""
    count = -(-geometry.threads // WARP)
    first = rng.randrange(count)
    return Guard(None, first * WARP, rng.randint(first + 1, count) * WARP)


def _access(rng: random.Random, geometry: Geometry) -> Operation:
    kind = rng.choice(["load", "load", "store", "store", "add", "swap", "copy"])
    if kind == "copy":
        place, word = rng.choice(["word", "own"]), rng.randrange(WORDS)
        return Operation(_guard(rng, geometry), kind, place=place, word=word)
    orders = {
        "load": ["weak", "weak", "volatile", "relaxed", "acquire"],
        "store": ["weak", "weak", "volatile", "relaxed", "release"],
    }.get(kind, ["relaxed", "relaxed", "acquire", "release", "acq_rel"])
    rank = rng.randrange(2) if geometry.cluster > 1 and rng.random() < 0.7 else None
    made = Operation(
        _guard(rng, geometry),
        kind,
        rng.choice(orders),
        rng.choice(SCOPES),
        rng.choice(["global", "global", "shared"]),
        rng.choice(["word", "word", "block", "own"]),
        rng.randrange(WORDS),
    )
    if made.order == "weak":
        made = replace(made, nbytes=rng.choice([1, 2, 4, 4]))
    return replace(made, rank=rank) if made.space == "shared" else made


def _meeting(rng: random.Random, geometry: Geometry) -> Operation:
    kind = rng.choice(
        ["fence", "fence", "fence", "barrier", "named barrier", "warp barrier", "await"]
    )
    if kind == "await":
        return Operation(_guard(rng, geometry), kind)
    if kind == "fence":
        order, scope = rng.choice(["weak", "acq_rel"]), rng.choice(SCOPES)
        return Operation(_guard(rng, geometry), kind, order, scope)
    if kind == "barrier" and geometry.cluster > 1 and rng.random() < 0.7:
        return Operation(Guard(), "cluster barrier", rng.choice(["weak", "weak", "relaxed"]))
    if kind == "barrier" or geometry.threads % WARP:
        return Operation(Guard(), "barrier")
    guard = _warps(rng, geometry)
    if kind == "warp barrier":
        guard = replace(guard, half=rng.choice([None, None, 0, 1]))
    return Operation(replace(guard, block=rng.choice([None, 0])), kind)


def _some(rng: random.Random, geometry: Geometry) -> list[Operation]:
    return [
        _access(rng, geometry) if rng.random() < 0.65 else _meeting(rng, geometry)
        for _ in range(rng.randint(1, 4))
    ]


def _handed_over(rng: random.Random, geometry: Geometry) -> list[Operation]:
    """Some threads write data and then a flag, others read the flag and then the data."""
    writers, readers = _guard(rng, geometry), _guard(rng, geometry)
    scope = rng.choice([*SCOPES, "gpu"])
    data = replace(_access(rng, geometry), order="weak", kind="store", guard=writers)
    flag = replace(
        data,
        space="global",
        rank=None,
        place="word",
        word=rng.randrange(WORDS),
        scope=scope,
        nbytes=4,
    )
    if rng.random() < 0.5:
        first = [
            Operation(writers, "fence", scope=scope),
            replace(flag, kind=rng.choice(["add", "store"]), order="relaxed"),
        ]
    else:
        first = [replace(flag, kind=rng.choice(["add", "store"]), order="release")]
    flag = replace(flag, guard=readers)
    if rng.random() < 0.5:
        second = [
            replace(flag, kind=rng.choice(["add", "load", "swap"]), order="relaxed"),
            Operation(readers, "fence", scope=scope),
        ]
    else:
        second = [replace(flag, kind=rng.choice(["add", "load", "swap"]), order="acquire")]
    last = replace(data, guard=readers, kind=rng.choice(["load", "store"]))
    if rng.random() < 0.3:
        second.append(Operation(Guard(), "barrier"))
        last = replace(last, guard=_guard(rng, geometry))
    return [data, *first, *second, last]


def _mistaken(
    rng: random.Random, geometry: Geometry, operations: list[Operation]
) -> list[Operation]:
    """The same with one operation more, or less, or another one."""
    at = rng.randrange(len(operations))
    what = rng.random()
    if what < 0.3 and len(operations) > 1:
        return operations[:at] + operations[at + 1 :]
    if what < 0.6:
        more = _access(rng, geometry) if rng.random() < 0.5 else _meeting(rng, geometry)
        return [*operations[:at], more, *operations[at:]]
    old = operations[at]
    if old.is_access or old.kind == "fence":
        changes = {"scope": rng.choice(SCOPES)} if what < 0.8 else {"guard": _guard(rng, geometry)}
        return [*operations[:at], replace(old, **changes), *operations[at + 1 :]]
    return operations
