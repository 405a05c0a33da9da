"""Integer divisions by zero, whose result the PTX ISA leaves unspecified."""

from __future__ import annotations

import numpy as np

from ptx.emulate.check.findings import Access, Finding, Findings
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.threads import Threads
from ptx.emulate.observer import ObservedLaunch, Observer
from ptx.isa.model import Instruction, Register


class ZeroDivisors(Observer):
    """The divisions by zero of one launch.

    Args:
        findings: receives them.
        launch: the launch.
    """

    def __init__(self, findings: Findings, launch: ObservedLaunch) -> None:
        self._kernel = launch.code.kernel
        self._findings = findings
        self._reported: set[int] = set()

    def divide(
        self,
        threads: Threads,
        instruction: Instruction,
        divisor: Value,
        guard: Value | None = None,
        benign: str = "",
    ) -> None:
        """Report a thread that divides by zero, once for each instruction."""
        zero = divisor == 0
        if not zero.any() or id(instruction) in self._reported:
            return
        for mask in (guard, threads.present):
            zero = zero if mask is None else zero & mask
        if not zero.any():
            return
        self._reported.add(id(instruction))
        where = threads.where(int(np.argmax(zero)), instruction)
        source = instruction.operands[2]
        self._findings.add(
            Finding(
                check="divide",
                kernel=self._kernel,
                first=Access("division", where),
                second=None,
                space="register",
                address=0,
                nbytes=0,
                memory="",
                benign=benign,
                missing="test the divisor before. GPUs give a result with all bits set",
                variable=source.name if isinstance(source, Register) else "",
            )
        )


def zero_divisors(findings: Findings, launch: ObservedLaunch) -> ZeroDivisors | None:
    """Return the observer of a launch; None if its kernel has no divisions."""
    code = launch.code
    return ZeroDivisors(findings, launch) if code.may_divide else None
