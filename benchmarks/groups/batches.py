"""Many small copies: one call of the driver for all of them, beside one call each."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import cudadrv

from .. import bare
from ..setting import Setting
from ..timing import Case, Row, measure

GROUP: Final = "batches"
_COUNT: Final = 1000
_NBYTES: Final = 4096
_SIDE: Final = 32

Pair = tuple[cudadrv.DeviceArray[Any], cudadrv.DeviceArray[Any]]


def run(setting: Setting) -> list[Row]:
    """Contiguous arrays and columns of matrices, between two arrays of the device each."""
    stream = setting.stream
    pairs = [
        (stream.zeros(_NBYTES, np.uint8), stream.to_device(np.full(_NBYTES, at % 251, np.uint8)))
        for at in range(_COUNT)
    ]
    rows = _contiguous(setting, pairs) + _strided(setting)
    if not setting.null:
        for at, (target, _) in enumerate(pairs):
            assert (stream.to_host(target) == at % 251).all(), at
    return rows


def _contiguous(setting: Setting, pairs: list[Pair]) -> list[Row]:
    names = {"stream": setting.stream, "pairs": pairs, **bare.batch_names(setting.stream, pairs)}
    cases = [
        Case(bare.NAME, "for to, of in pointers: copy(to, of, nbytes, s)", names),
        Case(f"{bare.NAME}, one call", "batch(*lists)", names),
        Case("cudadrv Stream.copy", "for to, of in pairs: stream.copy(to, of)", names),
        Case("cudadrv Stream.copy_batch", "stream.copy_batch(pairs)", names),
    ]
    case = f"{_COUNT} copies of 4 KiB"
    peers, failed = setting.peer_cases(GROUP, case, "copies", pairs)
    rows = _measure(setting, case, [*cases, *peers])
    waited = [
        Case(each.who, f"{each.statement}\nwait()", {**each.names, "wait": setting.settle})
        for each in (*cases, *peers)
    ]
    return [*rows, *failed, *_measure(setting, f"{case}, waited for", waited)]


def _strided(setting: Setting) -> list[Row]:
    """Half of the columns of small matrices; other libraries have no batch of them."""
    stream = setting.stream
    pairs = [
        (stream.zeros((_SIDE, _SIDE), "f4")[:, ::2], stream.zeros((_SIDE, _SIDE), "f4")[:, 1::2])
        for _ in range(_COUNT // 10)
    ]
    names = {"stream": stream, "pairs": pairs}
    cases = [
        Case("cudadrv Stream.copy", "for to, of in pairs: stream.copy(to, of)", names),
        Case("cudadrv Stream.copy_batch", "stream.copy_batch(pairs)", names),
    ]
    return _measure(setting, f"{len(pairs)} strided copies of 2 KiB", cases)


def _measure(setting: Setting, case: str, cases: list[Case]) -> list[Row]:
    return measure(
        GROUP, case, cases, repeats=1, rounds=setting.rounds(40), settle=setting.settle, limit_s=9.0
    )
