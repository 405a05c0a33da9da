"""What launch attributes need: versions of the driver and the bindings, and the device's memory."""

from __future__ import annotations

from typing import Final

from ..driver._api import CUdevice_attribute as _Attribute
from ..driver.device import Device, require_feature, require_version
from .config import LaunchAttributes, SharedMemoryMode

_OVERSIZED: Final = ("allow_oversized", "prefer_oversized")
# CU_DEVICE_ATTRIBUTE_MAX_OVERSIZED_SHARED_MEMORY_PER_BLOCK, which older bindings lack.
_MAX_OVERSIZED: Final = 150


def check_support(requests: LaunchAttributes, device: Device) -> None:
    """Reject attributes that the driver, cuda-bindings or the device does not know.

    The versions are those whose `cuda.h` defines an attribute.

    Raises:
        UnsupportedError: the text names what the attribute needs, and what is installed.
    """
    if requests.device_updatable is not None:
        require_version("device_updatable", (12, 4))
    if requests.nvlink_centric is not None:
        require_version("nvlink_centric", (13, 0))
    if requests.cluster_size_mode is not None:
        require_version("cluster_size_mode", (13, 2))
    mode = requests.shared_memory_mode
    if mode is not None:
        require_version("shared_memory_mode", (13, 2))
        if mode in _OVERSIZED:
            require_feature(f"shared_memory_mode {mode!r}", device, _MAX_OVERSIZED)


def max_shared_bytes(device: Device, mode: SharedMemoryMode | None) -> int:
    """Return the bytes of shared memory that a block may have under a supported mode."""
    portable = device.attribute(_Attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)
    if mode == "require_portable":
        return portable
    opt_in = device.attribute(_Attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
    return max(portable, opt_in, device.attribute(_MAX_OVERSIZED) if mode in _OVERSIZED else 0)
