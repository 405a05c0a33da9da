"""Resetting a primary context: everything of it is closed, then the driver destroys the rest.

Nothing of a primary context is adopted by it, as that would cost each allocation. So what is of it
is looked for among all objects of the process, which takes some ten milliseconds.
"""

from __future__ import annotations

import gc

from ..driver.context import ContextCore
from ..driver.context_box import ContextBox
from ..driver.device import Device
from ..driver.handle import AnyBox, Box, Closed, Closing
from ..driver.in_use import Driver, failure
from ..driver.later import drop_now
from ..driver.stream_box import EventBox, StreamBox
from ..driver.stream_core import StreamCore
from ..errors import CudaError, InvalidValueError, ResetRefusedError
from ..memory.host.registered import RegisteredArray
from ..memory.pinned import HostBox


def reset(context: ContextCore) -> None:
    """Close everything of a primary context, and let the driver destroy and forget the rest.

    Raises: what `Context.reset` does.
    """
    if not context.is_primary:
        raise InvalidValueError(
            f"resetting {context!r}, which is no primary context: close it, and make another one"
        )
    box = context._box
    driver, device = box.driver, context.device
    drop_now()
    _refuse_if_in_use(context)
    context.synchronize()
    green = [
        each
        for each in driver.contexts.alive()
        if isinstance(each, ContextBox) and each is not box and each.shares_with(box)
    ]
    for each in green:
        (code,) = each.call(driver.api.cuCtxSynchronize)
        if code:
            raise failure(driver.api, code, "cuCtxSynchronize", f"waiting before {context!r} goes")
    faults: list[Exception] = []
    _forget(driver, device.ordinal)
    for each in (box, *green):
        each.is_lost = True
    _close_all(context, faults)
    drop_now()
    faults += _destroy_survivors(box)
    (code,) = driver.api.cuDevicePrimaryCtxReset(device.handle)
    _forget(driver, device.ordinal)  # another thread may have asked for something meanwhile
    device.forget_primary()
    if code:
        doing = f"resetting the primary context of device {device.ordinal}"
        faults.append(failure(driver.api, code, "cuDevicePrimaryCtxReset", doing))
    if len(faults) == 1:
        raise faults[0]
    if faults:
        raise ExceptionGroup(f"resetting device {device.ordinal}", faults)


def _refuse_if_in_use(context: ContextCore) -> None:
    """Raise `ResetRefusedError` for what cannot be closed."""
    box = context._box
    if any(isinstance(each, StreamCore) and each.capturing for each in _names(box)):
        raise ResetRefusedError(f"{context!r} is not reset while a stream of it captures: end that")
    context._kept.clear()  # such as the pinned memory of large copies, which is made again
    gc.collect()
    closing = {id(each._box) for each in _names(box) if isinstance(each, RegisteredArray)}
    held = [each for each in _boxes(box) if isinstance(each, HostBox) and id(each) not in closing]
    if held:
        raise ResetRefusedError(
            f"{context!r} is not reset while {len(held)} arrays of pinned or managed memory are in "
            "use, which would lose their memory: drop them and all views of them"
        )


def _forget(driver: Driver, ordinal: int) -> None:
    """Keep nothing of a device's context for who asks next."""
    for kind, cache in driver.cached().items():
        if kind is not Device:
            cache.pop(ordinal, None)


def _close_all(context: ContextCore, faults: list[Exception]) -> None:
    """Close every public object of a context, itself the last one."""
    found = [each for each in _names(context._box) if each is not context]
    while found:
        each = found.pop()
        try:
            if each.closed:
                continue
            each._close_with_parent()
        except Exception as fault:
            faults.append(fault)
    context._give_up()


def _destroy_survivors(context: ContextBox) -> list[Exception]:
    """Destroy what still is held, such as by a call of another thread, as it will not be later."""
    faults: list[Exception] = []
    for box in sorted(_boxes(context), key=_depth):
        try:
            box._destroy()
        except CudaError as fault:
            faults.append(fault)
        box.raw = None
    return faults


def _depth(box: AnyBox) -> int:
    """After how many kinds of others a box is destroyed."""
    return 2 if isinstance(box, ContextBox) else int(isinstance(box, (StreamBox, EventBox)))


def _names(context: ContextBox) -> list[Closing]:
    """The open public objects of a context, under whichever of its boxes."""
    return [
        each
        for each in gc.get_objects()
        # No `isinstance`: it asks objects of others for their `__class__`.
        if issubclass(type(each), Closing) and _is_of(getattr(each, "_box", None), context)
    ]


def _boxes(context: ContextBox) -> list[AnyBox]:
    """The boxes of what a context has, green contexts too, and nothing has destroyed."""
    return [
        each
        for each in gc.get_objects()
        if issubclass(type(each), Box)
        and not getattr(each, "is_primary", False)
        and _is_of(each, context)
        and getattr(each, "raw", None) is not None
    ]


def _is_of(box: object, context: ContextBox) -> bool:
    """Whether a box is of a primary context, which may have several, or of a green one on it."""
    if box is None or isinstance(box, Closed):
        return False
    owner = box if isinstance(box, ContextBox) else getattr(box, "context", None)
    return owner is context or (isinstance(owner, ContextBox) and owner.shares_with(context))
