"""The memory that graphs take of a device.

CUDA Driver API: cuDeviceGetGraphMemAttribute, cuDeviceGraphMemTrim.
"""

from __future__ import annotations

from ...driver._api import CUdevice, CUresult, cuuint64_t
from ..call_rules import CallRules
from ..refusal import OK, SUCCESS, invalid_value
from .call import call

_USED, _USED_HIGH, _RESERVED, _RESERVED_HIGH = range(4)  # CUgraphMem_attribute


class GraphMemoryCalls(CallRules):
    """The memory that graphs take of a device."""

    @call(1)
    def cuDeviceGetGraphMemAttribute(
        self, device: CUdevice, attr: int, /
    ) -> tuple[CUresult, cuuint64_t]:
        """Bytes that are used or reserved, now or at most."""
        found = self._device(device)
        account = found.graph_account
        with found.lock:
            used, reserved = account.now(found.pieces.values())
        values = {
            _USED: used, _USED_HIGH: account.used_high,
            _RESERVED: reserved, _RESERVED_HIGH: account.reserved_high,
        }  # fmt: skip
        if int(attr) not in values:
            raise invalid_value(f"there is no attribute {int(attr)} of graphs' memory")
        return SUCCESS, cuuint64_t(values[int(attr)])

    @call()
    def cuDeviceSetGraphMemAttribute(
        self, device: CUdevice, attr: int, value: cuuint64_t | int, /
    ) -> tuple[CUresult]:
        """Reset a high-water mark: 0 is all that is set."""
        found = self._device(device)
        if int(attr) not in (_USED_HIGH, _RESERVED_HIGH) or int(value):
            raise invalid_value(f"attribute {int(attr)} cannot be set to {int(value)}")
        with found.lock:
            used, reserved = found.graph_account.now(found.pieces.values())
            if int(attr) == _USED_HIGH:
                found.graph_account.used_high = used
            else:
                found.graph_account.reserved_high = reserved
        return OK

    @call()
    def cuDeviceGraphMemTrim(self, device: CUdevice, /) -> tuple[CUresult]:
        """Keep no memory for graphs that they do not use."""
        found = self._device(device)
        with found.lock:
            found.graph_account.trim(found.pieces.values())
        return OK
