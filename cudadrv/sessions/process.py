"""The emulator in the place of the driver for the life of a process, under `emulate`.

`cudadrv/cli/startup/sitecustomize.py` calls it at the start of Python. A process that ignores
PYTHONPATH finds the libraries' files by LD_LIBRARY_PATH, and their first call calls it.
"""

from __future__ import annotations

import os
from typing import Final

from ptx.standard_streams import flush_output, write_error

from ..driver.deferred_start import register_at_exit
from ..driver.driver_selection import report_at_end, settled
from ..emulator.command_events import Event
from ..emulator.hosting import note_kernels
from .stand_in import is_standing, stand_in

_REJECTED: Final = 2  # as of a wrong command line


def start() -> None:
    """Put the emulator in the place of the driver, unless one is there.

    It does nothing in a process that `emulate` has not started. If it fails the process ends, as it
    would go on with the machine's own driver.
    """
    # `emulate` sets the first. The second is set for the helper that runs the real nvJitLink:
    # emulator/shared_libraries/link.
    without = os.environ.get("CUDADRV_NO_STAND_IN", "").strip() == "1"
    if not os.environ.get("CUDADRV_PYTHON") or without:
        return
    with settled():  # several threads may make the first call
        if is_standing():
            return
        try:
            substitute = stand_in(raise_findings=False)
        except Exception as error:
            write_error(f"cudadrv: {type(error).__name__}: {error}\n")
            flush_output()
            os._exit(_REJECTED)  # after an exception `site` would go on
        note_kernels(substitute.emulator, Event.KERNEL.note)
        report_at_end(substitute.emulator, immediately=True)
        register_at_exit(substitute.finish)  # it runs before that report
