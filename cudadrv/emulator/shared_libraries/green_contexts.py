"""Green contexts and their multiprocessors, which C has in structures."""

from __future__ import annotations

import ctypes
from typing import Final

from ...driver._api import CUdevResource, CUdevResourceType
from ..caller_memory import mapped, view_at
from ..calls.call import state_of
from ..calls.green_context import GroupCountCalls
from ..emulator import Emulator
from .caller_structures import structures_at
from .handlers import INVALID_VALUE, Handlers, call, passed_on, put_bytes, put_size, put_uint

GREEN_CONTEXTS: Final = Handlers()
_BYTES: Final = 144  # sizeof(CUdevResource), of CUDA 12 and 13
_KINDS: Final = frozenset(map(int, CUdevResourceType))


class _Group(ctypes.Structure):
    """CU_DEV_SM_RESOURCE_GROUP_PARAMS."""

    _fields_ = (
        ("smCount", ctypes.c_uint),
        ("coscheduledSmCount", ctypes.c_uint),
        ("preferredCoscheduledSmCount", ctypes.c_uint),
        ("flags", ctypes.c_uint),
        ("reserved", ctypes.c_uint * 12),
    )


def _resource(address: int) -> CUdevResource:
    """Return the bindings' view of a caller's structure; an invalid one if it is no resource."""
    kind = view_at(ctypes.c_int, mapped(address, _BYTES)).value
    return CUdevResource(_ptr=address) if kind in _KINDS else CUdevResource()


def _put(address: int, resource: CUdevResource) -> None:
    put_bytes(address, ctypes.string_at(int(resource.getPtr()), _BYTES))


@GREEN_CONTEXTS("cuDevSmResourceSplitByCount")
def split(
    api: Emulator,
    result: int,
    count: int,
    resource: int,
    remainder: int,
    flags: int,
    min_count: int,
) -> int:
    """Divide multiprocessors; without memory for the parts only return how many are possible."""
    name, arguments = "cuDevSmResourceSplitByCount", (_resource(resource), flags, min_count)
    capacity = view_at(ctypes.c_uint, count).value if result else 0
    code, parts, group_count, remaining = call(api, name, 0, *arguments)
    if not code and capacity:
        code, parts, group_count, remaining = call(
            api, name, min(capacity, group_count), *arguments
        )
    if not code:
        put_uint(count, group_count)
        for index, part in enumerate(parts):
            _put(result + _BYTES * index, part)
        if remainder:
            _put(remainder, remaining)
    return int(code)


@GREEN_CONTEXTS("cuDevSmResourceSplit")
def split_into_groups(
    api: Emulator, result: int, count: int, resource: int, remainder: int, flags: int, params: int
) -> int:
    """Divide multiprocessors into groups; without memory for them only return their counts."""
    addresses = structures_at(params, ctypes.sizeof(_Group), count)
    group_params = [view_at(_Group, at) for at in addresses]
    arguments = (count, _resource(resource), flags, group_params)
    if not result:
        return int(GroupCountCalls(state_of(api)).cuDevSmResourceSplit(*arguments)[0])
    code, groups, remaining = call(api, "cuDevSmResourceSplit", *arguments)
    if not code:
        for index, group in enumerate(groups):
            _put(result + _BYTES * index, group)
        if remainder:
            _put(remainder, remaining)
    return int(code)


@GREEN_CONTEXTS("cuDevResourceGenerateDesc")
def describe(api: Emulator, result: int, resources: int, count: int) -> int:
    """Describe the multiprocessors of a green context."""
    if count and not resources:
        return INVALID_VALUE
    native = [_resource(at) for at in structures_at(resources, _BYTES, count)]
    return passed_on(api, "cuDevResourceGenerateDesc", (native, count), result)


@GREEN_CONTEXTS("cuStreamGetCtx_v2")
def contexts_of_stream(api: Emulator, stream: int, result: int, green: int) -> int:
    """Return a stream's regular context, and its green one, if it has one."""
    code, context = call(api, "cuStreamGetCtx", stream)
    if not code:
        regular, of_green = state_of(api).handles.regular_and_green(int(context))
        put_size(result, regular)
        put_size(green, of_green)
    return int(code)
