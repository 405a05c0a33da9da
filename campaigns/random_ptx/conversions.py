"""Random conversions between floats, and between floats and integers."""

from __future__ import annotations

import random

from campaigns.random_ptx.floats import FloatInstructions
from campaigns.random_ptx.registers import Picker

_MODES = ("rn", "rz", "rm", "rp")
_HALVES = ("f16", "bf16")


class Conversions(Picker):
    """One stream of random conversions."""

    def __init__(self, rng: random.Random, floats: FloatInstructions) -> None:
        super().__init__(rng)
        self._floats = floats

    def one(self) -> str:
        """A conversion, guarded now and then."""
        maker = self.rng.choice((self._among, self._among, self._integral, self._to_integer,
                                 self._from_integer, self._packed))  # fmt: skip
        return self.guarded(maker())

    def _kind(self) -> str:
        return self.pick("f16", "bf16", "f32", "f32", "f64")

    def _source(self, kind: str) -> str:
        return self.of(16) if kind in _HALVES else self._floats.source(kind)

    def _target(self, kind: str) -> str:
        return self.of(16) if kind in _HALVES else self._floats.target(kind)

    def _cvt(self, words: str, to: str, of: str) -> str:
        return f"cvt{words}.{to}.{of} {self._target(to)}, {self._source(of)};"

    def _among(self) -> str:
        to, of = self._kind(), self._kind()
        mode, ftz = f".{self.pick(*_MODES)}", self.maybe(".ftz")
        saturate = self.maybe(".sat", 0.2)
        if to in _HALVES and of == "f32":
            if self.rng.random() < 0.4:
                words = f".{self.pick('rn', 'rz')}{self.maybe('.relu')}{self.maybe('.satfinite')}"
                return self._cvt(words, to, of)
            return self._cvt(mode + ftz + (saturate if to == "f16" else ""), to, of)
        if of == "f64" and to != "f64":
            words = mode + (ftz if to == "f32" else "") + (saturate if to != "bf16" else "")
            return self._cvt(words, to, of)
        if "bf16" in (to, of):
            flush = ftz if to == "f32" else ""
            narrows = to in _HALVES and of in _HALVES and to != of
            return self._cvt((mode if narrows else "") + flush, to, of)
        return self._cvt((ftz if "f32" in (to, of) else "") + saturate, to, of)

    def _integral(self) -> str:
        kind = self._kind()
        words = f".{self.pick(*_MODES)}i" + (self.maybe(".ftz") if kind == "f32" else "")
        return self._cvt(words + ("" if kind == "bf16" else self.maybe(".sat", 0.2)), kind, kind)

    def _to_integer(self) -> str:
        of, to = self._kind(), self.rng.choice((8, 16, 32, 32, 64))
        words = f".{self.pick(*_MODES)}i" + (self.maybe(".ftz") if of == "f32" else "")
        words += self.maybe(".sat", 0.2)
        target = self.of(max(to, 16))
        return f"cvt{words}.{self.pick('u', 's')}{to}.{of} {target}, {self._source(of)};"

    def _from_integer(self) -> str:
        to, of = self._kind(), self.rng.choice((8, 16, 32, 32, 64))
        words = f".{self.pick(*_MODES)}" + ("" if to == "bf16" else self.maybe(".sat", 0.2))
        source = self.of(max(of, 16))
        return f"cvt{words}.{to}.{self.pick('u', 's')}{of} {self._target(to)}, {source};"

    def _packed(self) -> str:
        words = f".{self.pick('rn', 'rz')}{self.maybe('.relu')}{self.maybe('.satfinite')}"
        sources = f"{self._source('f32')}, {self._source('f32')}"
        return f"cvt{words}.{self.pick('f16x2', 'bf16x2')}.f32 {self.of(32)}, {sources};"
