"""The log of failed calls."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from cudadrv.driver._api import CUlogIterator, CUlogsCallbackHandle
from cudadrv.emulator import Emulator

from .calls import code, ok

_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)


@pytest.fixture
def api() -> Emulator:
    api = Emulator(1)
    ok(api.cuInit(0))
    return api


def dumped(api: Emulator, iterator: CUlogIterator | None, room: int = 4096) -> tuple[str, int]:
    buffer = ctypes.create_string_buffer(b"?" * room, room)
    result, after, nbytes = api.cuLogsDumpToMemory(iterator, ctypes.addressof(buffer), room, 0)
    assert result == 0
    assert len(buffer.value) == nbytes
    return buffer.value.decode(), int(after)


def test_failed_calls_are_dumped_from_a_place_on(api: Emulator, tmp_path: Path) -> None:
    api.cuDeviceGet(5)
    start = ok(api.cuLogsCurrent(0))
    api.cuDeviceGet(6)
    text, after = dumped(api, start)
    assert text == "[CUDA][E] cuDeviceGet: invalid device ordinal: 6 of 1 devices\n"
    assert dumped(api, CUlogIterator(after)) == ("", after)
    assert [line.count("cuDeviceGet") for line in dumped(api, None)[0].splitlines()] == [1, 1]
    path = tmp_path / "log"
    assert int(ok(api.cuLogsDumpToFile(None, str(path).encode(), 0))) == after
    assert path.read_text().count("ordinal: ") == 2
    assert code(api.cuLogsDumpToFile(None, str(tmp_path).encode(), 0)) == 1


def test_a_dump_reports_that_messages_are_lost(api: Emulator) -> None:
    for _ in range(101):
        api.cuDeviceGet(5)
    text, after = dumped(api, None, 25600)
    assert (text.splitlines()[0], len(text.splitlines()), after) == (
        "[older messages are lost]",
        101,
        101,
    )
    assert dumped(api, None, 30)[0] == "[older messages are lost]\nes\n"
    for room in (0, 25601):
        assert code(api.cuLogsDumpToMemory(None, 0, room, 0)) == 1


def test_callbacks_receive_messages_until_they_are_unregistered(api: Emulator) -> None:
    received: list[tuple[object, int, bytes, int]] = []
    callback = _CALLBACK(lambda *given: received.append(given))
    address = ctypes.cast(callback, ctypes.c_void_p).value
    assert address is not None
    handle = ok(api.cuLogsRegisterCallback(address, 7))
    api.cuDeviceGet(5)
    ok(api.cuLogsUnregisterCallback(handle))
    api.cuDeviceGet(5)
    message = b"[CUDA][E] cuDeviceGet: invalid device ordinal: 5 of 1 devices"
    assert received == [(7, 0, message, len(message))]
    assert code(api.cuLogsUnregisterCallback(CUlogsCallbackHandle(3))) == 1
