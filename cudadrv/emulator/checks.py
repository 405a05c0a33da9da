"""What is checked of programs while they run: chosen for an emulator, or by CUDADRV_CHECK."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, get_args

from ptx.emulate.check.findings import Findings, Found, KernelFault, of_fault
from ptx.emulate.model.errors import EmulationFault
from ptx.emulate.threads.limits import Limits

from .. import border
from ..errors import ArgumentValueError
from .assembling import ModuleAssembly, module_assembly
from .leaks import Leak
from .suppressions import Suppressions, suppressions_of

CheckName = Literal["race", "init", "sync", "bounds", "assemble", "leak"]
VARIABLE: Final = "CUDADRV_CHECK"
CHECKS: Final[tuple[CheckName, ...]] = get_args(CheckName)


@dataclass
class Checks:
    """What an emulator checks, and what it found.

    Attributes:
        names: the checks.
        limits: what its launches are given.
        suppressions: of what is not told.
        faults: those of kernels that a check is about.
        assembly: what assembles the modules that are loaded; None where that is not checked.
        leaks: what was there at the end.
    """

    names: frozenset[str]
    limits: Limits
    suppressions: Suppressions
    faults: list[KernelFault] = field(default_factory=list)
    leaks: list[Leak] = field(default_factory=list)
    assembly: ModuleAssembly | None = None

    def note(self, fault: EmulationFault) -> None:
        """A kernel stopped with a fault."""
        found = of_fault(fault)
        if found is not None and found.check in self.names:
            self.faults.append(found)

    def found(self, others: Sequence[Found]) -> tuple[Found, ...]:
        """All that was found and is not suppressed; `others` what order found."""
        findings = self.limits.findings or self.limits.unwritten
        found = () if findings is None else tuple(findings.found)
        rejected = () if self.assembly is None else self.assembly.found
        return self.suppressions.visible((*rejected, *found, *self.faults, *others, *self.leaks))


def default_checks() -> tuple[CheckName, ...]:
    """All checks, "assemble" only where nvJitLink is installed."""
    try:
        module_assembly()
    except ArgumentValueError:
        return tuple(each for each in CHECKS if each != "assemble")
    return CHECKS


def read_checks(checks: str | Sequence[str]) -> tuple[CheckName, ...]:
    """The checks of these names, or of a text that has them with commas between.

    Raises:
        ArgumentValueError: there is no such check.
    """
    if isinstance(checks, str):
        checks = [each.strip() for each in checks.split(",") if each.strip()]
    known: dict[str, CheckName] = {each: each for each in CHECKS}
    names = border.several("Emulator: check", checks, str)
    for each in names:
        if each not in known:
            raise ArgumentValueError(
                f"{each!r} is no check of kernels: one of {', '.join(CHECKS)}, in {VARIABLE} too"
            )
    return tuple(known[each] for each in names)


def chosen_checks(
    limits: Limits,
    checks: str | Sequence[str] | None,
    suppressions: str | os.PathLike[str] | None = None,
) -> Checks:
    """These checks of launches with these limits; without a choice, as CUDADRV_CHECK says.

    Raises:
        ArgumentValueError: there is no such check, the file of suppressions is wrong, or nvJitLink
            is missing for "assemble".
    """
    border.instance("Emulator: limits", limits, Limits)
    checks = read_checks(os.environ.get(VARIABLE, "") if checks is None else checks)
    findings = Findings() if limits.findings is None else limits.findings
    if "race" in checks:
        limits = replace(limits, findings=findings)
    if "init" in checks:
        limits = replace(limits, check_uninitialised=True, unwritten=findings)
    if "sync" in checks:
        limits = replace(limits, check_synchronisation=True)
    if "bounds" in checks:
        limits = replace(limits, check_bounds=True)
    chosen = Checks(frozenset(checks), limits, suppressions_of(suppressions))
    if "assemble" in checks:
        chosen.assembly = module_assembly()
    return chosen
