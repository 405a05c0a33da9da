"""Random instructions on f32, f64 and halves, whose results the PTX ISA settles to the bit."""

from __future__ import annotations

import random
from collections.abc import Callable

from campaigns.random_ptx.registers import Picker

_MODES = ("rn", "rz", "rm", "rp")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num",
                "nan")  # fmt: skip
_SINGLES = (0, 1, 0x007FFFFF, 0x00800000, 0x33800000, 0x3F000000, 0x3F7FFFFF, 0x3F800000,
            0x3F800001, 0x4B800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC01234)  # fmt: skip
_DOUBLES = (0, 1, 0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x3CA0000000000000, 0x3FE0000000000000,
            0x3FF0000000000000, 0x3FF0000000000001, 0x4340000000000000, 0x7FEFFFFFFFFFFFFF,
            0x7FF0000000000000, 0x7FF0000000000001, 0x7FF8000000001234)  # fmt: skip
# Written by chains of instructions only, and read there alone.
SCRATCH = 4


class FloatInstructions(Picker):
    """One stream of random instructions.

    Args:
        rng: picks.
        flushing: whether the scratch registers %u are written by flushing instructions only.
    """

    def __init__(self, rng: random.Random, *, flushing: bool) -> None:
        super().__init__(rng)
        self._flushing = flushing
        self._makers: tuple[tuple[Callable[[], str], int], ...] = (
            (self._single, 10), (self._double, 7), (self._half, 6), (self._extreme, 5),
            (self._sign, 4), (self._compare, 5), (self._set, 2), (self._select, 3),
            (self._mixed, 2), (self._pair, 2), (self._chain, 4), (self._move, 5),
            (self._property, 1),
        )  # fmt: skip

    def one(self) -> str:
        """An instruction or a few, guarded now and then."""
        makers, weights = zip(*self._makers, strict=True)
        maker: Callable[[], str] = self.rng.choices(makers, weights)[0]
        return self.guarded(maker())

    def _f(self) -> str:
        """A register with an f32."""
        return self.register("f" if self.rng.random() < 0.8 else "r")

    def _g(self) -> str:
        """A register with an f64."""
        return self.register("g" if self.rng.random() < 0.8 else "d")

    def source(self, kind: str) -> str:
        """A register or a constant, of f32 or f64."""
        sign = self.rng.randrange(2)
        if kind == "f32":
            if self.rng.random() < 0.88:
                return self._f()
            return f"0f{self.rng.choice(_SINGLES) | sign << 31:08X}"
        if self.rng.random() < 0.88:
            return self._g()
        return f"0d{self.rng.choice(_DOUBLES) | sign << 63:016X}"

    def target(self, kind: str) -> str:
        return self._f() if kind == "f32" else self._g()

    def _mode(self, *, needed: bool) -> str:
        return f".{self.pick(*_MODES)}" if needed or self.rng.random() < 0.6 else ""

    def _single(self, target: str = "", first: str = "", *, flush: bool = False) -> str:
        """Arithmetic on f32; the target and the first source are random unless given."""
        ftz = ".ftz" if flush else self.maybe(".ftz")
        target, first = target or self._f(), first or self.source("f32")
        name = self.pick("add", "sub", "mul", "fma", "fma", "mad", "div", "rcp", "sqrt")
        mode = self._mode(needed=name not in ("add", "sub", "mul"))
        text = f"{name}{mode}{ftz}"
        if name in ("rcp", "sqrt"):
            return f"{text}.f32 {target}, {first};"
        if name != "div":
            text += self.maybe(".sat", 0.15)
        text += f".f32 {target}, {first}, {self.source('f32')}"
        return f"{text}, {self.source('f32')};" if name in ("fma", "mad") else f"{text};"

    def _double(self) -> str:
        name = self.pick("add", "sub", "mul", "fma", "fma", "div", "rcp", "sqrt")
        mode = self._mode(needed=name not in ("add", "sub", "mul"))
        count = {"fma": 3, "rcp": 1, "sqrt": 1}.get(name, 2)
        sources = ", ".join(self.source("f64") for _ in range(count))
        return f"{name}{mode}.f64 {self._g()}, {sources};"

    def _half(self) -> str:
        """f16 and bf16, alone and packed."""
        name = self.pick("add", "sub", "mul", "fma", "neg", "abs", "min", "max")
        kind, packed = self.pick("f16", "f16", "bf16"), self.maybe("x2", 0.5)
        words = ""
        if name in ("add", "sub", "mul"):
            words = ".rn" if kind == "bf16" else self.maybe(".rn", 0.5)
        elif name == "fma":
            words = ".rn"
        if kind == "f16":
            words += self.maybe(".ftz")
            if name in ("add", "sub", "mul"):
                words += self.maybe(".sat", 0.2)
        if name == "fma":
            words += self.pick("", "", ".relu", ".sat" if kind == "f16" else "")
        if name in ("min", "max"):
            words += self.maybe(".NaN") + self.maybe(".xorsign.abs")
        bank = "r" if packed else "h"
        count = {"fma": 4, "neg": 2, "abs": 2}.get(name, 3)
        registers = ", ".join(self.register(bank) for _ in range(count))
        return f"{name}{words}.{kind}{packed} {registers};"

    def _extreme(self) -> str:
        name = self.pick("min", "max")
        if self.rng.random() < 0.3:
            return f"{name}.f64 {self._g()}, {self.source('f64')}, {self.source('f64')};"
        three = self.rng.random() < 0.2
        words = self.maybe(".ftz") + self.maybe(".NaN")
        words += self.maybe(".abs" if three else ".xorsign.abs")
        sources = ", ".join(self.source("f32") for _ in range(3 if three else 2))
        return f"{name}{words}.f32 {self._f()}, {sources};"

    def _sign(self) -> str:
        kind = self.pick("f32", "f32", "f64")
        name = self.pick("neg", "abs", "copysign")
        if name == "copysign":
            sources = f"{self.source(kind)}, {self.source(kind)}"
            return f"copysign.{kind} {self.target(kind)}, {sources};"
        ftz = self.maybe(".ftz") if kind == "f32" else ""
        return f"{name}{ftz}.{kind} {self.target(kind)}, {self.source(kind)};"

    def _property(self) -> str:
        kind = self.pick("f32", "f64")
        name = self.pick("finite", "infinite", "number", "notanumber", "normal", "subnormal")
        return f"testp.{name}.{kind} {self.register('p')}, {self.source(kind)};"

    def _boolean(self) -> tuple[str, str]:
        """A boolean operator and its operand, or nothing."""
        if self.rng.random() < 0.7:
            return "", ""
        return f".{self.pick('and', 'or', 'xor')}", f", {self.pick('', '!')}{self.register('p')}"

    def _compare(self) -> str:
        kind = self.pick("f32", "f32", "f64", "f16", "bf16", "f16x2", "bf16x2")
        boolean, third = self._boolean()
        ftz = self.maybe(".ftz") if kind in ("f32", "f16", "f16x2") else ""
        p, q = self.two("p")
        target = f"{p}|{q}" if kind.endswith("x2") or self.rng.random() < 0.3 else p
        if kind in ("f32", "f64"):
            a, b = self.source(kind), self.source(kind)
        else:
            bank = "r" if kind.endswith("x2") else "h"
            a, b = self.register(bank), self.register(bank)
        name = self.pick(*_COMPARISONS)
        return f"setp.{name}{boolean}{ftz}.{kind} {target}, {a}, {b}{third};"

    def _set(self) -> str:
        boolean, third = self._boolean()
        name = f"set.{self.pick(*_COMPARISONS)}{boolean}"
        of = self.pick("f32", "f32", "f64", "f16", "f16x2")
        ftz = self.maybe(".ftz") if of != "f64" else ""
        if of in ("f32", "f64"):
            to = self.pick("u32", "s32", "f32")
            target = self._f() if to == "f32" else self.of(32)
            return f"{name}{ftz}.{to}.{of} {target}, {self.source(of)}, {self.source(of)}{third};"
        bank = "r" if of == "f16x2" else "h"
        to = self.pick(of, "u32") if bank == "r" else self.pick("f16", "u16", "u32")
        target = self.of(32) if to in ("u32", "f16x2") else self.of(16)
        return (
            f"{name}{ftz}.{to}.{of} {target}, {self.register(bank)}, {self.register(bank)}{third};"
        )

    def _select(self) -> str:
        kind = self.pick("f32", "f64")
        sources = f"{self.target(kind)}, {self.source(kind)}, {self.source(kind)}"
        way = self.rng.randrange(3)
        if way == 0:
            return f"selp.{kind} {sources}, {self.register('p')};"
        if way == 1:
            return f"slct.{kind}.s32 {sources}, {self.of(32)};"
        return f"slct{self.maybe('.ftz')}.{kind}.f32 {sources}, {self.source('f32')};"

    def _mixed(self) -> str:
        """Halves with an f32, whose result is an f32."""
        name, half = self.pick("add", "sub", "fma"), self.pick("f16", "bf16")
        words = self._mode(needed=name == "fma") + self.maybe(".sat", 0.15)
        sources = f"{self.of(16)}, " * (2 if name == "fma" else 1) + self.source("f32")
        return f"{name}{words}.f32.{half} {self._f()}, {sources};"

    def _pair(self) -> str:
        """Two f32 in 64 bits."""
        name = self.pick("add", "sub", "mul", "fma")
        words = self._mode(needed=name == "fma") + self.maybe(".ftz")
        registers = ", ".join(self.of(64) for _ in range(4 if name == "fma" else 3))
        return f"{name}{words}.f32x2 {registers};"

    def _chain(self) -> str:
        """Results that only further arithmetic reads, whose NaNs and subnormals may stay hidden."""
        lines, last = [], ""
        for number in range(self.rng.randrange(1, 4)):
            flush = self._flushing or self.rng.random() < 0.5
            lines.append(self._single(f"%u{number}", last, flush=flush))
            last = f"%u{number}"
        way = self.rng.randrange(4)
        if way == 0:
            lines.append(f"mov.f32 %u3, {last};")
            last = "%u3"
        elif way == 1:
            lines.append(f"selp.f32 %u3, {last}, 0f3F800000, {self.register('p')};")
            last = "%u3"
        end = self.rng.randrange(3)
        if end == 0:
            lines.append(f"setp.lt{self.maybe('.ftz')}.f32 {self.register('p')}, {last}, {last};")
        elif end == 1:
            lines.append(f"mov.b32 {self.of(32)}, {last};")
        else:
            lines.append(self._single("", last))
        return "\n".join(lines)

    def _move(self) -> str:
        r, f, g = self.of, self.register("f"), self.register("g")
        other = self.register("f")
        return self.pick(
            f"mov.b32 {r(32)}, {f};",
            f"mov.b32 {f}, {r(32)};",
            f"mov.b64 {r(64)}, {g};",
            f"mov.b64 {g}, {r(64)};",
            f"mov.f32 {f}, {self.source('f32')};",
            f"mov.f64 {g}, {self.source('f64')};",
            f"mov.b64 {r(64)}, {{{f}, {other}}};",
            f"mov.b64 {{{f}, %f0}}, {r(64)};" if f != "%f0" else f"mov.b64 {{%f0, %f1}}, {r(64)};",
            f"mov.b32 {f}, {{{r(16)}, {r(16)}}};",
            f"mov.b32 {{%h1, %h2}}, {f};",
        )
