"""Random instructions on integers, bits and predicates."""

from __future__ import annotations

import random
from collections.abc import Callable

from campaigns.random_ptx.registers import Picker

_EDGES = (0, 1, 2, 7, 31, 32, 33, 63, 64, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000)


class Instructions(Picker):
    """One stream of random instructions."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._makers: tuple[tuple[Callable[[], str], int], ...] = (
            (self._arithmetic, 10), (self._multiply, 4), (self._divide, 2), (self._logic, 8),
            (self._shift, 6), (self._fields, 6), (self._compare, 6), (self._select, 4),
            (self._convert, 6), (self._move, 3), (self._carry, 2), (self._predicates, 3),
            (self._packed, 2), (self._place, 5),
        )  # fmt: skip

    def one(self) -> str:
        """An instruction or two, guarded now and then."""
        makers, weights = zip(*self._makers, strict=True)
        maker: Callable[[], str] = self.rng.choices(makers, weights)[0]
        return self.guarded(maker())

    def _source(self, bits: int) -> str:
        """A register or a constant."""
        if bits == 32 and self.rng.random() < 0.08:
            return self.invariant()
        if self.rng.random() < 0.75:
            return self.of(bits)
        if self.rng.random() < 0.5:
            return str(self.rng.choice(_EDGES) & ((1 << bits - 1) - 1))
        return str(self.rng.randrange(-(1 << bits - 1), 1 << bits - 1))

    def _bits(self) -> int:
        return self.rng.choice((16, 32, 32, 32, 64))

    def _arithmetic(self) -> str:
        bits, sign = self._bits(), self.pick("u", "s")
        target, a, b = self.of(bits), self.of(bits), self._source(bits)
        name = self.pick("add", "sub", "min", "max", "neg", "abs", "sad", "add.sat", "sub.sat")
        if name in ("neg", "abs"):
            return f"{name}.s{bits} {target}, {a};"
        if name == "sad":
            return f"sad.{sign}{bits} {target}, {a}, {b}, {self._source(bits)};"
        if name.endswith("sat"):
            return f"{name}.s32 {self.of(32)}, {self.of(32)}, {self._source(32)};"
        return f"{name}.{sign}{bits} {target}, {a}, {b};"

    def _multiply(self) -> str:
        bits, sign = self._bits(), self.pick("u", "s")
        mode = self.pick("lo", "hi", "wide") if bits < 64 else self.pick("lo", "hi")
        target = self.of(2 * bits if mode == "wide" else bits)
        a, b = self.of(bits), self._source(bits)
        name = self.pick("mul", "mad", "mul24")
        if name == "mul24":
            name, mode = self.pick("mul24", "mad24"), self.pick("lo", "hi")
            target, a, b, bits = self.of(32), self.of(32), self._source(32), 32
        text = f"{name}.{mode}.{sign}{bits} {target}, {a}, {b}"
        if name.startswith("mad"):
            text += f", {self._source(2 * bits if mode == 'wide' else bits)}"
        return text + ";"

    def _divide(self) -> str:
        """With a divisor that is not zero, for which the PTX ISA leaves the result open."""
        bits = self._bits()
        kind = f"{self.pick('u', 's')}{bits}"
        divisor = self.of(bits)
        return (
            f"or.b{bits} {divisor}, {divisor}, 1;\n"
            f"{self.pick('div', 'rem')}.{kind} {self.of(bits)}, {self._source(bits)}, {divisor};"
        )

    def _logic(self) -> str:
        bits = self._bits()
        target, a, b = self.of(bits), self.of(bits), self._source(bits)
        name = self.pick("and", "or", "xor", "not", "cnot")
        if name in ("not", "cnot"):
            return f"{name}.b{bits} {target}, {a};"
        return f"{name}.b{bits} {target}, {a}, {b};"

    def _shift(self) -> str:
        if self.rng.random() < 0.2:
            way = f"{self.pick('l', 'r')}.{self.pick('clamp', 'wrap')}"
            return f"shf.{way}.b32 {self.of(32)}, {self.of(32)}, {self.of(32)}, {self._amount()};"
        bits = self._bits()
        kind = f"shl.b{bits}" if self.rng.random() < 0.5 else f"shr.{self.pick(*'bus')}{bits}"
        return f"{kind} {self.of(bits)}, {self.of(bits)}, {self._amount()};"

    def _amount(self) -> str:
        if self.rng.random() < 0.3:
            return self.of(32)
        return str(self.rng.choice((0, 1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 200)))

    def _fields(self) -> str:
        bits = self.rng.choice((32, 64))
        name = self.pick("bfe", "bfi", "bfind", "brev", "clz", "popc", "prmt", "lop3")
        r = self.of
        if name in ("bfe", "bfi"):
            kind = f"{name}.{self.pick('u', 's') if name == 'bfe' else 'b'}{bits}"
            # The PTX ISA leaves places and lengths above 255 open.
            cut = f"and.b32 %s7, {r(32)}, 255; and.b32 %s8, {r(32)}, 255;\n"
            places = self.pick("%s7, %s8", f"%s7, {self.rng.choice((0, 1, 31, 64))}", "9, %s8")
            base = f", {r(bits)}" if name == "bfi" else ""
            return f"{cut}{kind} {r(bits)}, {r(bits)}{base}, {places};"
        if name == "bfind":
            kind = f"{self.pick('', '.shiftamt')}.{self.pick('u', 's')}{bits}"
            return f"bfind{kind} {r(32)}, {r(bits)};"
        if name == "brev":
            return f"brev.b{bits} {r(bits)}, {r(bits)};"
        if name in ("clz", "popc"):
            return f"{name}.b{bits} {r(32)}, {r(bits)};"
        if name == "prmt":
            return f"prmt.b32 {r(32)}, {r(32)}, {r(32)}, {self._source(32)};"
        return f"lop3.b32 {r(32)}, {r(32)}, {r(32)}, {r(32)}, {self.rng.randrange(256)};"

    def _comparison(self, sign: str) -> str:
        if sign == "b":
            return self.pick("eq", "ne")
        if sign == "u":
            return self.pick("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs")
        return self.pick("eq", "ne", "lt", "le", "gt", "ge")

    def _place(self) -> str:
        """A predicate of, or a sum with, what depends on the thread's place alone."""
        invariant, other = (
            self.invariant(),
            self.pick(self.invariant(), str(self.rng.randrange(40))),
        )
        name = self.pick("eq", "lt", "ge")
        return self.pick(
            f"setp.{name}.u32 {self.register('p')}, {invariant}, {other};",
            f"{self.pick('add', 'sub', 'min')}.u32 {self.of(32)}, {invariant}, {other};",
        )

    def _compare(self) -> str:
        bits, sign = self._bits(), self.pick(*"bus")
        name = self._comparison(sign)
        a, b = self.of(bits), self._source(bits)
        if self.rng.random() < 0.2:
            return f"set.{name}.u32.{sign}{bits} {self.of(32)}, {a}, {b};"
        p, q = self.two("p")
        target = p if self.rng.random() < 0.7 else f"{p}|{q}"
        if self.rng.random() < 0.3:
            third = self.pick("", "!") + self.register("p")
            boolean = self.pick("and", "or", "xor")
            return f"setp.{name}.{boolean}.{sign}{bits} {target}, {a}, {b}, {third};"
        return f"setp.{name}.{sign}{bits} {target}, {a}, {b};"

    def _select(self) -> str:
        bits = self._bits()
        sources = f"{self._source(bits)}, {self._source(bits)}"
        return f"selp.b{bits} {self.of(bits)}, {sources}, {self.register('p')};"

    def _convert(self) -> str:
        of = self._bits()
        to = self.rng.choice((8, 16, 32, 64))
        target = self.of(max(to, 16))
        saturate = "sat." if self.rng.random() < 0.2 else ""
        types = f"{self.pick('u', 's')}{to}.{self.pick('u', 's')}{of}"
        return f"cvt.{saturate}{types} {target}, {self.of(of)};"

    def _move(self) -> str:
        r = self.of
        return self.pick(
            f"mov.b64 {r(64)}, {{{r(32)}, {r(32)}}};",
            f"mov.b32 {{%h0, %h1}}, {r(32)};",
            f"mov.b32 {r(32)}, {{{r(16)}, {r(16)}}};",
            f"mov.b64 {{%r2, %r5}}, {r(64)};",
            f"mov.u32 {r(32)}, {self._source(32)};",
            f"mov.b64 {r(64)}, {self._source(64)};",
            f"mov.u32 {r(32)}, {self.pick('%tid.x', '%ntid.x', '%laneid', '%ctaid.x')};",
        )

    def _carry(self) -> str:
        name, kind = self.pick("add", "sub"), self.pick("u32", "s32", "u64")
        bits = int(kind[1:])
        r = self.of
        return (
            f"{name}.cc.{kind} {r(bits)}, {r(bits)}, {self._source(bits)};\n"
            f"{name}c.cc.{kind} {r(bits)}, {r(bits)}, {self._source(bits)};\n"
            f"{name}c.{kind} {r(bits)}, {r(bits)}, {self._source(bits)};"
        )

    def _predicates(self) -> str:
        p = self.register
        return self.pick(
            f"{self.pick('and', 'or', 'xor')}.pred {p('p')}, {p('p')}, {p('p')};",
            f"not.pred {p('p')}, {p('p')};",
            f"mov.pred {p('p')}, {p('p')};",
        )

    def _packed(self) -> str:
        r, sign, other = self.of, self.pick("u32", "s32"), self.pick("u32", "s32")
        name = self.pick("dp4a", "dp2a.lo", "dp2a.hi")
        return f"{name}.{sign}.{other} {r(32)}, {r(32)}, {r(32)}, {self._source(32)};"
