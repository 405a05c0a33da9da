"""What is set on streams, and how threads take captures."""

from __future__ import annotations

import threading

import pytest

from cudadrv.driver._api import (
    CUkernelNodeAttrValue,
    CUstream,
    CUstreamCaptureMode,
    driver,
)
from cudadrv.emulator import EmulatedDevice, Emulator

from .calls import LEGACY, code, ok
from .handles import a_stream

SYNC_POLICY, PRIORITY, DOMAIN = 3, 8, 10
GLOBAL, THREAD_LOCAL, RELAXED = (CUstreamCaptureMode(mode) for mode in range(3))


@pytest.fixture
def api() -> Emulator:
    emulator = Emulator([EmulatedDevice(), EmulatedDevice()])
    ok(emulator.cuInit(0))
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    return emulator


def set_policy(api: Emulator, stream: CUstream, policy: int) -> None:
    value = CUkernelNodeAttrValue()
    value.syncPolicy = driver.CUsynchronizationPolicy(policy)
    ok(api.cuStreamSetAttribute(stream, SYNC_POLICY, value))


def test_attributes_are_stored_and_copied(api: Emulator) -> None:
    one, other = a_stream(api), a_stream(api)
    assert int(ok(api.cuStreamGetAttribute(one, SYNC_POLICY)).syncPolicy) == 1
    set_policy(api, one, 4)
    value = CUkernelNodeAttrValue()
    value.priority = -9
    ok(api.cuStreamSetAttribute(one, PRIORITY, value))
    assert ok(api.cuStreamGetPriority(one)) == -5
    ok(api.cuStreamCopyAttributes(other, one))
    assert int(ok(api.cuStreamGetAttribute(other, SYNC_POLICY)).syncPolicy) == 4
    assert ok(api.cuStreamGetAttribute(other, PRIORITY)).priority == -5
    set_policy(api, one, 2)
    assert int(ok(api.cuStreamGetAttribute(other, SYNC_POLICY)).syncPolicy) == 4


def test_attributes_that_there_are_not_are_rejected(api: Emulator) -> None:
    stream = a_stream(api)
    assert code(api.cuStreamGetAttribute(stream, 2)) == 1
    assert code(api.cuStreamSetAttribute(stream, 2, CUkernelNodeAttrValue())) == 1
    assert code(api.cuStreamSetAttribute(stream, DOMAIN, None)) == 1
    ok(api.cuCtxCreate(None, 0, ok(api.cuDeviceGet(1))))
    assert code(api.cuStreamCopyAttributes(a_stream(api), stream)) == 1


@pytest.mark.parametrize(
    ("of_capture", "of_thread", "own", "others"),
    [
        (GLOBAL, GLOBAL, 900, 900), (GLOBAL, THREAD_LOCAL, 900, 0), (GLOBAL, RELAXED, 0, 0),
        (THREAD_LOCAL, GLOBAL, 900, 0), (THREAD_LOCAL, RELAXED, 0, 0), (RELAXED, GLOBAL, 0, 0),
    ],
    ids=str,
)  # fmt: skip
def test_a_thread_reports_which_captures_keep_it_from_unsafe_calls(
    api: Emulator,
    of_capture: CUstreamCaptureMode,
    of_thread: CUstreamCaptureMode,
    own: int,
    others: int,
) -> None:
    def unsafe() -> int:
        assert ok(api.cuThreadExchangeStreamCaptureMode(of_thread)) == GLOBAL
        found = code(api.cuMemAlloc(64))
        assert ok(api.cuThreadExchangeStreamCaptureMode(GLOBAL)) == of_thread
        return found

    context = ok(api.cuCtxGetCurrent())
    found: list[int] = []

    def elsewhere() -> None:
        ok(api.cuCtxSetCurrent(context))
        found.append(unsafe())

    for _ in range(2):
        stream = a_stream(api)
        ok(api.cuStreamBeginCapture(stream, of_capture))
        if found:
            assert unsafe() == own
        else:
            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join()
        api.cuStreamEndCapture(stream)
    assert found == [others]
    assert code(api.cuMemAllocAsync(64, LEGACY)) == 0


def test_a_peers_memory_is_closed_again(api: Emulator) -> None:
    here = ok(api.cuCtxGetCurrent())
    there = ok(api.cuCtxCreate(None, 0, ok(api.cuDeviceGet(1))))
    assert code(api.cuCtxDisablePeerAccess(here)) == 705
    ok(api.cuCtxEnablePeerAccess(here, 0))
    ok(api.cuCtxDisablePeerAccess(here))
    ok(api.cuCtxEnablePeerAccess(here, 0))
    assert int(there) == int(ok(api.cuCtxGetCurrent()))
