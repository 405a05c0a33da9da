"""What each driver function answers to a handle of something that was destroyed.

A GPU's driver often does not look: a second destroy may crash, or hit another object. The emulator
refuses, and does nothing.
"""

from __future__ import annotations

from typing import Final, get_type_hints

import pytest

from cudadrv.driver import _api
from cudadrv.driver._api import (
    CUarray,
    CUcontext,
    CUdeviceptr,
    CUevent,
    CUfunction,
    CUgraph,
    CUgraphExec,
    CUgraphNode,
    CUmemoryPool,
    CUmipmappedArray,
    CUmodule,
    CUstream,
    CUsurfObject,
    CUtexObject,
    CUuserObject,
)
from cudadrv.emulator import EmulatedDevice, Emulator
from tests.rows import all_rows

from .calls import OpenApi, code, ok
from .handle_calls import ALL, CALLS, IN_STRUCTURES
from .handles import KINDS, Call

EACH = pytest.mark.parametrize(
    ("kind", "answer", "use"), [*ALL.values(), *IN_STRUCTURES.values()], ids=[*ALL, *IN_STRUCTURES]
)


def an_emulator() -> Emulator:
    """Two devices, and a context of the first that is current."""
    emulator = Emulator([EmulatedDevice(), EmulatedDevice(sm_count=4)])
    ok(emulator.cuInit(0))
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    return emulator


def state(emulator: Emulator) -> list[object]:
    """What a refused call must leave as it was: the live objects and the memory in use."""
    return [
        emulator.live_objects(),
        emulator.cuMemGetInfo(),
        int(ok(emulator.cuCtxGetCurrent())),
    ]


@pytest.mark.slow
@all_rows
@EACH
def test_a_live_handle_is_accepted(kind: str, answer: int | None, use: Call) -> None:
    ready = an_emulator()
    assert int(use(ready, KINDS[kind].make(ready))[0]) == 0


@all_rows
@EACH
def test_a_dead_handle_is_rejected(kind: str, answer: int | None, use: Call) -> None:
    ready = an_emulator()
    handle = KINDS[kind].make(ready)
    ok(KINDS[kind].destroy(ready, handle)[:1])
    expected = KINDS[kind].dead if answer is None else answer
    assert code(use(ready, handle)) == expected
    # Neither is it the handle of anything that is made since.
    others = [int(KINDS[kind].make(ready)) for _ in range(20)]
    assert "memory" in kind or int(handle) not in others
    if "memory" not in kind:
        assert code(use(ready, handle)) == expected


@pytest.mark.slow
@all_rows
@EACH
def test_a_handle_of_a_destroyed_context_is_rejected(
    kind: str, answer: int | None, use: Call
) -> None:
    ready = an_emulator()
    handle = KINDS[kind].make(ready)
    ok(ready.cuCtxDestroy(ok(ready.cuCtxGetCurrent())))
    ok(ready.cuCtxCreate(None, 0, ok(ready.cuDeviceGet(0))))
    orphan = KINDS[kind].orphan
    if orphan is None:
        assert int(use(ready, handle)[0]) == 0
    elif answer is not None and kind != "stream":
        assert code(use(ready, handle)) == answer
    else:
        assert code(use(ready, handle)) == orphan


@all_rows
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "function"])
def test_a_second_destroy_is_rejected_and_does_nothing(kind: str) -> None:
    ready = an_emulator()
    handle = KINDS[kind].make(ready)
    ok(KINDS[kind].destroy(ready, handle)[:1])
    before = state(ready)
    for _ in range(2):
        assert code(KINDS[kind].destroy(ready, handle)) == KINDS[kind].dead
        assert state(ready) == before


HANDLES: Final = (
    CUstream, CUevent, CUmodule, CUfunction, CUgraph, CUgraphExec, CUgraphNode, CUcontext, CUarray,
    CUmipmappedArray, CUtexObject, CUsurfObject, CUuserObject, CUdeviceptr,
)  # fmt: skip


# The name is absent from some releases of the bindings.
TYPES: Final = {"CUcheckpointRestoreArgs": object, **vars(_api)}


def test_every_function_with_a_handle_is_among_them() -> None:
    found = {
        (name, parameter)
        for name, function in ((name, getattr(OpenApi, name)) for name in dir(OpenApi))
        if name.startswith("cu")
        for parameter, hint in get_type_hints(function, localns=TYPES).items()
        if hint in HANDLES and parameter != "return"
    }
    assert found - set(CALLS) == {
        # Only another process has memory that this one closes: see test_interprocess.py.
        ("cuIpcCloseMemHandle", "dptr"),
        # The emulator has no OpenGL: these fail whatever they are given.
        ("cuGraphicsMapResources", "h_stream"),
        ("cuGraphicsUnmapResources", "h_stream"),
    }


def test_a_pool_is_never_destroyed_and_a_foreign_one_is_rejected() -> None:
    ready = an_emulator()
    other = Emulator()
    ok(other.cuInit(0))
    foreign = ok(other.cuDeviceGetDefaultMemPool(ok(other.cuDeviceGet(0))))
    for pool in (foreign, CUmemoryPool(0)):
        assert code(ready.cuMemPoolTrimTo(pool, 0)) == 1
