"""Groups of multiprocessors of different sizes: cuDevSmResourceSplit (CUDA 13.1).

CUDA Driver API: "Green Contexts". What is co-scheduled has no effect but on the sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol

from ...driver._api import CUdevResource, CUresult
from ..refusal import SUCCESS, Refusal, invalid_value
from ..sm_resources import SmRange, steps
from .call import call
from .green_context import GreenContextCalls

_BACKFILL: Final = 1  # CU_DEV_SM_RESOURCE_GROUP_BACKFILL
_EVEN: Final = 2  # the count of a group is a multiple of it
_OF_GROUPS: Final = -1  # what one division into groups gave, instead of the size of equal parts


class GroupParams(Protocol):
    """What is read and written of a CU_DEV_SM_RESOURCE_GROUP_PARAMS."""

    smCount: int  # noqa: N815  # the driver's name
    coscheduledSmCount: int  # noqa: N815  # the driver's name
    flags: int


class SmGroupCalls(GreenContextCalls):
    """Groups of multiprocessors."""

    @call(2)
    def cuDevSmResourceSplit(
        self,
        nb_groups: int,
        input: CUdevResource | None,
        flags: int,
        group_params: Sequence[GroupParams] | None,
        /,
    ) -> tuple[CUresult, list[CUdevResource], CUdevResource]:
        """Divide multiprocessors into groups, and a rest that may be divided again.

        A group of which no count is given has as many as there are, and is told how many.
        """
        groups, rest = self._groups(nb_groups, input, flags, group_params)
        if any(not group.count for group in groups):
            raise _refused("there are no multiprocessors left for a group")
        device = self._device_at(rest.ordinal)
        return SUCCESS, [each.native(device) for each in groups], rest.native(device)

    @call()
    def _look_at_groups(
        self,
        nb_groups: int,
        input: CUdevResource | None,
        flags: int,
        group_params: Sequence[GroupParams] | None,
        /,
    ) -> tuple[CUresult]:
        """Only tell the counts, which may be 0, as where C gives no place for groups."""
        self._groups(nb_groups, input, flags, group_params)
        return (SUCCESS,)

    def _groups(
        self,
        count: int,
        resource: CUdevResource | None,
        flags: int,
        params: Sequence[GroupParams] | None,
    ) -> tuple[list[SmRange], SmRange]:
        given = SmRange.read(resource)
        if flags or not params or not 0 < count <= len(params):
            raise invalid_value(f"{count} groups with flags {flags:#x}: give one or more, and 0")
        if not given.is_whole:
            raise _refused("a group is divided once a green context has it")
        step = steps(self._device_at(given.ordinal), ignore=False)[1]
        groups: list[SmRange] = []
        left = given
        for each in params[:count]:
            size = _size_of(each, step, left.count)
            each.smCount = size
            groups.append(replace(left, count=size, part=_OF_GROUPS, is_whole=False))
            left = replace(left, start=left.start + size, count=left.count - size)
        return groups, left


def _size_of(params: GroupParams, step: int, left: int) -> int:
    """How many multiprocessors a group has."""
    together, size = int(params.coscheduledSmCount) or step, int(params.smCount)
    if int(params.flags) & ~_BACKFILL:
        raise Refusal(
            CUresult.CUDA_ERROR_NOT_SUPPORTED,
            f"the emulator makes groups by flags 0 and 1, not {int(params.flags):#x}: its devices "
            "are one locality domain",
        )
    if together % _EVEN:
        raise _refused(f"{together} multiprocessors together: an even number will do")
    unit = _EVEN if int(params.flags) & _BACKFILL else together
    if not size:
        found = left // unit * unit
        return found if found >= together else 0
    if size % unit or size > left or size < together:
        raise _refused(
            f"a group of {size} multiprocessors, {together} of them together, of {left} that are "
            f"left: a multiple of {unit} will do"
        )
    return size


def _refused(text: str) -> Refusal:
    return Refusal(CUresult.CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, text)
