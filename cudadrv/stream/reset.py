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
from ..driver.handle import (
    AnyHandle,
    Closeable,
    ClosedHandle,
    InvalidatedHandle,
    handle_of,
    living,
    raise_all,
)
from ..driver.stream import BaseStream
from ..driver.stream_handle import EventHandle, StreamHandle
from ..errors import CudaError, InvalidValueError, ResetRejectedError
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
    _reject_if_in_use(context)
    context.synchronize()
    wait_for_contexts(handle.driver, int(handle.raw))  # work of other devices may use its memory
    green = _synchronized_green(handle)
    _empty_caches(handle)
    _forget(handle.driver, context.ordinal)
    # An interrupt until here leaves the rest unchanged, and the next reset continues.
    handles = [public._handle for public in _open_objects(handle) if public is not context]
    faults = _close_all(context)
    lost = InvalidatedHandle(
        f"the context on device {context.ordinal} was reset, and its resources are gone"
    )
    faults += _destroy(handles, lost)
    for context_handle in (handle, *green):
        context_handle.is_lost = True
    for context_handle in green:
        context_handle.raw = lost  # type: ignore[assignment]  # no call accepts it
    context._give_up()
    run_deferred()
    for public in _open_objects(handle):
        public._mark_closed()  # made meanwhile by a finalizer or another thread
    faults += _reset_device(context.device)
    raise_all(faults, f"resetting device {context.ordinal}")


def _synchronized_green(context: ContextHandle) -> list[ContextHandle]:
    """Return the green contexts of a primary one, once their work is done."""
    green_contexts = [
        green_context
        for green_context in context.driver.contexts.alive()
        if isinstance(green_context, ContextHandle)
        and green_context is not context
        and green_context.shares_with(context)
    ]
    for green_context in green_contexts:
        (code,) = green_context.call(context.api.cuCtxSynchronize)
        if code:
            raise failure(context.api, code, "cuCtxSynchronize", "waiting for a green context")
    return green_contexts


def _reset_device(device: Device) -> list[Exception]:
    """Let the driver destroy the primary context, and forget it; return the errors."""
    api = device.driver.api
    (code,) = api.cuDevicePrimaryCtxReset(device.handle)
    _forget(device.driver, device.ordinal)  # another thread may have made an object meanwhile
    device.forget_primary()
    doing = f"resetting the primary context of device {device.ordinal}"
    return [failure(api, code, "cuDevicePrimaryCtxReset", doing)] if code else []


def _reject_if_in_use(context: BaseContext) -> None:
    """Raise `ResetRejectedError` for objects that cannot be closed."""
    handle = context._handle
    streams = [public for public in _open_objects(handle) if isinstance(public, BaseStream)]
    if any(stream._is_captured for stream in streams):
        raise ResetRejectedError(
            f"{context!r} is not reset while a stream of it captures: end that"
        )
    for public in _open_objects(handle):
        if isinstance(public, BaseContext):
            public._kept.clear()  # such as the pinned memory of large copies, which is made again
    gc.collect()
    closing = {
        id(public._handle)
        for public in _open_objects(handle)
        if isinstance(public, RegisteredArray)
    }
    in_use = [
        array_handle
        for array_handle in handle.driver.host_memory.alive()
        if isinstance(array_handle, HostHandle)
        and array_handle.raw
        and _is_of(array_handle, handle)
        and id(array_handle) not in closing
    ]
    if in_use:
        raise ResetRejectedError(
            f"{context!r} is not reset while {len(in_use)} arrays of pinned or managed memory are "
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
    for public in _open_objects(context._handle):
        if public is context or public.closed:
            continue
        try:
            public._close_with_parent()
        except Exception as fault:
            faults.append(fault)
    for public in _open_objects(context._handle):
        if public is not context:
            public._mark_closed()  # such as an arena's slab, which `close` leaves to the arena
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
        faults += [result for result in outcome if isinstance(result, CudaError)]
    return faults


def _depth(handle: AnyHandle) -> int:
    """Return after how many kinds of other handles a handle is destroyed."""
    return (
        2
        if isinstance(handle, ContextHandle)
        else int(isinstance(handle, (StreamHandle, EventHandle)))
    )


def _open_objects(context: ContextHandle) -> list[Closeable]:
    """Return the open public objects of a context, under any of its handles."""
    sharing = [public for public in context.driver.sharing.alive() if isinstance(public, Closeable)]
    return [public for public in (*living(), *sharing) if _is_of(handle_of(public), context)]


def _is_of(handle: object, context: ContextHandle) -> bool:
    """Return whether a handle is of a primary context, which may have several, or a green one."""
    if handle is None or isinstance(handle, ClosedHandle):
        return False
    owner = handle if isinstance(handle, ContextHandle) else getattr(handle, "context", None)
    return owner is context or (isinstance(owner, ContextHandle) and owner.shares_with(context))
