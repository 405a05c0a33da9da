"""Workers that tests share: starting one takes a second."""

from __future__ import annotations

import faulthandler
from collections.abc import Iterator
from typing import Final

import pytest

import cudadrv
from cudadrv.cluster import GpuExecutor, TilePolicy

_SECONDS: Final = 240  # far beyond what any of them takes


@pytest.fixture(autouse=True)
def ends_in_time() -> Iterator[None]:
    """A test that waits for a worker for ever ends its process, and tells where it waits."""
    faulthandler.dump_traceback_later(_SECONDS, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="module")
def two() -> Iterator[GpuExecutor]:
    if len(cudadrv.list_devices()) < 2:
        pytest.skip("needs two devices")
    with GpuExecutor.local(2) as executor:
        yield executor


@pytest.fixture
def local(two: GpuExecutor) -> Iterator[GpuExecutor]:
    """Two processes of this host, with the policy that nobody has changed."""
    two.policy = TilePolicy()
    yield two
    two.policy = TilePolicy()
