"""Which memory the driver takes as a device's side of a copy or a fill.

The codes were measured with driver 580 on two devices and on one.
"""

from __future__ import annotations

from ..call_rules import CallRules
from ..device_state import DeviceState
from ..refusal import invalid_value
from ..streams import Stream


class DeviceSides(CallRules):
    """What is refused as a device's side, before a copy or a fill is queued."""

    def _refuse_by_context(self, nbytes: int, *addresses: int) -> None:
        """Refuse memory that the driver does not take with what is current.

        The stream does not matter. Memory of a pool, and what is mapped into a range, must be
        within reach of the current context's device. Without a context all is taken but for bytes
        over the border of two mappings: measured with driver 580 on two devices and on one.
        """
        stack = self._thread.stack
        own = stack[-1].device if stack else None
        for address in addresses:
            device = self._device_of(address)
            if device is None or device is own:
                continue
            with device.lock:
                mapped = _mapping_at(device, address)
                found = device.memory.find(address)
                piece = None if found is None else device.pieces.get(found.address)
            if own is None:
                if mapped is not None and address + nbytes > mapped[0] + mapped[1]:
                    raise invalid_value(
                        f"{nbytes} bytes at {address:#x} go over the border of two mappings, "
                        "while no context is current"
                    )
            elif mapped or (piece and piece.pool and own.ordinal not in piece.pool.peers):
                what = "mapped memory" if mapped else "memory of a pool"
                raise invalid_value(
                    f"{what} of device {device.ordinal} was given while a context of "
                    f"device {own.ordinal} is current, which cannot reach it"
                )

    def _refuse_host_pool(self, device: DeviceState | None, address: int) -> None:
        """Refuse page-locked memory of a pool as the device's side of a copy.

        So does driver 580, whoever has access; managed memory of a pool it takes.
        """
        piece = self._host.find(address) if device is None else None
        if piece is not None and piece.pool is not None and not piece.managed:
            raise invalid_value(
                f"{address:#x} is page-locked memory of a pool: copy with cuMemcpyAsync, or name "
                "it as the host's side of cuMemcpyHtoDAsync or cuMemcpyDtoHAsync"
            )

    def _refuse_if_shut(self, device: DeviceState | None, address: int, stream: Stream) -> None:
        """Refuse memory of the host that the stream's device may not reach."""
        piece = self._host.find(address) if device is None else None
        ordinal = stream.context.device.ordinal
        if piece is not None and not piece.is_open_to(ordinal):
            raise invalid_value(
                f"{address:#x} is memory of a pool that cuMemPoolSetAccess has not opened to "
                f"device {ordinal}"
            )


def _mapping_at(device: DeviceState, address: int) -> tuple[int, int] | None:
    """The address and size of what is mapped there into a reserved range."""
    for found in device.reservations.values():
        if found.holds(address, 1):
            return found.piece_at(address)
    return None
