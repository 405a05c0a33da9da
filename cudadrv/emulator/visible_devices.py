"""Which devices a process sees: CUDA_VISIBLE_DEVICES.

CUDA Programming Guide, "CUDA Environment Variables"; MIG User Guide, "CUDA Device Enumeration": of
instances a process sees one. An emulated device is an instance where it is named as one.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final

from .device_state import DeviceState

VISIBLE: Final = "CUDA_VISIBLE_DEVICES"


def visible_devices(devices: Sequence[DeviceState], text: str | None) -> Sequence[DeviceState]:
    """The devices that a text names by number or by the beginning of their UUID, in its order.

    A text that begins with the UUID of a MIG instance leaves that one visible.

    What stands behind a name that fits no device, or several, is not read. A device that is named
    twice leaves none visible. Without a text all are.
    """
    if text is None:
        return devices
    found: list[DeviceState] = []
    for word in text.split(","):
        named = [device for device in devices if _is_named(device, word.strip())]
        if len(named) != 1:
            break
        if named[0] in found:
            return ()
        found += named
        if word.strip().startswith("MIG-"):
            break
    return found


def _is_named(device: DeviceState, word: str) -> bool:
    if word.isdecimal():
        return int(word) == device.number
    kind, number = word[:4], f"{uuid.UUID(bytes=device.uuid)}"
    return kind in ("GPU-", "MIG-") and number.startswith(word[4:])
