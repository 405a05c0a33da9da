"""The checks of arguments of `ptx`, with the errors of `cudadrv`.

Where a check costs too much, as for launches, allocations and small copies, nothing is checked
before: what fails there comes here for its words.
"""

from __future__ import annotations

from typing import Final

from .errors import ArgumentTypeError, ArgumentValueError
from .ptx_package import refuse_other_ptx

refuse_other_ptx()  # before anything of it is imported

from ptx.argument_checks import (  # noqa: E402  # as said
    LARGEST as LARGEST,
    ArgumentChecks,
    described as described,
    shown as shown,
)

_checks: Final = ArgumentChecks(ArgumentTypeError, ArgumentValueError)

instance: Final = _checks.instance_of
optional: Final = _checks.optional
several: Final = _checks.sequence_of
integer: Final = _checks.integer
whole: Final = _checks.int_in_range
real: Final = _checks.real
text: Final = _checks.text
path: Final = _checks.path
function: Final = _checks.function
source: Final = _checks.source
refused: Final = _checks.wrong_type
