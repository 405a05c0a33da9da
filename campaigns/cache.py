"""Ways into the cache folder: another user's links, FIFOs, locks and folders, damage, headers.

Whatever is done, each image is the right one, nothing waits, and no file is read, written or
removed that is not the cache's own.
"""

from __future__ import annotations

import os
import random
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.pure.cache.other_user import MISSING

from .cache_attacks import AS_ANOTHER, ATTACKS, Place
from .report import Report

SECONDS: Final = 60.0
"""Less than anything waits for a lock."""


def run_campaign(seconds: float, seed: int) -> Report:
    """One attack after the other, each on a folder of its own."""
    outcome = Report()
    if os.name == "nt":
        outcome.skipped["cache"] = "no POSIX permissions"
        return outcome
    attacks = dict(ATTACKS)
    if MISSING:
        outcome.skipped |= dict.fromkeys(AS_ANOTHER, MISSING)
    else:
        attacks |= AS_ANOTHER
    numbers, deadline = random.Random(seed), time.monotonic() + seconds
    while time.monotonic() < deadline and not outcome.failures:
        for name, each in attacks.items():
            number = numbers.getrandbits(32)
            outcome.count(name)
            outcome.failures += [
                f"{name}: {wrong}; Place(folder, {number})" for wrong in _failures(each, number)
            ]
    return outcome


def _failures(each: Callable[[Place], None], seed: int) -> list[str]:
    """What did not hold in one attack; that it hangs, too."""
    failures: list[str] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:

        def work() -> None:
            place = Place(Path(name), seed)
            try:
                each(place)
            except Exception:
                failures.append(traceback.format_exc())
            failures.extend(place.wrong)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(SECONDS)
        if thread.is_alive():
            failures.append("it hangs")
    return failures
