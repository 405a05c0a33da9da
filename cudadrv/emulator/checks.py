"""What is checked of kernels while they run: chosen for an emulator, or by CUDADRV_CHECK."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal, get_args

from ptx.emulate.check.findings import Findings
from ptx.emulate.exec.limits import Limits

from .. import border
from ..errors import ArgumentValueError

CheckName = Literal["race", "init"]
VARIABLE: Final = "CUDADRV_CHECK"
_NAMES: Final[tuple[str, ...]] = get_args(CheckName)


def limits_with_checks(limits: Limits, checks: Sequence[str] | None) -> Limits:
    """The limits of launches that are checked so; without a choice, as CUDADRV_CHECK says.

    Raises:
        ArgumentValueError: there is no such check.
    """
    border.instance("Emulator: limits", limits, Limits)
    if checks is None:
        checks = [each.strip() for each in os.environ.get(VARIABLE, "").split(",") if each.strip()]
    else:
        checks = border.several("Emulator: check", checks, str)
    for each in checks:
        if each not in _NAMES:
            raise ArgumentValueError(
                f"{each!r} is no check of kernels: one of {', '.join(_NAMES)}, in {VARIABLE} too"
            )
    if "race" in checks and limits.findings is None:
        limits = replace(limits, findings=Findings())
    return replace(limits, check_uninitialised=True) if "init" in checks else limits
