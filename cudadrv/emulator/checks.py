"""Checks of programs while they run: chosen for an emulator, or by CUDADRV_CHECK.

A file of suppressions selects findings that are not reported. A line is a check, or `*`, followed
by one or more of `kernel=`, `line=` and `variable=`, each with a shell pattern. A finding must
match all of them. `line=scan.cu:42` selects a place by the end of its path. A `#` begins a comment.
"""

from __future__ import annotations

import os
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Literal, get_args

from ptx.emulate import EmulationFault, Limits
from ptx.emulate.watchers import LAUNCH_CHECKS
from ptx.ordinary_files import read_text

from .. import border
from ..errors import ArgumentValueError

if TYPE_CHECKING:
    from ptx.emulate.check.findings import Findings, Found, KernelFault

    from .leaks import Leak
    from .module_assembly import ModuleAssembly


_KEYS: Final = ("kernel", "line", "variable")
CheckName = Literal["race", "init", "sync", "bounds", "divide", "nan", "assemble", "leak"]


@dataclass(slots=True)
class Suppression:
    """One line of a file.

    Attributes:
        place: the file and the line, for messages.
        text: the line's text.
        check: a pattern of the check's name.
        patterns: the patterns by key.
        is_used: whether it has matched a finding.
    """

    place: str
    text: str
    check: str
    patterns: dict[str, str]
    is_used: bool = False

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"

    def meets(self, finding: Found) -> bool:
        """Return whether it matches this finding."""
        return fnmatchcase(finding.check, self.check) and all(
            any(fnmatchcase(text, pattern) for text in _texts(finding, key))
            for key, pattern in self.patterns.items()
        )


def _texts(finding: Found, key: str) -> list[str]:
    """Return the texts of a finding that a pattern of a key is compared with."""
    if key == "kernel":
        return [finding.kernel]
    if key == "variable":
        return [finding.variable]
    parts = [
        (*Path(e.file).parts[:-1], f"{Path(e.file).name}:{e.line}")
        for e in finding.places
        if e.file is not None
    ]
    return [
        "/".join(parts_of_path[start:])
        for parts_of_path in parts
        for start in range(len(parts_of_path))
    ]


@dataclass(slots=True)
class Suppressions:
    """The suppressions of a file, in its order.

    Attributes:
        each: the suppressions.
        hidden: how many findings the last `visible` left out.
    """

    each: list[Suppression] = field(default_factory=list)
    hidden: int = 0

    def visible(self, every: Sequence[Found]) -> tuple[Found, ...]:
        """Return the findings that no suppression matches; matching suppressions count as used."""
        findings = tuple(finding for finding in every if not self._hides(finding))
        self.hidden = len(every) - len(findings)
        return findings

    def _hides(self, finding: Found) -> bool:
        meeting = [suppression for suppression in self.each if suppression.meets(finding)]
        for suppression in meeting:
            suppression.is_used = True
        return bool(meeting)

    @property
    def unused(self) -> tuple[str, ...]:
        """Return the suppressions that have matched no finding yet."""
        return tuple(str(suppression) for suppression in self.each if not suppression.is_used)


