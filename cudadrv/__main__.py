"""``python -m cudadrv``: the self-test, what is installed, the compiler and its cache."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import Final

from ptx.standard_streams import flush_output

from .cli.command_line import program_name, run
from .cli.output import print_error
from .errors import CudadrvError

_INTERRUPTED: Final = 130  # a shell's status for SIGINT
_CANNOT_RUN: Final = 2
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status, 1 if the output cannot be written."""
    try:
        status = run(sys.argv[1:] if arguments is None else arguments)
        flush_output()
    except BrokenPipeError:
        _discard_output()
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED
    except CudadrvError as error:  # no command can run: the emulator or the driver does not start
        print_error(f"{program_name()}: {error}")
        return _CANNOT_RUN
    except OSError as error:
        if error.errno not in _FULL:
            raise
        print_error(f"{program_name()}: {error.strerror}")
        _discard_output()
        return 1
    return status


def _discard_output() -> None:
    """Discard buffered output, so that the end of the process does not fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


if __name__ == "__main__":
    raise SystemExit(main())
