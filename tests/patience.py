"""How long a test waits for what another thread or process does.

Long enough for a machine that is slow, or busy with other work, and less than pytest's `timeout`.
"""

import time
from collections.abc import Callable
from typing import Final

SECONDS: Final = 120.0


def wait_until(condition: Callable[[], bool]) -> None:
    """Call a condition until it holds.

    Raises:
        TimeoutError: It does not hold after `SECONDS`.
    """
    end = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited for {SECONDS:.0f} s in vain")
        time.sleep(0.001)
