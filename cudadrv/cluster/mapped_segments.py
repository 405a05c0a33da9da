"""Shared memory that one process gives another again and again, kept open and pinned there."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Final

from ..errors import CudadrvError
from ..memory.host.pinned import HostBox
from ..memory.host.registered import registered_in
from ..stream import cuda_context_for
from .byte_copy import Bytes
from .shared_arrays import Place, mapped

MOST_KEPT_BYTES: Final = 256 << 20
"""Of a segment that is kept open; a larger one would hold much memory for what it saves."""
_LEAST_PINNED_BYTES: Final = 1 << 18
_KEPT: Final = 2  # the giver has two of them, in turn


@dataclass(slots=True)
class _Mapping:
    """A segment.

    Attributes:
        memory: its bytes.
        uses: how often it was asked for.
        pinned: keeps it pinned, if it is.
    """

    memory: Bytes
    uses: int = 0
    pinned: HostBox[int] | None = None


class MappedSegments:
    """What a worker has of its giver's memory.

    Opening a segment anew makes the system find each page of it, which takes as long as copying
    it. What comes a second time is pinned, so that copies to the device and back are the bus's.

    Args:
        ordinal: the device.
    """

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal
        self._kept: dict[str, _Mapping] = {}
        self._can_pin = True

    def arrays(self, place: Place) -> list[Bytes]:
        """The arrays at a place; changes are seen by all.

        Raises:
            NotHereError: the giver is on another host, or has ended.
            CudadrvError: the device cannot be used.
        """
        mapping = self._kept.pop(place.name, None) or _Mapping(mapped(place, private=False))
        mapping.uses += 1
        if mapping.memory.size <= MOST_KEPT_BYTES:
            self._kept[place.name] = mapping  # behind the others
            for former in list(self._kept)[:-_KEPT]:
                del self._kept[former]
            if mapping.uses == 2 and mapping.memory.size >= _LEAST_PINNED_BYTES:
                self._pin(mapping)
        return place.within(mapping.memory)

    def _pin(self, mapping: _Mapping) -> None:
        if not self._can_pin:
            return
        context = cuda_context_for(self._ordinal)
        try:
            mapping.pinned = registered_in(context._box, mapping.memory)
        except CudadrvError as error:
            self._can_pin = False
            warnings.warn(
                f"tiles are copied to {context!r} from memory that is not pinned, and slower: "
                f"{error}",
                RuntimeWarning,
                stacklevel=2,
            )
