"""A program of Python that makes the calls of a plan: its library, the folder and the way."""

from __future__ import annotations

import ctypes
import os
import sys


def main(library: str, folder: str, way: str) -> None:
    """Make the calls in one of the ways.

    Raises:
        ChildProcessError: a forked child did not end with status 0.
    """
    os.chdir(folder)
    native = (ctypes.PyDLL if way == "locked" else ctypes.CDLL)(library)
    native.prepare()
    call_all = native.call_all

    class AtExit:
        def __del__(self) -> None:
            call_all()

    if way == "exit":
        native.call_at_exit()
    elif way == "finalizer":
        globals()["at_exit"] = AtExit()
    elif way == "hosted":
        native.call_in_host_function()
    elif way != "fork":
        (call_all if way == "plain" else native.call_in_thread)()
    elif os.fork():
        _, status = os.wait()
        if status:
            raise ChildProcessError(f"the child ended with {status:#x}")
    else:
        call_all()
        os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:4])
