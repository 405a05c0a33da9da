"""What was said of managed memory.

CUDA Driver API, "Unified Addressing": cuMemRangeGetAttribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...driver._api import CUdeviceptr, CUresult
from ..host_memory import Somewhere
from ..refusal import SUCCESS, invalid_value
from .call import call
from .managed import ManagedCalls
from .pool import DEVICE, HOST

_NOWHERE: Final = -2  # CU_DEVICE_INVALID
_CPU: Final = -1  # CU_DEVICE_CPU
_READ_MOSTLY, _PREFERRED, _ACCESSED_BY, _PREFETCHED = 1, 2, 3, 4  # CUmem_range_attribute
# The bindings of CUDA 12 have no names for some of these.
_PREFERRED_TYPE, _PREFERRED_ID, _PREFETCHED_TYPE, _PREFETCHED_ID = 5, 6, 7, 8
_INT_BYTES: Final = 4


class ManagedAttributeCalls(ManagedCalls):
    """What was said of managed memory."""

    @call(1)
    def cuMemRangeGetAttribute(
        self, data_size: int, attribute: int, dev_ptr: CUdeviceptr, count: int, /
    ) -> tuple[CUresult, int | list[int]]:
        """What was said of all of a range; of a part alone it counts as not said."""
        return SUCCESS, self._attribute_of_range(data_size, int(attribute), dev_ptr, count)

    @call(1)
    def cuMemRangeGetAttributes(
        self, data_sizes: Sequence[int], attributes: Sequence[int] | None, num_attributes: int,
        dev_ptr: CUdeviceptr, count: int, /,
    ) -> tuple[CUresult, list[int | list[int]]]:  # fmt: skip
        """Several attributes of a range."""
        if not attributes or not 0 < num_attributes <= min(len(attributes), len(data_sizes)):
            raise invalid_value(f"{num_attributes} attributes of a range were asked for")
        given = zip(data_sizes[:num_attributes], attributes, strict=False)
        return SUCCESS, [
            self._attribute_of_range(nbytes, int(each), dev_ptr, count) for nbytes, each in given
        ]

    def _attribute_of_range(
        self, nbytes: int, attribute: int, address: CUdeviceptr, count: int
    ) -> int | list[int]:
        piece, offset, _ = self._managed(int(address), count)
        assert piece.told is not None  # it is managed memory
        with self._lock:
            told = piece.told.of(offset, count)
        most = nbytes if attribute == _ACCESSED_BY else _INT_BYTES
        if nbytes % _INT_BYTES or not 0 < nbytes <= most:
            raise invalid_value(f"attribute {attribute} of a range has no {nbytes} bytes")
        if attribute == _READ_MOSTLY:
            return int(all(each.is_read_mostly for each in told))
        if attribute == _ACCESSED_BY:
            by = frozenset.intersection(*(each.accessed_by for each in told))
            room = nbytes // _INT_BYTES
            return [*sorted(by, key=lambda n: (n < 0, n)), *[_NOWHERE] * room][:room]
        if attribute in (_PREFERRED, _PREFERRED_TYPE, _PREFERRED_ID):
            places = {each.preferred for each in told}
        elif attribute in (_PREFETCHED, _PREFETCHED_TYPE, _PREFETCHED_ID):
            places = {each.prefetched for each in told}
        else:
            raise invalid_value(f"there is no attribute {attribute} of a range")
        place = places.pop() if len(places) == 1 else None
        return _number_of(attribute, place)


def _number_of(attribute: int, place: Somewhere | None) -> int:
    if attribute in (_PREFERRED_TYPE, _PREFETCHED_TYPE):
        return 0 if place is None else place.kind  # CU_MEM_LOCATION_TYPE_INVALID
    if place is None:
        return _NOWHERE
    if place.kind == DEVICE:
        return place.number
    is_node = place.kind != HOST and attribute in (_PREFERRED_ID, _PREFETCHED_ID)
    return place.number if is_node else _CPU
