"""Which context is current in this thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cudadrv import Context
from cudadrv.driver._api import CUresult
from cudadrv.driver.driver_selection import current


def current_context() -> int:
    """The handle of the context that is current in this thread; 0 without one."""
    api = current().api
    code, raw = api.cuCtxPopCurrent()
    if code == CUresult.CUDA_ERROR_INVALID_CONTEXT:
        return 0
    assert code == CUresult.CUDA_SUCCESS
    (code,) = api.cuCtxPushCurrent(raw)
    assert code == CUresult.CUDA_SUCCESS
    return int(raw)


@contextmanager
def within(context: Context) -> Iterator[None]:
    """Let a context be current in the block."""
    api = current().api
    assert api.cuCtxPushCurrent(context.handle) == (0,)
    try:
        yield
    finally:
        assert not api.cuCtxPopCurrent()[0]
