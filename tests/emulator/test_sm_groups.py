"""Groups of multiprocessors of different sizes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from cudadrv.driver._api import CUdevice, CUdevResource, CUdevResourceType
from cudadrv.emulator import EmulatedDevice, Emulator
from cudadrv.emulator.calls.call import state_of
from cudadrv.emulator.calls.green_context import GroupCountCalls

from .calls import code, ok

SM = CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
BACKFILL = 1


@dataclass
class Group:
    """A CU_DEV_SM_RESOURCE_GROUP_PARAMS, which the bindings of CUDA 12 lack."""

    smCount: int = 0  # noqa: N815  # the driver's name
    coscheduledSmCount: int = 0  # noqa: N815  # the driver's name
    flags: int = 0


@pytest.fixture
def api() -> Emulator:
    emulator = Emulator([EmulatedDevice(sm_count=44)])
    ok(emulator.cuInit(0))
    return emulator


def whole(api: Emulator) -> CUdevResource:
    return ok(api.cuDeviceGetDevResource(CUdevice(0), SM))


def counts(found: tuple[list[CUdevResource], CUdevResource]) -> list[int]:
    groups, rest = found
    return [each.sm.smCount if each.type == SM else 0 for each in (*groups, rest)]


def test_groups_have_the_counts_that_were_requested(api: Emulator) -> None:
    given = [Group(16), Group(10, 2), Group(8, 8)]
    found = ok(api.cuDevSmResourceSplit(3, whole(api), 0, given))
    assert counts(found) == [16, 10, 8, 10]
    described = ok(api.cuDevResourceGenerateDesc(found[0][:2], 2))
    green = ok(api.cuGreenCtxCreate(described, CUdevice(0), 1))
    assert ok(api.cuGreenCtxGetDevResource(green, SM)).sm.smCount == 26


def test_events_serve_the_streams_of_green_contexts_and_their_primary_one(api: Emulator) -> None:
    groups, _ = ok(api.cuDevSmResourceSplit(1, whole(api), 0, [Group(16)]))
    green = ok(api.cuGreenCtxCreate(ok(api.cuDevResourceGenerateDesc(groups, 1)), CUdevice(0), 1))
    own = ok(api.cuCtxCreate(None, 0, CUdevice(0)))
    of_own = ok(api.cuEventCreate(0))
    contexts = ok(api.cuDevicePrimaryCtxRetain(CUdevice(0))), ok(api.cuCtxFromGreenCtx(green))
    in_green, events = ok(api.cuGreenCtxStreamCreate(green, 1, 0)), []
    for context in contexts:
        ok(api.cuCtxSetCurrent(context))
        events.append(ok(api.cuEventCreate(0)))
    ok(api.cuCtxSetCurrent(contexts[0]))
    in_primary = ok(api.cuStreamCreate(1))
    for stream in (in_green, in_primary):
        for event in events:
            ok(api.cuEventRecord(event, stream))
        assert code(api.cuEventRecord(of_own, stream)) == 400
    assert ok(api.cuEventElapsedTime(*events)) >= 0
    ok(api.cuCtxDestroy(own))


def test_a_stream_has_the_multiprocessors_of_its_context(api: Emulator) -> None:
    groups, _ = ok(api.cuDevSmResourceSplit(1, whole(api), 0, [Group(16)]))
    green = ok(api.cuGreenCtxCreate(ok(api.cuDevResourceGenerateDesc(groups, 1)), CUdevice(0), 1))
    ok(api.cuCtxSetCurrent(ok(api.cuDevicePrimaryCtxRetain(CUdevice(0)))))
    streams = ok(api.cuGreenCtxStreamCreate(green, 1, 0)), ok(api.cuStreamCreate(1))
    assert [ok(api.cuStreamGetDevResource(each, SM)).sm.smCount for each in streams] == [16, 44]


def test_a_count_that_is_not_given_is_reported(api: Emulator) -> None:
    given = [Group(8, 8), Group(0, 8)]
    assert counts(ok(api.cuDevSmResourceSplit(2, whole(api), 0, given))) == [8, 32, 4]
    assert [each.smCount for each in given] == [8, 32]
    filled = [Group(0, 8, BACKFILL)]
    assert counts(ok(api.cuDevSmResourceSplit(1, whole(api), 0, filled))) == [44, 0]


def test_a_rest_is_divided_again_and_a_group_is_not(api: Emulator) -> None:
    groups, rest = ok(api.cuDevSmResourceSplit(1, whole(api), 0, [Group(16)]))
    assert counts(ok(api.cuDevSmResourceSplit(1, rest, 0, [Group(8)]))) == [8, 20]
    assert code(api.cuDevSmResourceSplit(1, groups[0], 0, [Group(8)])) == 915


def test_groups_that_cannot_be_are_rejected(api: Emulator) -> None:
    resource = whole(api)
    for given in (Group(46), Group(12, 8), Group(7, 2), Group(8, 3), Group(4, 8), Group(0, 46)):
        assert code(api.cuDevSmResourceSplit(1, resource, 0, [given])) == 915
    assert code(api.cuDevSmResourceSplit(1, resource, 0, [Group(8, 0, 2)])) == 801
    assert code(api.cuDevSmResourceSplit(2, resource, 0, [Group(8)])) == 1
    assert code(api.cuDevSmResourceSplit(0, resource, 0, [Group(8)])) == 1
    assert code(api.cuDevSmResourceSplit(1, resource, 1, [Group(8)])) == 1
    assert code(api.cuDevSmResourceSplit(1, None, 0, [Group(8)])) == 1
    # Where only the counts are asked for, a group may have none.
    none = Group(0, 46)
    assert code(GroupCountCalls(state_of(api)).cuDevSmResourceSplit(1, resource, 0, [none])) == 0
    assert none.smCount == 0
