"""The calls of the driver that failed in a block, whoever made them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from cudadrv.driver._api import CUresult
from cudadrv.driver.driver_api import DriverApi
from cudadrv.driver.in_use import current

# It is how an event says that it is not there yet, and no error.
_ANSWERS = (CUresult.CUDA_SUCCESS, CUresult.CUDA_ERROR_NOT_READY)


class _Watched:
    """The functions of a driver; what they answer is noted where it is a failure."""

    def __init__(self, api: DriverApi) -> None:
        self.api = api
        self.failed: list[tuple[str, int]] = []

    # The functions have no signature in common.
    def __getattr__(self, name: str) -> Any:
        found = getattr(self.api, name)
        if not name.startswith("cu"):
            return found

        def call(*args: Any) -> Any:
            result = found(*args)
            if result[0] not in _ANSWERS:
                self.failed.append((name, int(result[0])))
            return result

        return call


@contextmanager
def failed_calls() -> Iterator[list[tuple[str, int]]]:
    """The calls that fail in the block, each with its result."""
    driver = current()
    watched = _Watched(driver.api)
    driver.api = cast(DriverApi, watched)
    try:
        yield watched.failed
    finally:
        driver.api = watched.api
