"""The settings of core dumps, which the emulator stores and does not write."""

from __future__ import annotations

import ctypes

import pytest

from cudadrv.driver._api import CUcontext
from cudadrv.emulator import Emulator
from cudadrv.emulator.shared_libraries.queries import (
    global_coredump_setting,
    set_global_coredump_setting,
)

from .calls import code, ok

ON_EXCEPTION, TRIGGER_HOST, LIGHTWEIGHT, USER_TRIGGER, FILE, PIPE, FLAGS = range(1, 8)


@pytest.fixture
def api() -> Emulator:
    emulator = Emulator()
    ok(emulator.cuInit(0))
    return emulator


@pytest.fixture
def own(api: Emulator) -> CUcontext:
    return ok(api.cuCtxCreate(None, 0, ok(api.cuDeviceGet(0))))


def test_a_context_has_the_global_settings_until_it_has_its_own(
    api: Emulator, own: CUcontext
) -> None:
    ok(api.cuCoredumpSetAttributeGlobal(FILE, b"global"))
    ok(api.cuCoredumpSetAttributeGlobal(LIGHTWEIGHT, True))
    assert ok(api.cuCoredumpGetAttribute(FILE)) == b"global"
    ok(api.cuCoredumpSetAttribute(FILE, b"own"))
    assert ok(api.cuCoredumpGetAttribute(FILE)) == b"own"
    assert ok(api.cuCoredumpGetAttributeGlobal(FILE)) == b"global"
    assert ok(api.cuCoredumpGetAttribute(LIGHTWEIGHT)) is True


def test_defaults_are_those_of_the_manual(api: Emulator) -> None:
    values = [ok(api.cuCoredumpGetAttributeGlobal(each)) for each in range(1, 8)]
    assert values[:4] == [False, True, False, False]
    assert f"{values[4]!r}".startswith("b'core.cuda.")
    assert f"{values[5]!r}".startswith("b'corepipe.cuda.")
    assert values[6] == 0


def test_settings_that_would_write_a_core_dump_cannot_be_switched_on(api: Emulator) -> None:
    for cause in (ON_EXCEPTION, USER_TRIGGER):
        ok(api.cuCoredumpSetAttributeGlobal(cause, False))
        assert code(api.cuCoredumpSetAttributeGlobal(cause, True)) == 801
        assert ok(api.cuCoredumpGetAttributeGlobal(cause)) is False


def test_impossible_settings_and_a_missing_context_are_rejected(api: Emulator) -> None:
    assert code(api.cuCoredumpGetAttributeGlobal(8)) == 1
    assert code(api.cuCoredumpSetAttributeGlobal(0, 1)) == 1
    assert code(api.cuCoredumpSetAttributeGlobal(FILE, 1)) == 1
    assert code(api.cuCoredumpSetAttributeGlobal(FILE, b"x" * 1024)) == 1
    assert code(api.cuCoredumpGetAttribute(FILE)) == 201


def test_callers_of_c_pass_a_value_and_its_size(api: Emulator) -> None:
    def put(number: int, data: bytes) -> int:
        memory, size = ctypes.create_string_buffer(data), ctypes.c_size_t(len(data))
        return set_global_coredump_setting(
            api, number, ctypes.addressof(memory), ctypes.addressof(size)
        )

    def get(number: int, room: int) -> tuple[int, bytes, int]:
        memory, size = ctypes.create_string_buffer(max(1, room)), ctypes.c_size_t(room)
        at = ctypes.addressof(memory) if room else 0
        found = global_coredump_setting(api, number, at, ctypes.addressof(size))
        return found, memory.raw[: size.value], size.value

    assert put(PIPE, b"pipe\0garbage") == 0
    assert get(PIPE, 64) == (0, b"pipe\0", 5)
    assert get(PIPE, 4)[0] == 1
    assert get(PIPE, 0)[2] == 1024
    assert put(LIGHTWEIGHT, b"\1") == 0
    assert get(LIGHTWEIGHT, 1) == (0, b"\1", 1)
    assert put(FLAGS, b"\2") == 1
    assert put(FLAGS, b"\2\0\0\0") == 0
    assert get(FLAGS, 8) == (0, b"\2\0\0\0", 4)
    assert get(8, 8)[0] == 1
