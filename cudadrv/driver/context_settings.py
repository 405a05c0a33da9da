"""What a context may be told beforehand: limits of device code, and what the L1 cache is for."""

from __future__ import annotations

from enum import Enum
from typing import Final

from .. import border
from ._api import CUfunc_cache, CUlimit
from .context_box import ContextHandle
from .driver_selection import failure
from .handle import NotCopyable


class CachePreference(Enum):
    """How a multiprocessor divides its memory between the L1 cache and shared memory.

    Source: CUfunc_cache in the CUDA Driver API manual. It is a wish; many devices divide by need.
    """

    NONE = int(CUfunc_cache.CU_FUNC_CACHE_PREFER_NONE)
    SHARED = int(CUfunc_cache.CU_FUNC_CACHE_PREFER_SHARED)
    L1 = int(CUfunc_cache.CU_FUNC_CACHE_PREFER_L1)
    EQUAL = int(CUfunc_cache.CU_FUNC_CACHE_PREFER_EQUAL)


_STACK: Final = CUlimit.CU_LIMIT_STACK_SIZE
_HEAP: Final = CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE
_PRINTF: Final = CUlimit.CU_LIMIT_PRINTF_FIFO_SIZE


class ContextLimits(NotCopyable):
    """Limits of device code in a context; reading one asks the driver, setting one tells it.

    What the driver makes of a value may be larger. The heap and the buffer of `printf` are changed
    before the first kernel that uses them is launched.

    Attributes:
        stack_bytes: the stack of each thread.
        heap_bytes: what `malloc` and `new` take from.
        printf_bytes: what kernels print until the next synchronisation.
    """

    __slots__ = ("_handle",)

    def __init__(self, box: ContextHandle) -> None:
        self._handle = box

    def __repr__(self) -> str:
        names = ("stack_bytes", "heap_bytes", "printf_bytes")
        return f"<ContextLimits {', '.join(f'{name}={getattr(self, name)}' for name in names)}>"

    @property
    def stack_bytes(self) -> int:
        """The stack of each thread."""
        return self._get(_STACK)

    @stack_bytes.setter
    def stack_bytes(self, nbytes: int) -> None:
        self._set(_STACK, nbytes)

    @property
    def heap_bytes(self) -> int:
        """What `malloc` and `new` in kernels take from."""
        return self._get(_HEAP)

    @heap_bytes.setter
    def heap_bytes(self, nbytes: int) -> None:
        self._set(_HEAP, nbytes)

    @property
    def printf_bytes(self) -> int:
        """What kernels print until the next synchronisation."""
        return self._get(_PRINTF)

    @printf_bytes.setter
    def printf_bytes(self, nbytes: int) -> None:
        self._set(_PRINTF, nbytes)

    def _get(self, limit: CUlimit) -> int:
        box = self._handle
        code, value = box.call(box.api.cuCtxGetLimit, limit)
        if code:
            raise failure(box.api, code, "cuCtxGetLimit", f"a limit of {limit.name}")
        return value

    def _set(self, limit: CUlimit, nbytes: int) -> None:
        nbytes = border.whole("a limit of a context", nbytes)
        box = self._handle
        (code,) = box.call(box.api.cuCtxSetLimit, limit, nbytes)
        if code:
            doing = f"setting {limit.name} to {nbytes}"
            raise failure(box.api, code, "cuCtxSetLimit", doing)
