"""Pools of memory, and who reaches what."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Final

from ...driver._api import CUmemPool_attribute, cuuint64_t
from ..emulator import Emulator
from .special import Handlers, call, passed_on, put_size, put_uint

MEMORY_POOLS: Final = Handlers()
_MOST: Final = 13  # CU_MEMPOOL_ATTR_MAX_POOL_SIZE
_SIZES: Final = frozenset((
    int(CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD),
    int(CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
    int(CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH),
    int(CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT),
    int(CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH),
    _MOST,
))  # fmt: skip


@MEMORY_POOLS("cuMemSetAccess 10020 size size size size")
def set_memory_access(
    api: Emulator, address: int, nbytes: int, descriptions: int, count: int
) -> int:
    """Who reaches a range of addresses."""
    seen = _descriptions(descriptions, count)
    return int(call(api, "cuMemSetAccess", address, nbytes, seen, count)[0])


@MEMORY_POOLS("cuMemPoolGetAttribute 11020 size int >byte")
def pool_attribute(api: Emulator, pool: int, attribute: int, result: int) -> int:
    """A switch of 4 bytes, or a number of 8."""
    code, value = call(api, "cuMemPoolGetAttribute", pool, attribute)
    if not code:
        (put_uint if _is_switch(attribute) else put_size)(result, int(value))
    return int(code)


@MEMORY_POOLS("cuMemPoolSetAttribute 11020 size int &byte")
def set_pool_attribute(api: Emulator, pool: int, attribute: int, value: int) -> int:
    """A switch of 4 bytes, or a number of 8."""
    c_type = ctypes.c_uint if _is_switch(attribute) else ctypes.c_size_t
    number = c_type.from_address(value).value
    return int(call(api, "cuMemPoolSetAttribute", pool, attribute, cuuint64_t(number))[0])


def _is_switch(attribute: int) -> bool:
    """Whether it has 4 bytes; the others are sizes."""
    return attribute not in _SIZES


@MEMORY_POOLS("cuMemPoolSetAccess 11020 size size size")
def set_pool_access(api: Emulator, pool: int, descriptions: int, count: int) -> int:
    """Who reaches a pool; CUmemAccessDesc is three numbers."""
    seen = _descriptions(descriptions, count)
    return int(call(api, "cuMemPoolSetAccess", pool, seen, count)[0])


def _descriptions(address: int, count: int) -> list[SimpleNamespace]:
    """An array of CUmemAccessDesc, as the emulator reads it."""
    seen = []
    for at in range(count):
        kind, number, flags = (ctypes.c_int * 3).from_address(address + 12 * at)
        location = SimpleNamespace(type=kind, id=number)
        seen.append(SimpleNamespace(location=location, flags=flags))
    return seen


@MEMORY_POOLS("cuMemPoolGetAccess 11020 >int size size")
def pool_access(api: Emulator, result: int, pool: int, location: int) -> int:
    """Who reaches a pool: what cuMemPoolSetAccess said."""
    code, flags = call(api, "cuMemPoolGetAccess", pool, location_at(location))
    if not code:
        put_uint(result, int(flags))
    return int(code)


@MEMORY_POOLS("cuMemGetMemPool 13000 >size size int")
def pool_in_use(api: Emulator, result: int, location: int, kind: int) -> int:
    """The pool in use for a place."""
    return passed_on(api, "cuMemGetMemPool", (location_at(location), kind), result)


@MEMORY_POOLS("cuMemGetDefaultMemPool 13000 >size size int")
def default_pool(api: Emulator, result: int, location: int, kind: int) -> int:
    """The pool that a place has from the beginning."""
    return passed_on(api, "cuMemGetDefaultMemPool", (location_at(location), kind), result)


@MEMORY_POOLS("cuMemSetMemPool 13000 size int size")
def use_pool(api: Emulator, location: int, kind: int, pool: int) -> int:
    """Choose a pool for a place."""
    return int(call(api, "cuMemSetMemPool", location_at(location), kind, pool)[0])


def location_at(address: int) -> SimpleNamespace | None:
    """A CUmemLocation, which is two numbers; None for null."""
    if not address:
        return None
    kind, number = (ctypes.c_int * 2).from_address(address)
    return SimpleNamespace(type=kind, id=number)
