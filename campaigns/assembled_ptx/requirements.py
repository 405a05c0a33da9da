"""What each form with each of its modifiers needs, at each version of several targets."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Final

from campaigns.assembled_ptx.judging import Judge, Opening, kernel_of
from campaigns.assembled_ptx.sampling import Sampler, spellings_of
from ptx.emulate.requirements.check import instruction_needs, operand_needs
from ptx.emulate.requirements.needs import Needs, architecture_of, are_met
from ptx.isa import parse
from ptx.isa.directives import version_of
from ptx.isa.forms.shapes import Shapes
from ptx.isa.forms.table import form_table
from ptx.isa.model import Instruction

_TARGETS: Final = (
    "sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_107a", "sm_110a",
    "sm_120a", "sm_120f", "sm_121a",
)  # fmt: skip
_VERSIONS: Final = (
    "6.3 6.5 7.0 7.1 7.2 7.4 7.5 7.6 7.7 7.8 8.0 8.1 8.2 8.3 8.4 8.5 8.6 8.7 8.8 9.0 9.1 9.2 9.3"
    " 9.4"
)
_NEWEST: Final = Opening("sm_90a", "9.4")  # with all kinds of registers
_FORMS_AT_ONCE: Final = 250
_MOST_WIDTHS: Final = 3  # of wgmma, whose shapes have 32 widths with the same needs


def compare_needs(judge: Judge, source: random.Random, end: float) -> None:
    """Compare forms in random order until the time is over.

    Forms that no target takes have operands that do not go together, and are left out.
    """
    sampler = Sampler(source)
    texts = sorted({*_texts(sampler)})
    source.shuffle(texts)
    pairs = [Opening(target, version) for target in _TARGETS for version in _VERSIONS.split()]
    openings = [each for each in pairs if judge.takes(each)]
    for start in range(0, len(texts), _FORMS_AT_ONCE):
        if time.monotonic() >= end:
            return
        batch = texts[start : start + _FORMS_AT_ONCE]
        needs = {text: _needs_of(text) for text in batch}
        rejected = {each: judge.rejected(batch, each) for each in openings}
        nowhere = set(batch).intersection(*rejected.values())
        for opening in openings:
            differing = [
                text
                for text in batch
                if text not in nowhere
                and (text in rejected[opening]) == _are_met(needs[text], opening)
            ]
            judge.agree(len(batch) - len(nowhere) - len(differing))
            judge.compare_forms(differing, opening)


def _needs_of(text: str) -> tuple[Needs, ...]:
    """What an instruction needs, by its modifiers and by its operands."""
    module = parse(kernel_of([text], _NEWEST))
    shapes = Shapes(module, module.functions["k"])
    (instruction, *_) = [
        each for each in module.body("k").statements if isinstance(each, Instruction)
    ]
    word = text.partition(" ")[0].rstrip(";")
    return (*instruction_needs(word), *operand_needs(word, shapes.of_operands(instruction)))


def _are_met(needs: tuple[Needs, ...], opening: Opening) -> bool:
    target, version = architecture_of(opening.target), version_of(opening.version)
    return target is not None and all(are_met(each, target, version) for each in needs)


def _texts(sampler: Sampler) -> Iterator[str]:
    """Instructions of each form."""
    table = form_table()
    for opcode in sorted(table.opcodes):
        forms = table.forms(opcode)
        for form in forms[:: max(1, len(forms) // (_MOST_WIDTHS * 60))]:
            for modifiers in spellings_of(form):
                yield from sampler.with_modifiers(opcode, form, modifiers)
