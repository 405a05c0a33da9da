"""The calls of the driver in a block: those that failed, those of some names, or other functions.

A launcher that was made before the block has the driver's functions built in, so its calls are not
seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeAlias, cast

from cudadrv.driver._api import CUevent, CUresult, CUstream
from cudadrv.driver.driver_api import DriverApi
from cudadrv.driver.driver_selection import current

Call: TypeAlias = tuple[str, int]
"""A function and what it answered."""

# It is how an event says that it is not there yet, and no error.
_ANSWERS = (CUresult.CUDA_SUCCESS, CUresult.CUDA_ERROR_NOT_READY)


class _Replaced:
    """The functions of a driver, with others in the place of some."""

    # The functions have no signature in common.
    def __init__(self, api: DriverApi, functions: dict[str, Callable[..., Any]]) -> None:
        self.api = api
        vars(self).update(functions)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.api, name)


class _Watched:
    """The functions of a driver, which note some of their calls."""

    def __init__(self, api: DriverApi, is_noted: Callable[[Call], bool]) -> None:
        self.api = api
        self.noted: list[Call] = []
        self._is_noted = is_noted

    # The functions have no signature in common.
    def __getattr__(self, name: str) -> Any:
        found = getattr(self.api, name)
        if not name.startswith("cu"):
            return found

        def call(*args: Any) -> Any:
            result = found(*args)
            made = (name, int(result[0]))
            if self._is_noted(made):
                self.noted.append(made)
            return result

        return call


@contextmanager
def _noted(is_noted: Callable[[Call], bool]) -> Iterator[list[Call]]:
    watched = _Watched(current().api, is_noted)
    with used_functions(watched):
        yield watched.noted


@contextmanager
def used_functions(api: object) -> Iterator[None]:
    """Let the driver in use have the functions of an object, in the block."""
    driver = current()
    former, driver.api = driver.api, cast(DriverApi, api)
    try:
        yield
    finally:
        driver.api = former


def replaced_calls(**functions: Callable[..., Any]) -> AbstractContextManager[None]:
    """Other functions in the place of the driver's, in the block."""
    return used_functions(_Replaced(current().api, functions))


def failed_calls() -> AbstractContextManager[list[Call]]:
    """The calls that fail in the block."""
    return _noted(lambda call: call[1] not in _ANSWERS)


def calls_of(*names: str) -> AbstractContextManager[list[Call]]:
    """The calls of some functions in the block."""
    return _noted(lambda call: call[0] in names)


@contextmanager
def waits_of_streams() -> Iterator[list[tuple[int, int]]]:
    """The waits in the block, by handle: the stream that waits, and the one that it waits for."""
    api = current().api
    recorded: dict[int, int] = {}
    waits: list[tuple[int, int]] = []

    def cuEventRecord(event: CUevent, stream: CUstream) -> tuple[CUresult]:
        recorded[int(event)] = int(stream)
        return api.cuEventRecord(event, stream)

    def cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: int) -> tuple[CUresult]:
        waits.append((int(stream), recorded[int(event)]))
        return api.cuStreamWaitEvent(stream, event, flags)

    with replaced_calls(cuEventRecord=cuEventRecord, cuStreamWaitEvent=cuStreamWaitEvent):
        yield waits
