"""The queues through which a context's streams submit work, as a resource of green contexts.

CUDA Driver API, "Green Contexts".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from .. import border, errors
from ._api import CUcontext, CUdevResource, CUdevResourceType, driver as bindings
from .device import Device, require_version
from .driver_selection import checked

QueueSharing: TypeAlias = Literal["device", "balanced"]

# CUdevWorkqueueConfigScope, which older bindings lack.
_SCOPES: Final[dict[QueueSharing, int]] = {"device": 0, "balanced": 1}
_MOST: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class WorkqueueResource:
    """The queues through which a context's streams submit work; needs CUDA 13.1.

    Streams that share a queue may wait for each other, even if their green contexts have different
    multiprocessors. `Context.workqueues` has those of a context.

    Args:
        device: the device of the queues.
        concurrency_limit: the expected number of streams whose work runs at once. The queues of two
            balanced contexts may overlap if all limits together exceed that of the device, which
            the variable CUDA_DEVICE_MAX_CONNECTIONS sets.
        sharing: "device" shares the queues of all contexts, "balanced" takes queues that no other
            balanced green context has, where possible.

    Raises:
        ArgumentValueError: a value is out of its range.
    """

    device: Device
    concurrency_limit: int
    sharing: QueueSharing = "device"

    def __post_init__(self) -> None:
        border.instance_of("WorkqueueResource: device", self.device, Device)
        limit = border.int_in_range(
            "WorkqueueResource: concurrency_limit", self.concurrency_limit, 1, _MOST
        )
        object.__setattr__(self, "concurrency_limit", limit)
        sharing: object = self.sharing
        if not isinstance(sharing, str) or sharing not in _SCOPES:
            raise errors.ArgumentValueError(
                f"WorkqueueResource: sharing is {border.shown(sharing)}: "
                f"give one of {', '.join(_SCOPES)}"
            )


def native_of(resource: WorkqueueResource) -> CUdevResource:
    """Return the driver's structure of a resource.

    Raises:
        UnsupportedError: the driver or cuda-bindings is older than CUDA 13.1.
    """
    _require_version()
    native = CUdevResource()
    native.type = CUdevResourceType.CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG
    native.wqConfig.device = resource.device.handle
    native.wqConfig.wqConcurrencyLimit = resource.concurrency_limit
    scope = bindings.CUdevWorkqueueConfigScope(_SCOPES[resource.sharing])
    native.wqConfig.sharingScope = scope
    return native


def workqueues_of(device: Device, context: CUcontext | None, doing: str) -> WorkqueueResource:
    """Query the queues of a green context, or without one those of a device.

    Raises:
        UnsupportedError: the driver or cuda-bindings is older than CUDA 13.1.
    """
    _require_version()
    api, kind = device.driver.api, CUdevResourceType.CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG
    if context is None:
        result = api.cuDeviceGetDevResource(device.handle, kind)
        native = checked(api, "cuDeviceGetDevResource", result, doing)
    else:
        result = api.cuCtxGetDevResource(context, kind)
        native = checked(api, "cuCtxGetDevResource", result, doing)
    config = native.wqConfig
    sharing: QueueSharing = "balanced" if int(config.sharingScope) else "device"
    return WorkqueueResource(device, int(config.wqConcurrencyLimit), sharing)


def _require_version() -> None:
    require_version("a workqueue", (13, 1))
