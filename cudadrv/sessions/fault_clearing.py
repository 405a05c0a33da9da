"""pytest plugin of `python -m cudadrv emulate --fault=test`: a fault fails its own test alone.

The command names it in PYTEST_PLUGINS. The devices work again from the end of the test's call on,
so that its fixtures can free their memory.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

from .stand_in import clear_faults


def pytest_runtest_teardown() -> None:
    """Clear the faults of a test before its fixtures end."""
    clear_faults()


def pytest_runtest_logfinish() -> None:
    """Clear the faults of a test's fixtures."""
    clear_faults()
