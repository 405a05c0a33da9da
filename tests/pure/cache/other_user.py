"""Another user, as far as this process may become one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Final

OTHER: Final = 65534
"""The number of "nobody", who has no files."""

MISSING: Final = "" if os.name != "nt" and os.geteuid() == 0 else "needs root to be another user"
"""Why there can be no other user here, if so."""


@contextlib.contextmanager
def other_user(act: Callable[[], object]) -> Iterator[None]:
    """Another user's process that has acted, and stays until the block ends.

    Raises:
        PermissionError: what it does failed.
    """
    (hears, says), (waits, lets_go) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.close(lets_go)
            os.setgroups([])
            os.setgid(OTHER)
            os.setuid(OTHER)
            act()
            os.write(says, b".")
            os.read(waits, 1)
        os._exit(0)
    os.close(says)
    try:
        if os.read(hears, 1) != b".":
            raise PermissionError("what the other user does failed")
        yield
    finally:
        os.close(lets_go)
        os.waitpid(child, 0)
        os.close(hears)
        os.close(waits)
