"""Random statements that synchronise: barriers of the block, exchanges of a warp."""

from __future__ import annotations

import random
from collections.abc import Callable

from campaigns.random_ptx.programs import SLOT, Node
from campaigns.random_ptx.registers import Picker

_EVERYBODY = "-1"


class Synchronisation(Picker):
    """One stream of statements for a block of some threads.

    Args:
        rng: picks.
        block: threads of a block.
        statements: makes some statements that wait for nobody.
    """

    def __init__(
        self, rng: random.Random, block: int, statements: Callable[[], list[Node]]
    ) -> None:
        super().__init__(rng)
        self._block = block
        self._statements = statements
        self._groups = 0

    def one(self) -> Node:
        """All threads of the block wait for each other, or all of a warp, or those of a branch."""
        kinds = [self._shared, self._reduce]
        if self._block % 32 == 0:
            kinds += [self._warp, self._warp, self._branches, self._branches, self._shuffle]
        if self._block >= 64 and self._block % 32 == 0:
            kinds.append(self._named)
        return self.rng.choice(kinds)()

    def _shared(self) -> Node:
        """Everybody writes, then reads what another one wrote."""
        size, bank = self.rng.choice(((4, "r"), (4, "f"), (8, "d"), (8, "g"), (2, "h")))
        offset = self.rng.randrange(0, 8, size)
        return Node(
            [
                f"st.shared.b{8 * size} [%s5+{offset}], {self.register(bank)};",
                "bar.sync 0;",
                f"rem.u32 %s6, {self.of(32)}, %s1; mad.lo.u32 %s6, %s6, {SLOT}, %s4;",
                f"ld.shared.b{8 * size} {self.register(bank)}, [%s6+{offset}];",
                "bar.sync 0;",
            ]
        )

    def _reduce(self) -> Node:
        flag = self.pick("", "!") + self.register("p")
        if self.rng.random() < 0.5:
            return Node([f"bar.red.popc.u32 {self.of(32)}, 0, {flag};"])
        return Node([f"bar.red.{self.pick('and', 'or')}.pred {self.register('p')}, 0, {flag};"])

    def _named(self) -> Node:
        """The first warp by itself, or what it wrote handed to the others."""
        first = "setp.lt.u32 %q98, %s2, 32;"
        if self.rng.random() < 0.4:
            return Node([first, "@%q98 bar.sync 1, 32;"])
        register = self.of(32)
        return Node(
            [
                first,
                f"@%q98 st.shared.b32 [%s5], {self.of(32)};",
                f"@%q98 bar.arrive 2, {self._block};",
                f"@!%q98 bar.sync 2, {self._block};",
                f"and.b32 %s6, %s2, 31; mad.lo.u32 %s6, %s6, {SLOT}, %s4;",
                f"@!%q98 ld.shared.b32 {register}, [%s6];",
                "bar.sync 0;",
            ]
        )

    def _shuffle(self) -> Node:
        mode, clamp = self.rng.choice((("up", 0), ("down", 31), ("bfly", 31), ("idx", 31)))
        bank = self.pick("r", "f")
        target = self.register(bank)
        if self.rng.random() < 0.5:
            target += f"|{self.register('p')}"
        segment = self.rng.choice((0, 16, 24, 28)) << 8
        by = self.pick(str(self.rng.randrange(32)), self.of(32))
        source = self.register(bank)
        return Node([f"shfl.sync.{mode}.b32 {target}, {source}, {by}, {segment | clamp}, -1;"])

    def _warp(self, mask: str = _EVERYBODY) -> Node:
        """An exchange that does not depend on which lanes there are."""
        r, p = self.of, self.register
        kind = self.pick("vote", "match", "redux", "redux", "elect", "leader", "memory")
        if kind == "vote":
            mode = self.pick("all.pred", "any.pred", "uni.pred", "ballot.b32")
            target = r(32) if mode.startswith("ballot") else p("p")
            return Node([f"vote.sync.{mode} {target}, {self.pick('', '!')}{p('p')}, {mask};"])
        if kind == "match":
            return self._match(mask)
        if kind == "redux":
            return Node([self._redux(mask)])
        elect = f"elect.sync %s8|%q98, {mask};"
        if kind == "elect":
            return Node([elect, f"selp.b32 {r(32)}, %s8, 99, %q98;"])
        if kind == "leader":
            return Node([elect, f"shfl.sync.idx.b32 {r(32)}, {r(32)}, %s8, 31, {mask};"])
        return Node(
            [
                f"st.shared.b32 [%s5], {r(32)};",
                f"bar.warp.sync {mask};",
                elect,
                f"and.b32 %s6, %s2, -32; add.u32 %s6, %s6, %s8; mad.lo.u32 %s6, %s6, {SLOT}, %s4;",
                f"ld.shared.b32 {r(32)}, [%s6];",
                f"bar.warp.sync {mask};",
            ]
        )

    def _match(self, mask: str) -> Node:
        """Of few values, so that some are alike."""
        bits = self.rng.choice((32, 64))
        value = "%s6" if bits == 32 else "%a5"
        cut = f"and.b{bits} {value}, {self.of(bits)}, {self.rng.choice((0, 1, 3, 1 << 16))};"
        if self.rng.random() < 0.5:
            return Node([cut, f"match.any.sync.b{bits} {self.of(32)}, {value}, {mask};"])
        target = f"{self.of(32)}|{self.register('p')}"
        return Node([cut, f"match.all.sync.b{bits} {target}, {value}, {mask};"])

    def _redux(self, mask: str) -> str:
        way = self.rng.randrange(3)
        if way == 0:
            words = f"{self.pick('add', 'min', 'max')}.{self.pick('u32', 's32')}"
        elif way == 1:
            words = f"{self.pick('and', 'or', 'xor')}.b32"
        else:
            words = f"{self.pick('min', 'max')}{self.maybe('.abs')}{self.maybe('.NaN')}.f32"
            return f"redux.sync.{words} {self.register('f')}, {self.register('f')}, {mask};"
        return f"redux.sync.{words} {self.of(32)}, {self.of(32)}, {mask};"

    def _branches(self, mask: str = _EVERYBODY, depth: int = 2) -> Node:
        """The lanes where a predicate holds wait for each other, and so do the others."""
        self._groups += 1
        n, flag = self._groups, self.register("p")
        inner = f"%m{n}"
        sides = []
        for _ in range(2):
            nodes = [*self._statements(), self._warp(inner)]
            if depth > 1 and self.rng.random() < 0.3 and n < 90:
                nodes.append(self._branches(inner, depth - 1))
            sides.append([*nodes, *self._statements()])
        return Node(
            [f"vote.sync.ballot.b32 {inner}, {flag}, {mask};", f"@!{flag} bra OTHERS{n};"],
            sides[0],
            [f"MET{n}:"],
            sides[1],
            [f"bra.uni MET{n};", f"OTHERS{n}:", self._without(inner, mask)],
        )

    def _without(self, inner: str, mask: str) -> str:
        """Turn a group's mask into that of the rest."""
        return f"xor.b32 {inner}, {inner}, {mask};"
