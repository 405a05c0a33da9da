"""What a Python process of the command ``emulate`` begins and ends with."""

from __future__ import annotations

import atexit
import os
import sys
from typing import Final

from ..sessions.stand_in import StandIn, stand_in

_REFUSED: Final = 2  # as of a wrong command line


def begin() -> None:
    """Put the emulator in the place of the driver, as long as the process lives.

    Where that is refused the process ends, as it would go on with the machine's own driver.
    """
    try:
        stood = stand_in(raise_findings=False)
    except Exception as error:
        print(f"cudadrv: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(_REFUSED)  # `site` takes an exception for a fault of its own, and goes on
    atexit.register(_tell, stood)


def _tell(stood: StandIn) -> None:
    """Say what was found, at the end of the process."""
    stood.close()
    for found in stood.emulator.findings:
        print(found, file=sys.stderr)
