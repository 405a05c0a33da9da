"""Copies between host and device: 4 KiB, 1 to 16 MiB, and 1 GiB of an ordinary array."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import cudadrv

from .. import bare
from ..setting import Setting
from ..timing import Case, Row, measure

GROUP: Final = "copies"
_SMALL: Final = 4096
_MIDDLE: Final = (1 << 20, 8 << 20, 16 << 20)
_RESULT: Final = 64 << 20
_LARGE: Final = 1 << 30
# Nothing is learnt from more on a driver that copies nothing.
_LARGE_ON_NULL: Final = 64 << 20
# What the transfer from pinned memory stands for there.
_ONE_THREAD: Final = "one memmove"


def run(setting: Setting) -> list[Row]:
    """Every case of the group."""
    large = int(_LARGE * min(1.0, setting.effort)) if not setting.null else _LARGE_ON_NULL
    rows = _small(setting)
    for nbytes, rounds in (*((middle, 12) for middle in _MIDDLE), (large, 6)):
        rows += _up(setting, nbytes, rounds) + _down(setting, nbytes, rounds)
    rows += _down_to_new(setting, large) + _strided(setting, large // 4)
    rows += _new_beside_existing(setting)
    return rows if setting.null else rows + _between_devices(setting, large)


def _small(setting: Setting) -> list[Row]:
    stream = setting.stream
    host = np.zeros(_SMALL, np.uint8)
    device = stream.to_device(host)
    names = {
        **bare.memory_names(stream),
        "p": bare.pointer(device.ptr),
        "h": host.ctypes.data,
        "host": host,
        "device": device,
        "stream": stream,
    }
    # PyTorch takes no array that it might write to without saying so.
    up, up_failed = setting.peer_cases(GROUP, "4 KiB to the device", "upload", host)
    down, down_failed = setting.peer_cases(GROUP, "4 KiB to the host", "download", host)
    plain_up = Case(bare.NAME, f"htod(p, h, {_SMALL}, s); sync(s)", names)
    plain_down = Case(bare.NAME, f"dtoh(h, p, {_SMALL}, s); sync(s)", names)
    queued = [
        Case(bare.NAME, f"htod(p, h, {_SMALL}, s)", names),
        Case("cudadrv Stream.copy", "stream.copy(device, host)", names),
    ]
    waited = Case("cudadrv Stream.copy", "stream.copy(device, host); stream.synchronize()", names)
    ours_down = Case("cudadrv Stream.to_host", "stream.to_host(device, host)", names)
    options: dict[str, Any] = {"repeats": 50, "rounds": setting.rounds(60)}
    options["settle"] = setting.settle
    return [
        *measure(GROUP, "4 KiB to the device, queued", queued, **options),
        *measure(GROUP, "4 KiB to the device", [plain_up, waited, *up], **options),
        *up_failed,
        *measure(GROUP, "4 KiB to the host", [plain_down, ours_down, *down], **options),
        *down_failed,
    ]


def _between_devices(setting: Setting, nbytes: int) -> list[Row]:
    """From the first device to the second, where there are two; the bare pools are opened."""
    if len(cudadrv.list_devices()) < 2:
        return []
    there = cudadrv.cuda_context_for(1)
    of, to = bare.PeerMemory(0, nbytes), bare.PeerMemory(1, nbytes)
    with there.new_stream() as queue:
        names = {
            "copy": bare.copy_between(of, to, queue),
            "stream": queue,
            "sync": queue.synchronize,
            "source": setting.stream.zeros(nbytes, np.uint8),
            "target": queue.zeros(nbytes, np.uint8),
        }
        cases = [
            Case(bare.NAME, "copy(); sync()", names),
            Case("cudadrv Stream.copy", "stream.copy(target, source); sync()", names),
        ]
        return _measure(setting, f"{_size(nbytes)} between devices", cases, nbytes, 12)


def _size(nbytes: int) -> str:
    return f"{nbytes >> 30} GiB" if nbytes >= 1 << 30 else f"{nbytes >> 20} MiB"


def _names(setting: Setting, host: NDArray[np.uint8]) -> dict[str, object]:
    device = setting.stream.to_device(host)
    pinned = cudadrv.pinned_empty(host.shape, host.dtype)
    pinned[...] = host
    return {
        **bare.memory_names(setting.stream),
        "p": bare.pointer(device.ptr),
        "n": host.nbytes,
        "h": host.ctypes.data,
        "pinned": pinned.ctypes.data,
        "host": host,
        "keep": pinned,
        "memmove": ctypes.memmove,
        "device": device,
        "stream": setting.stream,
    }


def _plain(setting: Setting, call: str, names: dict[str, object]) -> list[Case]:
    """The bare transfer from or to pinned memory, and an ordinary array."""
    if setting.null:
        return [Case(_ONE_THREAD, "memmove(pinned, h, n)", names)]
    return [
        Case(f"{bare.NAME}, pinned", call.format("pinned"), names),
        Case(f"{bare.NAME}, ordinary", call.format("h"), names),
    ]


def _host(nbytes: int) -> NDArray[np.uint8]:
    # Written to, so that its pages are there.
    return np.full(nbytes, 7, np.uint8)


def _up(setting: Setting, nbytes: int, rounds: int) -> list[Row]:
    case = f"{_size(nbytes)} to the device"
    host = _host(nbytes)
    names = _names(setting, host)
    peers, failed = setting.peer_cases(GROUP, case, "upload", host)
    cases = [
        *_plain(setting, "htod(p, {}, n, s); sync(s)", names),
        Case("cudadrv Stream.copy", "stream.copy(device, host); sync(s)", names),
        *peers,
    ]
    return _measure(setting, case, cases, nbytes, rounds) + failed


def _down(setting: Setting, nbytes: int, rounds: int) -> list[Row]:
    case = f"{_size(nbytes)} to the host"
    host = _host(nbytes)
    names = _names(setting, host)
    peers, failed = setting.peer_cases(GROUP, case, "download", host)
    cases = [
        *_plain(setting, "dtoh({}, p, n, s); sync(s)", names),
        Case("cudadrv Stream.to_host", "stream.to_host(device, host)", names),
        *peers,
    ]
    return _measure(setting, case, cases, nbytes, rounds) + failed


def _down_to_new(setting: Setting, nbytes: int) -> list[Row]:
    case = f"{_size(nbytes)} to a new host array"
    host = _host(nbytes)
    names = _names(setting, host)
    peers, failed = setting.peer_cases(GROUP, case, "download_new", host)
    cases = [
        *_plain(setting, "dtoh({}, p, n, s); sync(s)", names),
        Case("cudadrv Stream.to_host", "stream.to_host(device)", names),
        *peers,
    ]
    return _measure(setting, case, cases, nbytes, 4) + failed


def _new_beside_existing(setting: Setting) -> list[Row]:
    """To an array that is there, and to a new one, each of which goes before the next."""
    host = _host(_RESULT)
    names = _names(setting, host)
    cases = [
        Case("cudadrv, an existing one", "stream.to_host(device, host)", names),
        Case("cudadrv Stream.to_host", "stream.to_host(device)", names),
    ]
    return _measure(setting, f"{_size(_RESULT)} to a new and an existing array", cases, _RESULT, 20)


def _strided(setting: Setting, nbytes: int) -> list[Row]:
    """Every other column of an array, gathered on the way and scattered back."""
    side = int((nbytes // 4) ** 0.5)
    host = np.zeros((side, 2 * side), np.float32)[:, ::2]
    device = setting.stream.empty(host.shape, host.dtype)
    names = {
        **bare.memory_names(setting.stream),
        "ascontiguousarray": np.ascontiguousarray,
        "p": bare.pointer(device.ptr),
        "n": host.nbytes,
        "host": host,
        "device": device,
        "stream": setting.stream,
    }
    plain = "h = ascontiguousarray(host); htod(p, h.ctypes.data, n, s); sync(s)"
    cases = [
        Case(f"{bare.NAME}, gathered first", plain, names),
        Case("cudadrv Stream.copy", "stream.copy(device, host); sync(s)", names),
    ]
    back = [Case("cudadrv Stream.to_host", "stream.to_host(device, host)", names)]
    size = _size(host.nbytes)
    return [
        *_measure(setting, f"{size} strided, to the device", cases, host.nbytes, 4),
        *_measure(setting, f"{size} strided, to the host", back, host.nbytes, 4),
    ]


def _measure(setting: Setting, case: str, cases: list[Case], nbytes: int, rounds: int) -> list[Row]:
    return measure(
        GROUP,
        case,
        cases,
        repeats=1,
        rounds=setting.rounds(rounds),
        settle=setting.settle,
        nbytes=nbytes,
        limit_s=9.0,
    )
