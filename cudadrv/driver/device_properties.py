"""All that the driver says of a device, by name."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import InvalidValueError
from .attributes import DeviceAttribute


class DeviceProperties:
    """The attributes of a device, each under its name in lower case.

    Such as ``device.properties.multiprocessor_count``; `DeviceAttribute` has the names. What the
    driver does not know is an `AttributeError`.
    """

    __slots__ = ("_ask", "_device")

    def __init__(self, device: str, ask: Callable[[DeviceAttribute], int]) -> None:
        self._device = device
        self._ask = ask

    def __repr__(self) -> str:
        return f"<DeviceProperties of {self._device}>"

    def __dir__(self) -> list[str]:
        return sorted([*object.__dir__(self), *(each.name.lower() for each in DeviceAttribute)])

    def __getattr__(self, name: str) -> int:
        try:
            return self._ask(DeviceAttribute[name.upper()])
        except (KeyError, InvalidValueError) as error:
            raise AttributeError(
                f"the driver knows no property {name!r} of a device: see DeviceAttribute"
            ) from error
