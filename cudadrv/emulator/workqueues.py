"""The workqueues of a device or of a green context: numbers that have no effect here."""

from __future__ import annotations

from typing import Final, NamedTuple, Self

from ..driver._api import CUdevResource, CUresult, driver as bindings
from .call_error import CallError, invalid_value

WORKQUEUE_CONFIG: Final = 1000  # CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG, which older bindings lack
_DEFAULT_LIMIT: Final = 8  # CUDA_DEVICE_MAX_CONNECTIONS, if it is not set
_SCOPES: Final = (0, 1)  # CUdevWorkqueueConfigScope


class Workqueues(NamedTuple):
    """The configuration of workqueues.

    Attributes:
        ordinal: the ordinal of the device.
        limit: the expected number of concurrent streams.
        scope: a CUdevWorkqueueConfigScope.
    """

    ordinal: int
    limit: int = _DEFAULT_LIMIT
    scope: int = 0

    @classmethod
    def read(cls, resource: CUdevResource) -> Self:
        """Return the configuration in a resource of this type.

        Raises:
            CallError: a value is out of its range.
        """
        config = resource.wqConfig
        found = cls(int(config.device), int(config.wqConcurrencyLimit), int(config.sharingScope))
        if not found.limit or found.scope not in _SCOPES:
            raise CallError(
                CUresult.CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                f"workqueues for {found.limit} streams with scope {found.scope}",
            )
        return found

    def native(self) -> CUdevResource:
        """Return the driver's resource."""
        resource = CUdevResource()
        resource.type = bindings.CUdevResourceType(WORKQUEUE_CONFIG)
        resource.wqConfig.device = self.ordinal
        resource.wqConfig.wqConcurrencyLimit = self.limit
        resource.wqConfig.sharingScope = bindings.CUdevWorkqueueConfigScope(self.scope)
        return resource


def single(found: list[Workqueues]) -> Workqueues | None:
    """Return the one configuration of a description, None without one.

    Raises:
        CallError: there are several.
    """
    if len(found) > 1:
        raise invalid_value(f"{len(found)} configurations of workqueues for one context")
    return found[0] if found else None
