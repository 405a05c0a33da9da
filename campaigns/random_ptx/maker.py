"""Random valid programs: nested loops and branches around everything else that there is."""

from __future__ import annotations

import random

from campaigns.random_ptx.accesses import Accesses
from campaigns.random_ptx.conversions import Conversions
from campaigns.random_ptx.floats import FloatInstructions
from campaigns.random_ptx.instructions import Instructions
from campaigns.random_ptx.programs import Node, Program
from campaigns.random_ptx.registers import COUNTS, Picker
from campaigns.random_ptx.synchronisation import Synchronisation


class ProgramMaker(Picker):
    """Makes one random program."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._block = rng.choice((32, 64, 96, 96, 40))
        floats = FloatInstructions(rng, flushing=rng.random() < 0.5)
        self._streams = (Instructions(rng), floats, Conversions(rng, floats))
        # Programs of integers alone, of floats for the most part, and of both.
        self._weights = rng.choice(((1, 0, 0), (2, 6, 3), (4, 3, 2)))
        self._accesses = Accesses(rng)
        self._synchronisation = Synchronisation(
            rng, self._block, lambda: self._nodes(rng.randrange(3), 1)
        )
        self._labels = 0
        self._functions = 0

    def make(self) -> Program:
        """A program of a few dozen statements."""
        functions: list[list[Node]] = []
        for _ in range(self.rng.choice((0, 0, 1, 2))):
            functions.append(self._nodes(self.rng.randrange(1, 6), 2, private=True))
            self._functions = len(functions)
        nodes = self._nodes(self.rng.randrange(3, 14), 3, top=True)
        hidden = frozenset(n for n in range(COUNTS["f"]) if self.rng.random() < 0.4)
        # Many chunks in a row share what they have in common.
        grid = self.rng.choice((1, 2, 3)) if self.rng.random() < 0.7 else self.rng.choice((64, 300))
        return Program(nodes, functions, self._block, grid, hidden)

    def _nodes(
        self, count: int, depth: int, *, private: bool = False, top: bool = False
    ) -> list[Node]:
        """Statements: `private` ones touch no memory, those at the `top` are for all threads."""
        return [self._node(depth, private=private, top=top) for _ in range(count)]

    def _node(self, depth: int, *, private: bool, top: bool) -> Node:
        chance = self.rng.random()
        if depth and chance < 0.12:
            return self._branch(depth, private=private)
        if depth and chance < 0.22:
            return self._loop(depth, private=private)
        if depth and chance < 0.25:
            return self._switch(depth, private=private)
        if top and chance < 0.37:
            return self._synchronise(depth)
        if not private and chance < 0.48:
            return self._accesses.one()
        if self._functions and chance < 0.53 and not private:
            return self._call()
        (stream,) = self.rng.choices(self._streams, self._weights)
        return Node([stream.one()])

    def _label(self) -> int:
        self._labels += 1
        return self._labels

    def _branch(self, depth: int, *, private: bool) -> Node:
        n = self._label()
        condition = self.pick("", "!") + self.register("p")
        size = self.rng.randrange(1, 5)
        other = self._nodes(self.rng.randrange(3), depth - 1, private=private)
        return Node(
            [f"@{condition} bra ELSE{n};"],
            self._nodes(size, depth - 1, private=private),
            [f"END{n}:"],
            other,
            [f"bra.uni END{n};", f"ELSE{n}:"],
        )

    def _loop(self, depth: int, *, private: bool) -> Node:
        """A loop whose count differs from thread to thread."""
        n = self._label()
        count = self.pick("3", "7")
        return Node(
            [f"and.b32 %i{n % 99}, {self.of(32)}, {count};", f"LOOP{n}:"],
            self._nodes(self.rng.randrange(1, 5), depth - 1, private=private),
            [
                f"add.s32 %i{n % 99}, %i{n % 99}, -1;",
                f"setp.ge.s32 %q{n % 98}, %i{n % 99}, 0;",
                f"@%q{n % 98} bra LOOP{n};",
            ],
        )

    def _switch(self, depth: int, *, private: bool) -> Node:
        """An indexed branch; its last case is the other side."""
        n = self._label()
        return Node(
            [
                f"CASES{n}: .branchtargets ONE{n}, TWO{n}, ONE{n}, OUT{n};",
                f"and.b32 %s6, {self.of(32)}, 3; brx.idx %s6, CASES{n};",
                f"ONE{n}:",
            ],
            self._nodes(self.rng.randrange(3), depth - 1, private=private),
            [f"OUT{n}:"],
            self._nodes(self.rng.randrange(3), depth - 1, private=private),
            [f"TWO{n}:"],
        )

    def _synchronise(self, depth: int) -> Node:
        """Threads wait for each other: now and then in a loop, or after some of them have gone."""
        if depth > 1 and self.rng.random() < 0.15:
            n = self._label()
            return Node(
                [f"mov.u32 %i{n % 99}, {self.rng.randrange(1, 4)};", f"AGAIN{n}:"],
                self._nodes(self.rng.randrange(1, 4), depth - 1, top=True),
                [
                    f"sub.u32 %i{n % 99}, %i{n % 99}, 1; setp.ne.u32 %q{n % 98}, %i{n % 99}, 0;",
                    f"@%q{n % 98} bra AGAIN{n};",
                ],
            )
        if self._block % 32 and self.rng.random() < 0.3:
            return Node([f"@{self.pick('', '!')}{self.register('p')} {self.pick('exit', 'ret')};"])
        return self._synchronisation.one()

    def _call(self) -> Node:
        number = self.rng.randrange(self._functions)
        lines = [
            "{",
            ".param .b32 x; .param .b64 y; .param .b32 z;",
            f"st.param.b32 [x], {self.of(32)}; st.param.b64 [y], {self.of(64)};",
        ]
        if self.rng.random() < 0.7:
            lines.append(f"call (z), f{number}, (x, y);")
        else:
            # By a pointer that differs from thread to thread.
            other = self.rng.randrange(self._functions)
            lines += [
                "kind: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _);",
                f"mov.u64 %a6, f{number}; mov.u64 %a7, f{other};",
                f"selp.b64 %a6, %a6, %a7, {self.register('p')}; call (z), %a6, (x, y), kind;",
            ]
        if self.rng.random() < 0.6:
            return Node([*lines, f"ld.param.b32 {self.of(32)}, [z];", "}"])
        # In a register of its own: what is written once may be taken for what chunks share.
        lines += [".reg .b32 back; .reg .b32 sum;", "ld.param.b32 back, [z];"]
        lines.append(f"add.u32 sum, back, {self.invariant()}; mov.b32 {self.of(32)}, sum;")
        return Node([*lines, "}"])
