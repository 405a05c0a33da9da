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

instance = _checks.instance_of
optional = _checks.optional
several = _checks.sequence_of
integer = _checks.integer
whole = _checks.int_in_range
real = _checks.real
text = _checks.text
path = _checks.path
function = _checks.function
source = _checks.source
refused = _checks.wrong_type