def suppressions_of(file: str | os.PathLike[str] | None) -> Suppressions:
    """Return the suppressions of a file, else of CUDADRV_CHECK_SUPPRESSIONS, else none.

    Raises:
        ArgumentValueError: the file cannot be read, or a line is invalid.
    """
    path = (
        os.environ.get(Checks.SUPPRESSIONS_VARIABLE, "").strip()
        if file is None
        else border.path("suppressions", file)
    )
    if not path:
        return Suppressions()
    try:
        lines = read_text(path, "utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise ArgumentValueError(f"the suppressions of {path} cannot be read: {error}") from None
    suppressions = Suppressions()
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if text:
            suppressions.each.append(_suppression(f"{path}:{number}", text))
    return suppressions


def _suppression(location: str, text: str) -> Suppression:
    check, *fields = text.split()
    patterns = dict(field.partition("=")[::2] for field in fields)
    if (
        not fields
        or "=" in check
        or not all(patterns.get(key) for key in patterns)
        or (not set(patterns) <= set(_KEYS) or len(patterns) != len(fields))
    ):
        raise ArgumentValueError(
            f"{location}: {text!r} is no suppression: give a check or *, and one or more of "
            "kernel=NAME, line=FILE:LINE, variable=NAME"
        )
    return Suppression(location, text, check, patterns)


@dataclass
class Checks:
    """The checks of an emulator, and their findings.

    Attributes:
        NAMES: all checks; `VARIABLE` and `SUPPRESSIONS_VARIABLE` select them for a process.
        names: the checks.
        limits: the limits of its launches.
        suppressions: selects findings that are not reported.
        faults: kernels' faults that a check is about.
        assembly: assembles the loaded modules; None if that is not checked.
        leaks: the leaks at the end.
        handled: texts of findings that somebody has handled, so that a process does not fail.
    """

    NAMES: ClassVar[tuple[CheckName, ...]] = get_args(CheckName)
    VARIABLE: ClassVar[str] = "CUDADRV_CHECK"
    SUPPRESSIONS_VARIABLE: ClassVar[str] = "CUDADRV_CHECK_SUPPRESSIONS"

    names: frozenset[str]
    limits: Limits
    suppressions: Suppressions
    faults: list[KernelFault] = field(default_factory=list)
    leaks: list[Leak] = field(default_factory=list)
    assembly: ModuleAssembly | None = None
    handled: set[str] = field(default_factory=set)

    def note(self, fault: EmulationFault) -> None:
        """Record a kernel's fault."""
        from ptx.emulate.check.findings import KernelFault  # the first fault or check

        finding = KernelFault.of(fault)
        if finding is not None and finding.check in self.names:
            self.faults.append(finding)

    @property
    def found_count(self) -> int:
        """The number of findings so far, with suppressed ones and without leaks."""
        findings = self.limits.findings
        found = 0 if findings is None else len(findings.found)
        rejected = 0 if self.assembly is None else len(self.assembly.found)
        return found + rejected + len(self.faults)

    def found(self, others: Sequence[Found]) -> tuple[Found, ...]:
        """Return all findings that are not suppressed; `others` are those of the order checks."""
        findings = self.limits.findings
        found = () if findings is None else findings.causes()
        rejected = () if self.assembly is None else self.assembly.found
        return self.suppressions.visible((*rejected, *found, *self.faults, *others, *self.leaks))

    @staticmethod
    def default() -> tuple[CheckName, ...]:
        """Return the checks of commands that name none; "assemble" only if nvJitLink is installed.

        "nan" is not among them, as an infinity may be the right result.
        """
        from .module_assembly import module_assembly  # 10 ms: imports the linker

        left_out = {"nan"}
        try:
            module_assembly()
        except ArgumentValueError:
            left_out.add("assemble")
        return tuple(name for name in Checks.NAMES if name not in left_out)

    @staticmethod
    def read(checks: str | Sequence[str]) -> tuple[CheckName, ...]:
        """Return the checks of these names, or of a comma-separated text.

        Raises:
            ArgumentValueError: there is no such check.
        """
        if isinstance(checks, str):
            text, checks = checks, [n for name in checks.split(",") if (n := name.strip())]
            if text.strip() and not checks:
                raise ArgumentValueError(
                    f"{text!r} names no check: one of {', '.join(Checks.NAMES)}, or nothing"
                )
        checks_by_name: dict[str, CheckName] = {name: name for name in Checks.NAMES}
        names = border.sequence_of("Emulator: check", checks, str)
        for name in names:
            if name not in checks_by_name:
                raise ArgumentValueError(
                    f"{name!r} is no check of kernels: one of {', '.join(Checks.NAMES)}, in "
                    f"{Checks.VARIABLE} too"
                )
        return tuple(checks_by_name[name] for name in names)

    @staticmethod
    def chosen(
        limits: Limits,
        checks: str | Sequence[str] | None,
        suppressions: str | os.PathLike[str] | None = None,
    ) -> Checks:
        """Return these checks for launches with these limits; None reads CUDADRV_CHECK.

        Raises:
            ArgumentValueError: there is no such check, the file of suppressions is wrong, or
                nvJitLink is missing for "assemble".
        """
        border.instance_of("Emulator: limits", limits, Limits)
        checks = Checks.read(os.environ.get(Checks.VARIABLE, "") if checks is None else checks)
        names = {name for name, row in LAUNCH_CHECKS.items() if row.check in checks}
        limits = replace(
            limits,
            checks=limits.checks | names,
            findings=_findings_of(limits, names),
            check_synchronisation=limits.check_synchronisation or "sync" in checks,
        )
        result = Checks(frozenset(checks), limits, suppressions_of(suppressions))
        if "assemble" in checks:
            from .module_assembly import module_assembly  # as in `default`

            result.assembly = module_assembly()
        return result


def _findings_of(limits: Limits, names: Set[str]) -> Findings | None:
    """Return where launches with these limits and further checks add findings."""
    if limits.findings is not None or not limits.checks | names:
        return limits.findings
    from ptx.emulate.check.findings import Findings

    return Findings()
