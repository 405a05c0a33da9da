"""A session for the tests that count."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import cudadrv
from cudadrv import emulator


@pytest.fixture
def context() -> Iterator[cudadrv.Context]:
    with emulator.session(2):
        yield cudadrv.cuda_context_for(0)
