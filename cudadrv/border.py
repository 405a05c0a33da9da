"""The checks of arguments of `ptx`, with the errors of `cudadrv`.

Launches, allocations and small copies do not check their arguments before, as that costs too much.
If one of them fails, these functions find the words for the error.
"""

from __future__ import annotations

import errno
import os
from typing import Final

from ptx.argument_checks import (
    LARGEST as LARGEST,
    ArgumentChecks,
    described as described,
    index_of as index_of,
    integer_of_text as integer_of_text,
    shown as shown,
    shown_error as shown_error,
    shown_name as shown_name,
    shown_text as shown_text,
)

from .errors import ArgumentTypeError, ArgumentValueError, DriverSelectionError

_checks: Final = ArgumentChecks(ArgumentTypeError, ArgumentValueError)

instance_of: Final = _checks.instance_of
optional: Final = _checks.optional
elements: Final = _checks.elements
sequence_of: Final = _checks.sequence_of
integer: Final = _checks.integer
integer_fields: Final = _checks.integer_fields
int_in_range: Final = _checks.int_in_range
real: Final = _checks.real
text: Final = _checks.text
path: Final = _checks.path
function: Final = _checks.function
source: Final = _checks.source
wrong_type: Final = _checks.wrong_type


def descriptor(where: str, value: object) -> int:
    """Return a file descriptor that is open in this process.

    Raises:
        OSError: it is not open.
    """
    number = int_in_range(where, value, most=2**31 - 1)
    try:
        os.fstat(number)
    except OSError as error:
        raise OSError(
            error.errno or errno.EBADF,
            f"{where}: {number} is not open in this process\n"
            "  send the descriptor over a socket, by socket.send_fds or multiprocessing",
        ) from None
    return number


def positive_variable(variable: str, unit: str) -> int:
    """Return the positive number that an environment variable has; 0 if it is not set.

    Raises:
        DriverSelectionError: it has another value.
    """
    value = os.environ.get(variable, "").strip()
    number = integer_of_text(value, 1) if value else 0
    if number is None:
        raise DriverSelectionError(
            f"{variable} is {shown(value)}: use a number of {unit}, in digits alone"
        )
    return number
