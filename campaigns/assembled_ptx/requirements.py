"""What each form with each of its modifiers needs, at each version of several targets."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Final

from campaigns.assembled_ptx.judging import Judge, Opening
from campaigns.assembled_ptx.sampling import Sampler, spellings_of
from ptx.emulate.requirements.check import instruction_needs
from ptx.emulate.requirements.needs import architecture_of, are_met
from ptx.isa.directives import version_of
from ptx.isa.forms.table import form_table

_TARGETS: Final = (
    "sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_107a", "sm_110a",
    "sm_120a", "sm_120f", "sm_121a",
)  # fmt: skip
_VERSIONS: Final = (
    "6.3 6.5 7.0 7.1 7.2 7.4 7.5 7.6 7.7 7.8 8.0 8.1 8.2 8.3 8.4 8.5 8.6 8.7 8.8 9.0 9.1 9.2 9.3"
    " 9.4"
)
_FORMS_AT_ONCE: Final = 250
_MOST_WIDTHS: Final = 3  # of wgmma, whose shapes have 32 widths with the same needs


def compare_needs(judge: Judge, source: random.Random, end: float) -> None:
    """Compare forms in random order until the time is over.

    Forms that no target takes have operands that do not go together, and are left out.
    """
    sampler = Sampler(source)
    words = {text: word for text, word in _texts(sampler) if text}
    texts = sorted(words)
    source.shuffle(texts)
    pairs = [Opening(target, version) for target in _TARGETS for version in _VERSIONS.split()]
    openings = [each for each in pairs if judge.takes(each)]
    for start in range(0, len(texts), _FORMS_AT_ONCE):
        if time.monotonic() >= end:
            return
        batch = texts[start : start + _FORMS_AT_ONCE]
        rejected = {each: judge.rejected(batch, each) for each in openings}
        nowhere = set(batch).intersection(*rejected.values())
        for opening in openings:
            differing = [
                text
                for text in batch
                if text not in nowhere
                and (text in rejected[opening]) == _are_met(words[text], opening)
            ]
            judge.agree(len(batch) - len(nowhere) - len(differing))
            judge.compare_forms(differing, opening)


def _are_met(word: str, opening: Opening) -> bool:
    target, version = architecture_of(opening.target), version_of(opening.version)
    return target is not None and all(
        are_met(needs, target, version) for needs in instruction_needs(word)
    )


def _texts(sampler: Sampler) -> Iterator[tuple[str, str]]:
    """Instructions, with their word of an opcode and modifiers; "" where none has operands."""
    table = form_table()
    for opcode in sorted(table.opcodes):
        forms = table.forms(opcode)
        for form in forms[:: max(1, len(forms) // (_MOST_WIDTHS * 60))]:
            for modifiers in spellings_of(form):
                yield (
                    sampler.with_modifiers(opcode, form, modifiers),
                    ".".join((opcode, *modifiers)),
                )
