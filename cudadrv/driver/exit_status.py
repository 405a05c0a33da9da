"""The exit status of a process with findings of checks."""

from __future__ import annotations

import os
from typing import Final

from ptx.standard_streams import flush_output

FOUND: Final = 66
"""The status of a process with findings, as of ThreadSanitizer: no usual one of a program."""


def end_with(status: int) -> None:
    """Let the process end with this status, at the last step of the C library's `exit`.

    Python has no function for it: `sys.exit` in an exit handler only prints, and `os._exit` would
    skip later handlers and the destructors that flush files.
    """
    import ctypes  # only processes with findings need it

    try:
        libc = ctypes.CDLL(None)
        native = getattr(libc, "cudadrv_exit_with", None)  # of `emulate --native`
        if native is not None:
            native(status)
            return
        register = getattr(libc, "__cxa_atexit")  # a class would mangle the name
    except (AttributeError, OSError, TypeError):  # Windows
        flush_output()
        os._exit(status)
    # The last one runs first. `_exit` drops what C has buffered.
    for function, argument in ((libc._exit, status), (libc.fflush, 0)):
        address = ctypes.cast(function, ctypes.c_void_p)
        register(address, ctypes.c_void_p(argument), None)
