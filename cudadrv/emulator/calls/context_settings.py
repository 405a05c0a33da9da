"""Limits and cache preferences of contexts.

CUDA Driver API: "Context Management".
"""

from __future__ import annotations

from typing import Final

from ptx.emulate.exec.limits import DEFAULT_LIMITS

from ...driver._api import CUfunc_cache, CUlimit, CUresult
from ..call_rules import CallRules
from ..refusal import OK, SUCCESS, Refusal, invalid_value
from .call import call

_HEAP: Final = int(CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE)
# What an H100's driver says at first, but for the stack: there it grows by itself.
_FIRST: Final = {
    int(CUlimit.CU_LIMIT_STACK_SIZE): DEFAULT_LIMITS.stack_bytes,
    int(CUlimit.CU_LIMIT_PRINTF_FIFO_SIZE): 1 << 20,
}


class ContextSettingCalls(CallRules):
    """Limits and cache preferences of contexts."""

    @call(1)
    def cuCtxGetLimit(self, limit: CUlimit, /) -> tuple[CUresult, int]:
        """Stack, heap or print buffer."""
        context, number = self._current(), int(limit)
        if number == _HEAP:
            return SUCCESS, context.device.model.heap.limit
        if number not in _FIRST:
            raise _unsupported(number)
        return SUCCESS, context.settings.get(number, _FIRST[number])

    @call()
    def cuCtxSetLimit(self, limit: CUlimit, value: int, /) -> tuple[CUresult]:
        """The heap is the device's, and grows only; a stack is of all launches of the context."""
        context, number = self._current(), int(limit)
        if number == _HEAP:
            with context.device.lock:
                heap = context.device.model.heap
                if heap.used_bytes:
                    raise invalid_value("the heap is in use: its size is set before kernels use it")
                heap.limit = value
        elif number in _FIRST:
            context.settings[number] = value
        else:
            raise _unsupported(number)
        return OK

    @call(1)
    def cuCtxGetCacheConfig(self) -> tuple[CUresult, CUfunc_cache]:
        """What was set; it has no effect."""
        return SUCCESS, CUfunc_cache(self._current().cache_config)

    @call()
    def cuCtxSetCacheConfig(self, config: CUfunc_cache, /) -> tuple[CUresult]:
        """Remember a wish."""
        if int(config) not in (0, 1, 2, 3):
            raise invalid_value(f"there is no cache configuration {int(config)}")
        self._current().cache_config = int(config)
        return OK


def _unsupported(number: int) -> Refusal:
    return Refusal(
        CUresult.CUDA_ERROR_UNSUPPORTED_LIMIT, f"the emulator has no limit {number} of a context"
    )
