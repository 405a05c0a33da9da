"""Devices, events, their properties, and the interface of the driver."""

from typing import TYPE_CHECKING

from ..lazy_names import at_first_use

if TYPE_CHECKING:
    from .attributes import (
        DeviceAttribute as DeviceAttribute,
    )
    from .capability import (
        GpuCapability as GpuCapability,
        GpuDeviceInfo as GpuDeviceInfo,
    )
    from .context import (
        CachePreference as CachePreference,
        ContextLimits as ContextLimits,
    )
    from .default_stream import (
        DefaultStream as DefaultStream,
    )
    from .device import (
        Device as Device,
        DeviceProperties as DeviceProperties,
        best_device as best_device,
        can_access_peer as can_access_peer,
        driver_version as driver_version,
        init as init,
        list_devices as list_devices,
    )
    from .event import (
        Event as Event,
    )
    from .sm_resource import (
        SmResource as SmResource,
    )
    from .types import (
        ContextFlags as ContextFlags,
        MemoryInfo as MemoryInfo,
    )
    from .workqueue_resource import (
        WorkqueueResource as WorkqueueResource,
    )
else:
    _NAMES = {
        "attributes": "DeviceAttribute",
        "capability": "GpuCapability GpuDeviceInfo",
        "context": "CachePreference ContextLimits",
        "default_stream": "DefaultStream",
        "device": (
            "Device DeviceProperties best_device can_access_peer driver_version init list_devices"
        ),
        "event": "Event",
        "sm_resource": "SmResource",
        "types": "ContextFlags MemoryInfo",
        "workqueue_resource": "WorkqueueResource",
    }
    __getattr__, __dir__ = at_first_use(__name__, _NAMES)
