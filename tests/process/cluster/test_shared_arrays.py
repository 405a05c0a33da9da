"""Shared memory in a worker: kept open, and pinned when it comes again."""

from __future__ import annotations

import numpy as np
import pytest

from cudadrv import emulator
from cudadrv.cluster import worker
from cudadrv.cluster.shared_arrays import CAN_SHARE, Bytes, Segment, copy_items
from cudadrv.cluster.worker import MappedSegments
from cudadrv.driver._api import CUmemorytype, CUpointer_attribute
from cudadrv.driver.driver_selection import current
from cudadrv.errors import OutOfMemoryError
from cudadrv.stream import cuda_context_for
from tests.current_context import within

pytestmark = pytest.mark.skipif(not CAN_SHARE, reason="needs memory of Linux that has no name")
_NBYTES = 1 << 20


def is_pinned(array: Bytes) -> bool:
    kind = CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    with within(cuda_context_for(0)):
        code, found = current().api.cuPointerGetAttributes(1, (kind,), array.ctypes.data)
    assert not code
    return found[0] == CUmemorytype.CU_MEMORYTYPE_HOST


def test_memory_that_comes_again_is_the_same_and_pinned() -> None:
    with emulator.session(devices=1):
        segment, segments = Segment(_NBYTES), MappedSegments(0)
        bytes_ = np.arange(_NBYTES, dtype=np.uint8)
        place = segment.put([bytes_])
        (first,) = segments.arrays(place)
        assert np.array_equal(first, bytes_)
        assert not is_pinned(first)
        segment.put([bytes_[::-1].copy()])
        (again,) = segments.arrays(place)
        assert again.ctypes.data == first.ctypes.data
        assert np.array_equal(again, bytes_[::-1])
        assert is_pinned(again)
        again[:] = 7
        assert segment.arrays(place)[0].sum() == 7 * _NBYTES


def test_two_segments_are_cached_and_others_released() -> None:
    with emulator.session(devices=1):
        segments = MappedSegments(0)
        given = [Segment(_NBYTES) for _ in range(3)]
        places = [each.put([np.full(_NBYTES, n, np.uint8)]) for n, each in enumerate(given)]
        for number in (0, 1, 0, 1):
            (array,) = segments.arrays(places[number])
            assert array.sum() == number * _NBYTES
        assert is_pinned(array)
        address = array.ctypes.data
        (one,) = segments.arrays(places[1])
        assert one.ctypes.data == address
        segments.arrays(places[2])
        segments.arrays(places[2])
        (zero,) = segments.arrays(places[0])
        assert not is_pinned(zero)  # it was opened anew


def test_memory_that_cannot_be_pinned_is_reported_once_and_used_as_it_is() -> None:
    with emulator.session(devices=1) as machine:
        segment, segments = Segment(_NBYTES), MappedSegments(0)
        place = segment.put([np.ones(_NBYTES, np.uint8)])
        segments.arrays(place)
        machine.fail("cuMemHostRegister", with_=OutOfMemoryError.result)
        with pytest.warns(RuntimeWarning, match="not pinned, and slower"):
            (array,) = segments.arrays(place)
        assert array.sum() == _NBYTES
        assert not is_pinned(array)


def test_a_large_segment_is_not_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MAX_REUSED_BYTES", _NBYTES - 1)
    with emulator.session(devices=1):
        segment, segments = Segment(_NBYTES), MappedSegments(0)
        place = segment.put([np.ones(_NBYTES, np.uint8)])
        arrays = [segments.arrays(place)[0] for _ in range(3)]
        assert len({each.ctypes.data for each in arrays}) == 3
        assert not any(is_pinned(each) for each in arrays)


@pytest.mark.parametrize("n", [0, 1, 5, (4 << 20) + 3, 9 << 20])
def test_items_are_copied_whole_by_any_number_of_threads(n: int) -> None:
    of = np.random.default_rng(n).integers(0, 255, n, np.uint8)
    to = np.zeros(n + 2, np.uint8)
    copy_items(to[1:-1], of)
    assert np.array_equal(to[1:-1], of)
    assert to[0] == to[-1] == 0


def test_items_of_other_types_layouts_and_shapes_are_converted_as_numpy_does() -> None:
    values = np.arange(1 << 20)
    wide = np.zeros((1 << 20, 2))
    copy_items(wide[:, 0], values)
    assert np.array_equal(wide[:, 0], values)
    assert not wide[:, 1].any()
    copy_items(wide, 3)
    assert (wide == 3).all()
    with pytest.raises(ValueError, match="broadcast"):
        copy_items(wide, np.zeros((1 << 20, 3)))
