"""Workers that tests share: starting one takes a second."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cudadrv.cluster import GpuExecutor, TilePolicy


@pytest.fixture(scope="module")
def two() -> Iterator[GpuExecutor]:
    with GpuExecutor.local(2) as executor:
        yield executor


@pytest.fixture
def local(two: GpuExecutor) -> Iterator[GpuExecutor]:
    """Two processes of this host, with the policy that nobody has changed."""
    two.policy = TilePolicy()
    yield two
    two.policy = TilePolicy()
