from __future__ import annotations

from collections.abc import Iterator

import pytest

from .lab import Lab


@pytest.fixture
def lab() -> Iterator[Lab]:
    """The devices, with late kernels; at the end everything must have been given back."""
    with Lab() as lab:
        yield lab


@pytest.fixture
def two_devices(lab: Lab) -> Lab:
    """The same, of two devices."""
    if len(lab.contexts) < 2:
        pytest.skip("needs a second device")
    return lab
