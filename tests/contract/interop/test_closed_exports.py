"""Memory that a consumer has by DLPack outlives `close` of the array, and is freed once."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import pytest

import cudadrv
from cudadrv import DeviceArray, Stream
from cudadrv.errors import ClosedError

DATA: Final = np.arange(24, dtype=np.int32).reshape(4, 6)
N: Final = 1 << 18
Array: TypeAlias = DeviceArray[Any]


class Wrapped:
    """An object of another library that passes an array on by DLPack."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> object:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


FORMS: Final[dict[str, Callable[[Stream], tuple[Array, Array]]]] = {
    "array": lambda stream: (base := stream.to_device(DATA), base),
    "view": lambda stream: (base := stream.to_device(DATA), base[1:]),
    "strided": lambda stream: (base := stream.to_device(DATA), base[:, ::2]),
    "fortran": lambda stream: (base := stream.to_device(DATA, order="F"), base),
    "pitched": lambda stream: (base := stream.empty_pitched(DATA.shape, DATA.dtype), base),
}


@pytest.mark.parametrize("wrap", [lambda array: array, Wrapped], ids=["ours", "wrapped"])
@pytest.mark.parametrize("form", FORMS)
def test_an_imported_array_outlives_the_array_that_it_was_made_of(
    stream: Stream, form: str, wrap: Callable[[Array], object]
) -> None:
    base, array = FORMS[form](stream)
    stream.fill(array, 7)
    imported = stream.import_array(wrap(array))
    base.close()
    gc.collect()
    others = [stream.to_device(np.full_like(DATA, 9)) for _ in range(3)]
    assert (stream.to_host(imported) == 7).all()
    stream.fill(imported, 8)
    assert (stream.to_host(imported) == 8).all()
    assert all((stream.to_host(other) == 9).all() for other in others)
    with pytest.raises(ClosedError):
        stream.import_array(array)


@pytest.mark.parametrize("takes", ["import", "capsule"])
def test_memory_is_freed_with_the_last_consumer(stream: Stream, takes: str) -> None:
    device = stream.context.device
    array = stream.zeros(N, np.uint8)
    taken: list[object] = [
        stream.import_array(array) if takes == "import" else array.__dlpack__(stream=-1)
    ]
    stream.synchronize()
    used = cudadrv.memory.pool_info(device).used
    array.close()
    stream.synchronize()
    assert cudadrv.memory.pool_info(device).used == used
    taken.clear()
    gc.collect()
    stream.synchronize()
    with stream.zeros(1, np.uint8):  # what waits for its release is freed at the latest now
        stream.synchronize()
    stream.synchronize()
    assert cudadrv.memory.pool_info(device).used <= used - N


def test_a_consumer_keeps_no_memory_of_a_closed_context() -> None:
    own = cudadrv.Context.create(0)
    stream = own.new_stream()
    array = stream.zeros(8, np.uint8)
    capsule = array.__dlpack__(stream=-1)
    own.close()
    assert array.closed
    del capsule
