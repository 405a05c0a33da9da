"""Work runs at its call, whatever order the run has: tests look at once at what is freed."""

from tests.emulator.conftest import at_once as at_once
