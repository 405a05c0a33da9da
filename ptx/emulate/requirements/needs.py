"""The targets and module versions that a form of an instruction requires.

A need is written as alternatives. "sm_89 8.1, sm_90 7.8" is met by sm_89 from PTX 8.1 on, and by
sm_90 and all later ones from 7.8 on. "sm_90a" is that architecture alone. "sm_100f" stands for the
architecture- and family-specific targets of its family, from it on: sm_100a, sm_100f, sm_103a,
sm_103f, …. PTX ISA, ".target".
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ptx.isa.directives import version_of

_TARGET = re.compile(r"sm_(\d+)([af]?)")
Version = tuple[int, int]


class TargetArchitecture(NamedTuple):
    """A target such as sm_90a; the suffix is "", "a" or "f"."""

    number: int
    suffix: str

    @property
    def family(self) -> int:
        """The common part of a family's numbers: 10 of sm_100 and sm_103."""
        return self.number // 10

    def has(self, target: TargetArchitecture) -> bool:
        """Return whether this target has the features that `target` introduced, too."""
        if target.suffix == "a":
            return self == target
        if target.suffix == "f":
            return (
                bool(self.suffix)
                and self.family == target.family
                and (self.number >= target.number)
            )
        return self.number >= target.number


class Alternative(NamedTuple):
    """A target, and the version of PTX that has the form for it."""

    target: TargetArchitecture
    version: Version

    def __str__(self) -> str:
        number, suffix = self.target
        family = f" (or sm_{number}a, or a later one of the family)" if suffix == "f" else ""
        later = "" if suffix else " or higher"
        return f"sm_{number}{suffix}{family}{later} with PTX {self.version[0]}.{self.version[1]}"


Needs = tuple[Alternative, ...]


def architecture_of(name: str) -> TargetArchitecture | None:
    """The target that a module names; None for one of another kind, such as `texmode_unified`."""
    match = _TARGET.fullmatch(name)
    return TargetArchitecture(int(match[1]), match[2]) if match else None


def needs_of(text: str) -> Needs:
    """The alternatives that a text such as "sm_89 8.1, sm_90 7.8" lists."""
    alternatives: list[Alternative] = []
    for alternative in text.split(","):
        *targets, version = alternative.split()
        for name in targets:
            target = architecture_of(name)
            if target is None:
                raise ValueError(f"{name!r} is no target")
            alternatives.append(Alternative(target, version_of(version)))
    return tuple(alternatives)


def are_met(needs: Needs, target: TargetArchitecture, version: Version) -> bool:
    """Return whether a module of this target and version has it."""
    return any(
        target.has(alternative.target) and version >= alternative.version for alternative in needs
    )
