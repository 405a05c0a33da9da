"""Resetting a primary context: all its objects are closed, then the driver destroys the rest.

A primary context does not list its objects, as that would cost each allocation time. So a reset
searches all existing public objects.
"""

from __future__ import annotations

import gc

from ..driver.context import BaseContext
from ..driver.context_handle import ContextHandle
from ..driver.deferred_release import run_deferred
from ..driver.device import Device
from ..driver.driver_selection import Driver, failure
from ..driver.handle import AnyHandle, Closeable, ClosedHandle, InvalidatedHandle, living, raise_all
from ..driver.stream import BaseStream
from ..driver.stream_handle import EventHandle, StreamHandle
from ..errors import CudaError, InvalidValueError, ResetRefusedError
from ..memory.pinned import HostHandle, wait_for_contexts
from ..memory.registered import RegisteredArray
from ..memory.reuse.allocator import allocators
from ..memory.reuse.arena import arenas


def reset(context: BaseContext) -> None:
    """Close all objects of a primary context, and let the driver destroy and forget the rest.

    Raises: the same as `Context.reset`.
    """
    if not context.is_primary:
        raise InvalidValueError(
            f"resetting {context!r}, which is not a primary context: close it and create another"
        )
    handle = context._handle
    run_deferred()
    _refuse_if_in_use(context)
    context.synchronize()
    wait_for_contexts(handle.driver, int(handle.raw))  # work of other devices may use its memory
    green = _synchronized_green(handle)
    _empty_caches(handle)
    _forget(handle.driver, context.ordinal)
    # An interrupt until here leaves the rest unchanged, and the next reset continues.
    handles = [each._handle for each in _names(handle) if each is not context]
    faults = _close_all(context)
    lost = InvalidatedHandle(
        f"the context on device {context.ordinal} was reset, and its resources are gone"
    )
    faults += _destroy(handles, lost)
    for each in (handle, *green):
        each.is_lost = True
    for each in green:
        each.raw = lost  # type: ignore[assignment]  # no call accepts it
    context._give_up()
    run_deferred()
    for public in _names(handle):
        public._mark_closed()  # made meanwhile by a finalizer or another thread
    faults += _reset_device(context.device)
    raise_all(faults, f"resetting device {context.ordinal}")


def _synchronized_green(context: ContextHandle) -> list[ContextHandle]:
    """Return the green contexts of a primary one, once their work is done."""
    found = [
        each
        for each in context.driver.contexts.alive()
        if isinstance(each, ContextHandle) and each is not context and each.shares_with(context)
    ]
    for each in found:
        (code,) = each.call(context.api.cuCtxSynchronize)
        if code:
            raise failure(context.api, code, "cuCtxSynchronize", "waiting for a green context")
    return found


def _reset_device(device: Device) -> list[Exception]:
    """Let the driver destroy the primary context, and forget it; return the errors."""
    api = device.driver.api
    (code,) = api.cuDevicePrimaryCtxReset(device.handle)
    _forget(device.driver, device.ordinal)  # another thread may have made an object meanwhile
    device.forget_primary()
    doing = f"resetting the primary context of device {device.ordinal}"
    return [failure(api, code, "cuDevicePrimaryCtxReset", doing)] if code else []


def _refuse_if_in_use(context: BaseContext) -> None:
    """Raise `ResetRefusedError` for objects that cannot be closed."""
    handle = context._handle
    if any(isinstance(each, BaseStream) and each.capturing for each in _names(handle)):
        raise ResetRefusedError(f"{context!r} is not reset while a stream of it captures: end that")
    for each in _names(handle):
        if isinstance(each, BaseContext):
            each._kept.clear()  # such as the pinned memory of large copies, which is made again
    gc.collect()
    closing = {id(each._handle) for each in _names(handle) if isinstance(each, RegisteredArray)}
    held = [
        each
        for each in handle.driver.host_memory.alive()
        if isinstance(each, HostHandle)
        and each.raw
        and _is_of(each, handle)
        and id(each) not in closing
    ]
    if held:
        raise ResetRefusedError(
            f"{context!r} is not reset while {len(held)} arrays of pinned or managed memory are "
            "in use\n"
            "  delete them, all views of them, and pinned pools"
        )


def _empty_caches(context: ContextHandle) -> None:
    """Free cached blocks of a context's allocators and of all arenas."""
    for allocator in allocators.alive():
        if _is_of(allocator._queue, context):
            allocator._lose()
    for arena in arenas.alive():
        arena.trim()


def _forget(driver: Driver, ordinal: int) -> None:
    """Drop all cached objects of a device's context."""
    for kind, cache in driver.cached().copy().items():
        if kind is not Device:
            cache.pop(ordinal, None)


def _close_all(context: BaseContext) -> list[Exception]:
    """Close every public object of a context except itself; return the errors."""
    faults: list[Exception] = []
    for each in _names(context._handle):
        if each is context or each.closed:
            continue
        try:
            each._close_with_parent()
        except Exception as fault:
            faults.append(fault)
    for each in _names(context._handle):
        if each is not context:
            each._mark_closed()  # such as an arena's slab, which `close` leaves to the arena
    return faults


def _destroy(handles: list[AnyHandle], lost: InvalidatedHandle) -> list[Exception]:
    """Destroy closed objects that are still held, such as by a call of another thread."""
    faults: list[Exception] = []
    for handle in sorted(handles, key=_depth):
        outcome: list[object] = []
        owner = handle.destroyer or handle
        owner._outcome = outcome
        owner._destroy_and_report()
        handle.raw = owner.raw = lost
        faults += [each for each in outcome if isinstance(each, CudaError)]
    return faults


def _depth(handle: AnyHandle) -> int:
    """Return after how many kinds of other handles a handle is destroyed."""
    return (
        2
        if isinstance(handle, ContextHandle)
        else int(isinstance(handle, (StreamHandle, EventHandle)))
    )


def _names(context: ContextHandle) -> list[Closeable]:
    """Return the open public objects of a context, under whichever of its handles."""
    sharing = [each for each in context.driver.sharing.alive() if isinstance(each, Closeable)]
    return [
        each for each in (*living(), *sharing) if _is_of(getattr(each, "_handle", None), context)
    ]


def _is_of(handle: object, context: ContextHandle) -> bool:
    """Return whether a handle is of a primary context, which may have several, or a green one."""
    if handle is None or isinstance(handle, ClosedHandle):
        return False
    owner = handle if isinstance(handle, ContextHandle) else getattr(handle, "context", None)
    return owner is context or (isinstance(owner, ContextHandle) and owner.shares_with(context))
