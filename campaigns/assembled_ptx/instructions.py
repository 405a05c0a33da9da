"""Forms of instructions: those that the tests of requirements list, with changes."""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path
from typing import Final

import tests.emulator.engine.requirements as of_requirements
from campaigns.assembled_ptx.sampling import REGISTERS, Sampler

_FORMS: Final = Path(of_requirements.__file__).with_name("forms.txt")
_TARGET: Final = re.compile(r"\A(?:tcgen05|clusterlaunchcontrol|alloca|stack)")
_REGISTER: Final = re.compile(rf"%({'|'.join(REGISTERS)})_(\d)")
_ANYTHING: Final = (
    "5", "-5", "1.5", "0f3F800000", "0d3FF0000000000000", "%laneid", "%clock64", "%tid.x",
    "WARP_SZ", "!%pred_1", "_", "[mem]", "[%b64_1]", "[%b64_1+4]", "[8]", "{%b32_1, %b32_2}",
    "{%f32_1}", "%b32_1|%pred_1", "mem", "mem+4", "nowhere", "%pred_2", "%b128_1", "%f16_1",
    "gmem[%u32_1]", "mem[%b16_1+1]", "[%b64_1+4294967304]", "[mem+4294967304]", "256",
)  # fmt: skip


@cache
def _seeds() -> tuple[str, ...]:
    return tuple(
        line.rstrip(";") for line in _FORMS.read_text().splitlines() if not _TARGET.match(line)
    )


@cache
def _words() -> tuple[str, ...]:
    """Every modifier that some form has."""
    words = {word for form in _seeds() for word in form.split(" ")[0].split(".")[1:]}
    return tuple(sorted(words))


class Instructions:
    """Instructions as they are listed or as the table has them, or with one or two changes."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._sampler = Sampler(source)

    def next(self) -> str:
        """Return another one."""
        source = self._source
        way = source.random()
        if way < 0.4 and (near := self._sampler.neighbour()) is not None:
            return _text(*near)
        made = self._sampler.instruction() if way < 0.8 else None
        if made is None:
            word, _, rest = source.choice(_seeds()).partition(" ")
            made = word.split("."), operands_of(rest)
        words, operands = made
        for _ in range(source.choice((0, 1, 1, 1, 2))):
            if source.random() < 0.5:
                _change_modifiers(source, words)
            elif operands:
                _change_operands(source, operands)
        return _text(words, operands)


def _text(words: list[str], operands: list[str]) -> str:
    return " ".join((".".join(words), ", ".join(operands))).rstrip() + ";"


def operands_of(text: str) -> list[str]:
    """The operands, at commas outside of braces and brackets."""
    return [each.strip() for each in re.findall(r"(?:[^,{\[]|\{[^}]*\}|\[[^\]]*\])+", text)]


def _change_modifiers(source: random.Random, modifiers: list[str]) -> None:
    way, last = source.random(), len(modifiers) - 1
    if way < 0.25 and last:
        modifiers.pop(source.randint(1, last))
    elif way < 0.5:
        modifiers.insert(source.randint(1, last + 1), source.choice(_words()))
    elif way < 0.9 and last:
        modifiers[source.randint(1, last)] = source.choice((*_words(), *REGISTERS))
    elif last > 1:
        a, b = source.sample(range(1, last + 1), 2)
        modifiers[a], modifiers[b] = modifiers[b], modifiers[a]


def _change_operands(source: random.Random, operands: list[str]) -> None:
    way, place = source.random(), source.randrange(len(operands))
    if way < 0.45:  # a register of another type
        kind = source.choice(REGISTERS)
        operands[place] = _REGISTER.sub(lambda match: f"%{kind}_{match[2]}", operands[place])
    elif way < 0.8:
        operands[place] = source.choice(_ANYTHING)
    elif way < 0.9:
        operands.pop(place)
    else:
        operands.insert(place, source.choice(_ANYTHING))
