"""The registers of a random program, and how an instruction picks among them."""

from __future__ import annotations

import random
from typing import Final

# Registers of each bank; every one is stored at a program's end. %r, %d and %h are bits of 32, 64
# and 16, %f and %g are declared as f32 and f64.
COUNTS: Final = {"d": 6, "g": 4, "r": 8, "f": 6, "h": 4, "p": 4}
BYTES: Final = {"d": 8, "g": 8, "r": 4, "f": 4, "h": 2}
TYPES: Final = {"d": "b64", "g": "f64", "r": "b32", "f": "f32", "h": "b16", "p": "pred"}
_BANK: Final = {16: "h", 32: "r", 64: "d"}
# Numbers that depend on a thread's place in its block only, and how they are made; never changed.
INVARIANT: Final = {
    "%t0": "and.b32 %t0, %s2, 7;",
    "%t1": "mad.lo.u32 %t1, %s2, 3, 5;",
    "%t2": "mov.u32 %t2, %laneid;",
    "%t3": "shr.u32 %t3, %s2, 4;",
}


class Picker:
    """Random registers and words."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def register(self, bank: str) -> str:
        """A register of a bank."""
        return f"%{bank}{self.rng.randrange(COUNTS[bank])}"

    def of(self, bits: int) -> str:
        """A register of so many bits."""
        return self.register(_BANK[bits])

    def two(self, bank: str) -> tuple[str, str]:
        """Two registers of a bank that differ."""
        first, second = self.rng.sample(range(COUNTS[bank]), 2)
        return f"%{bank}{first}", f"%{bank}{second}"

    def pick(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def invariant(self) -> str:
        """A register with a number that is the same in every block."""
        return self.pick(*INVARIANT)

    def maybe(self, word: str, chance: float = 0.3) -> str:
        """A word, or nothing."""
        return word if self.rng.random() < chance else ""

    def guarded(self, text: str) -> str:
        """An instruction with a guard now and then."""
        if self.rng.random() < 0.15 and "\n" not in text:
            return f"@{self.pick('', '!')}{self.register('p')} {text}"
        return text
