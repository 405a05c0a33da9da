"""Primary contexts, created contexts, each thread's stack of current ones, and their settings.

CUDA Driver API: "Primary Context Management", "Context Management", "Peer Context Memory Access",
"Profiler Control".
"""

from __future__ import annotations

from typing import Final

from ptx.emulate import DEFAULT_LIMITS

from ...driver._api import (
    CUcontext,
    CUctx_flags,
    CUctxCreateParams,
    CUdevice,
    CUdevice_attribute,
    CUexecAffinityType,
    CUfunc_cache,
    CUlimit,
    CUresult,
)
from ..call_error import OK, SUCCESS, CallError, invalid_value, not_supported
from ..contexts import Context
from ..device_state import DeviceState, Piece
from ..driver_state import DriverState
from .call import DriverCalls, call

_FLAGS: Final = int(CUctx_flags.CU_CTX_FLAGS_MASK)
_SCHED_MASK: Final = int(CUctx_flags.CU_CTX_SCHED_MASK)
_SCHEDULES: Final = (0, 1, 2, 4)
_API_VERSION: Final = 3020
_HEAP: Final = int(CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE)
# An H100 rounds up to a tenth of its most, and begins with three tenths.
_L2_PARTS: Final = 10
_MAX_PERSISTING: Final = int(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE)
_PERSISTING_L2: Final = int(CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
# The initial values of an H100's driver, except the stack: there it grows by itself.
_FIRST: Final = {
    int(CUlimit.CU_LIMIT_STACK_SIZE): DEFAULT_LIMITS.stack_bytes,
    int(CUlimit.CU_LIMIT_PRINTF_FIFO_SIZE): 1 << 20,
}


class ContextCalls(DriverCalls):
    """Primary contexts, created contexts and each thread's stack of current ones."""

    @call
    def cuDevicePrimaryCtxRetain(self, dev: CUdevice, /) -> tuple[CUresult, CUcontext]:
        """Return the device's primary context, made active if it was not retained."""
        return SUCCESS, CUcontext(retain_primary(self._state, self._state.devices.of(dev)).handle)

    @call
    def cuDevicePrimaryCtxRelease(self, dev: CUdevice, /) -> tuple[CUresult]:
        """Release it once; the last release destroys what it holds."""
        release_primary(self._state, self._state.devices.of(dev))
        return OK

    @call
    def cuCtxCreate(
        self, ctx_create_params: CUctxCreateParams | None, flags: int, dev: CUdevice, /
    ) -> tuple[CUresult, CUcontext]:
        """Create a context and make it current.

        No device supports execution affinity; the codes are those of an H200 (driver 580).
        """
        device = self._state.devices.of(dev)
        _reject_flags(flags)
        if ctx_create_params is not None:
            _reject_parameters(ctx_create_params)
        device.reject_if_broken()
        with self._state.lock:
            context = Context(self._state.handles.new_context(), device, flags=flags, primary=False)
            self._state.handles.contexts[context.handle] = context
        self._state.thread.stack.append(context)
        return SUCCESS, CUcontext(context.handle)

    @call
    def cuCtxDestroy(self, ctx: CUcontext, /) -> tuple[CUresult]:
        """Destroy a created context, and pop it if it is the calling thread's current one.

        It may stay on threads' stacks, where every use of it fails.
        """
        if not int(ctx):
            raise invalid_value("the context is null")
        context = self._state.handles.context(ctx)
        if context.primary or context.sms:
            raise CallError(
                CUresult.CUDA_ERROR_INVALID_CONTEXT,
                "a primary context is released, and a green one destroyed as such",
            )
        end_context(self._state, context)
        stack = self._state.thread.stack
        if stack and stack[-1] is context:
            stack.pop()
        return OK

    @call
    def cuCtxAttach(self, flags: int, /) -> tuple[CUresult, CUcontext]:
        """Return the current context, which needs one more cuCtxDetach from now on."""
        if flags:
            raise invalid_value(f"cuCtxAttach takes flags 0, not {flags:#x}")
        context = self._state.handles.current()
        with self._state.lock:
            context.attached += 1
        return SUCCESS, CUcontext(context.handle)

    @call
    def cuCtxDetach(self, ctx: CUcontext, /) -> tuple[CUresult]:
        """Undo one cuCtxAttach, or the creation: then the context is destroyed."""
        context = self._state.handles.current()
        if context.handle != int(ctx):
            raise CallError(
                CUresult.CUDA_ERROR_INVALID_CONTEXT, f"{int(ctx):#x} is not the current context"
            )
        with self._state.lock:
            context.attached -= 1
            is_last = context.attached < 0
        if is_last and not (context.primary or context.sms):
            end_context(self._state, context)
            self._state.thread.stack.pop()
        return OK

    @call
    def cuCtxSetCurrent(self, ctx: CUcontext, /) -> tuple[CUresult]:
        """Replace the top of the stack by a context; null pops it."""
        stack = self._state.thread.stack
        context = self._stackable(ctx) if int(ctx) else None
        if stack:
            stack.pop()
        if context is not None:
            stack.append(context)
        return OK

    @call
    def cuCtxGetCurrent(self) -> tuple[CUresult, CUcontext]:
        """Return the current context, null if there is none."""
        stack = self._state.thread.stack
        return SUCCESS, CUcontext(stack[-1].handle if stack else 0)

    @call
    def cuCtxPushCurrent(self, ctx: CUcontext, /) -> tuple[CUresult]:
        """Make a context current on top of the others."""
        if not int(ctx):
            raise invalid_value("the context is null")
        self._state.thread.stack.append(self._stackable(ctx))
        return OK

    def _stackable(self, handle: CUcontext) -> Context:
        """Return the context, if it may become current.

        Driver 580 also accepts a created context that was destroyed, and rejects later calls in it.
        An inactive primary context is accepted here too: its handle stays, and it can become active
        again.
        """
        context = self._state.handles.context(handle)
        if context.destroyed and not context.primary:
            raise CallError(CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context is destroyed")
        return context

    @call
    def cuCtxPopCurrent(self) -> tuple[CUresult, CUcontext]:
        """Pop the current context off the stack."""
        handle = self._state.handles.top().handle
        self._state.thread.stack.pop()
        return SUCCESS, CUcontext(handle)

    @call
    def cuCtxGetDevice(self) -> tuple[CUresult, CUdevice]:
        """Return the current context's device, even after the context was destroyed (measured)."""
        return SUCCESS, CUdevice(self._state.handles.top().device.ordinal)

    @call
    def cuCtxSynchronize(self) -> tuple[CUresult]:
        """Run all queued work; rejected while a stream of the context is capturing."""
        context = self._state.handles.current()
        if self._state.captures.active:
            self._state.captures.reject_sync(context)
        self._state.operations.wait_for_context(context)
        return OK

    @call
    def cuCtxEnablePeerAccess(self, peer_context: CUcontext, flags: int, /) -> tuple[CUresult]:
        """Let kernels of the current context access all memory of a peer on another device."""
        if flags:
            raise invalid_value(f"cuCtxEnablePeerAccess takes flags 0, not {flags}")
        context, peer = (
            self._state.handles.current(),
            self._state.handles.usable(self._state.handles.context(peer_context)),
        )
        if not peer.device.can_be_reached_by(context.device):
            raise CallError(
                CUresult.CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
                f"device {context.device.ordinal} cannot access memory of device "
                f"{peer.device.ordinal}",
            )
        with self._state.lock:
            if peer in context.peers:
                raise CallError(
                    CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
                    f"access to context {peer.handle:#x} is already enabled",
                )
            context.peers.append(peer)
        return OK

    @call
    def cuCtxDisablePeerAccess(self, peer_context: CUcontext, /) -> tuple[CUresult]:
        """Revoke the access of the current context's kernels to a peer's memory."""
        context, peer = self._state.handles.current(), self._state.handles.context(peer_context)
        with self._state.lock:
            if peer not in context.peers:
                raise CallError(
                    CUresult.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED,
                    f"access to context {peer.handle:#x} is not enabled",
                )
            context.peers.remove(peer)
        return OK

    @call
    def cuCtxGetStreamPriorityRange(self) -> tuple[CUresult, int, int]:
        """Return lowest and highest priority, as on every device that has priorities."""
        self._state.handles.current()
        return SUCCESS, 0, -5

    @call
    def cuDevicePrimaryCtxReset(self, dev: CUdevice, /) -> tuple[CUresult]:
        """Destroy the objects of the primary context, however often it is retained."""
        device = self._state.devices.of(dev)
        context = self._state.handles.primaries.get(device.ordinal)
        if context is None or context.destroyed:
            return OK
        self._state.operations.finish_context(context)
        with self._state.lock:
            context = self._state.handles.primaries[
                device.ordinal
            ]  # another thread may have reset it
            if context.destroyed:
                return OK
            context.retained = 0
            memory = _mark_destroyed(self._state, context)
        _destroy_content(self._state, context, memory)
        return OK

    @call
    def cuDevicePrimaryCtxGetState(self, dev: CUdevice, /) -> tuple[CUresult, int, int]:
        """Return the primary context's flags, and whether it is active."""
        device = self._state.devices.of(dev)
        context = self._state.handles.primaries.get(device.ordinal)
        is_active = context is not None and not context.destroyed
        flags = context.flags if is_active and context is not None else device.primary_flags
        return SUCCESS, flags, int(is_active)

    @call
    def cuDevicePrimaryCtxSetFlags(self, dev: CUdevice, flags: int, /) -> tuple[CUresult]:
        """Set the primary context's flags, also of an active one."""
        device = self._state.devices.of(dev)
        _reject_flags(flags)
        device.primary_flags = flags
        context = self._state.handles.primaries.get(device.ordinal)
        if context is not None:
            context.flags = flags
        return OK

    @call
    def cuDeviceGetExecAffinitySupport(
        self, typename: CUexecAffinityType, dev: CUdevice, /
    ) -> tuple[CUresult, int]:
        """Return that no device supports execution affinity, as without MPS (measured)."""
        self._state.devices.of(dev)
        return SUCCESS, 0

    @call
    def cuCtxGetFlags(self) -> tuple[CUresult, int]:
        """Return the current context's flags."""
        return SUCCESS, self._state.handles.current().flags

    @call
    def cuCtxGetId(self, ctx: CUcontext, /) -> tuple[CUresult, int]:
        """Return a number unique among contexts; null means the current one."""
        context = self._state.handles.context(ctx) if int(ctx) else self._state.handles.current()
        return SUCCESS, context.handle

    @call
    def cuCtxGetApiVersion(self, ctx: CUcontext, /) -> tuple[CUresult, int]:
        """Return the version of the context's interface."""
        if int(ctx):
            self._state.handles.context(ctx)
        return SUCCESS, _API_VERSION

    @call
    def cuProfilerStart(self) -> tuple[CUresult]:
        """Do nothing: there is no profiler."""
        self._state.handles.current()
        return OK

    @call
    def cuProfilerStop(self) -> tuple[CUresult]:
        """Do nothing: there is no profiler."""
        self._state.handles.current()
        return OK

    @call
    def cuCtxGetLimit(self, limit: CUlimit, /) -> tuple[CUresult, int]:
        """Return the stack, heap or print buffer size."""
        context, number = self._state.handles.current(), int(limit)
        if number == _PERSISTING_L2:
            limit_bytes = _most_persisting(context, number)
            return SUCCESS, context.settings.get(number, 3 * (limit_bytes // _L2_PARTS))
        if number == _HEAP:
            return SUCCESS, context.device.model.heap.limit
        if number not in _FIRST:
            raise _unsupported(number)
        return SUCCESS, context.settings.get(number, _FIRST[number])

    @call
    def cuCtxSetLimit(self, limit: CUlimit, value: int, /) -> tuple[CUresult]:
        """Set a limit: the heap is the device's, and only grows; a stack size is the context's."""
        context, number = self._state.handles.current(), int(limit)
        if number == _HEAP:
            with context.device.lock:
                heap = context.device.model.heap
                if heap.used_bytes:
                    raise invalid_value("the heap is in use: its size is set before kernels use it")
                heap.limit = value
        elif number in _FIRST:
            context.settings[number] = value
        elif number == _PERSISTING_L2:
            limit_bytes = _most_persisting(context, number)
            if value > limit_bytes:
                raise invalid_value(
                    f"{value} bytes of persisting L2 cache; the device has {limit_bytes}"
                )
            part = limit_bytes // _L2_PARTS
            context.settings[number] = max(1, -(-value // part)) * part
        else:
            raise _unsupported(number)
        return OK

    @call
    def cuCtxGetCacheConfig(self) -> tuple[CUresult, CUfunc_cache]:
        """Return the preference that was set; it has no effect."""
        return SUCCESS, CUfunc_cache(self._state.handles.current().cache_config)

    @call
    def cuCtxSetCacheConfig(self, config: CUfunc_cache, /) -> tuple[CUresult]:
        """Store a preference; it has no effect."""
        if int(config) not in (0, 1, 2, 3):
            raise invalid_value(f"there is no cache configuration {int(config)}")
        self._state.handles.current().cache_config = int(config)
        return OK


def _reject_flags(flags: int) -> None:
    if flags & ~_FLAGS or flags & _SCHED_MASK not in _SCHEDULES:
        raise invalid_value(f"invalid context flags {flags:#x}")


def _reject_parameters(params: CUctxCreateParams) -> None:
    """Reject parameters of a context that ask for something."""
    if params.cigParams:
        raise not_supported("no device shares its work with graphics (cigParams)")
    if params.numExecAffinityParams <= 0:
        return
    if not params.execAffinityParams:
        raise invalid_value("numExecAffinityParams counts parameters, and there are none")
    raise CallError(
        CUresult.CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "no device supports execution affinity"
    )


def retain_primary(driver: DriverState, device: DeviceState) -> Context:
    """Return a device's primary context, retained once more, and made active if necessary."""
    with driver.lock:
        context = driver.handles.primaries.get(device.ordinal)
        if context is None or context.destroyed:
            device.reject_if_broken()
            handle = context.handle if context is not None else driver.handles.new_context()
            context = Context(handle, device, flags=device.primary_flags, primary=True)
            driver.handles.contexts[handle] = driver.handles.primaries[device.ordinal] = context
        context.retained += 1
        return context


def release_primary(driver: DriverState, device: DeviceState) -> None:
    """Release the primary context of a device once; the last release destroys what it holds."""
    context = _retained(driver, device)
    if context.retained == 1:
        driver.operations.finish_context(context)
    with driver.lock:
        context = _retained(driver, device)  # another thread may have released it
        context.retained -= 1
        is_last = context.retained == 0
        memory = _mark_destroyed(driver, context) if is_last else []
    if is_last:
        _destroy_content(driver, context, memory)


def _retained(driver: DriverState, device: DeviceState) -> Context:
    """Return the active primary context of a device."""
    context = driver.handles.primaries.get(device.ordinal)
    if context is None or context.destroyed:
        raise CallError(CUresult.CUDA_ERROR_INVALID_CONTEXT, "the primary context is not retained")
    return context


def end_context(driver: DriverState, context: Context) -> None:
    """Destroy a context other than a primary one, once."""
    driver.operations.finish_context(context)
    with driver.lock:
        if context.destroyed:
            raise CallError(CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context is destroyed")
        memory = _mark_destroyed(driver, context)
    _destroy_content(driver, context, memory)
    driver.handles.contexts.pop(context.handle, None)


def _mark_destroyed(driver: DriverState, context: Context) -> list[Piece]:
    """Mark a context as destroyed; return its device memory. `_lock` is held.

    Memory of a pool belongs to the device, and is not included.
    """
    context.destroyed = True
    driver.memory.host.free_of(context.handle)
    pieces = list(context.device.pieces.values())
    return [piece for piece in pieces if piece.context == context.handle]


def _destroy_content(driver: DriverState, context: Context, memory: list[Piece]) -> None:
    """Destroy a context's objects; later calls with its handles return CONTEXT_IS_DESTROYED."""
    device = context.device
    for stream in [s for s in list(driver.handles.streams.values()) if s.context is context]:
        driver.captures.drop(stream)
    _forget_default_streams(driver, context)
    for event in [e for e in list(driver.handles.events.values()) if e.context is context]:
        driver.handles.events.pop(event.handle, None)
    for module in [m for m in list(driver.handles.modules.values()) if m.context is context]:
        module.close()
    with device.lock:
        for piece in memory:
            if device.pieces.get(piece.address) is piece:
                device.free(piece)
        _forget_arrays(driver, context)
        if all(c.destroyed for c in list(driver.handles.contexts.values()) if c.device is device):
            device.model.heap.clear()
    for other in device.others:  # where it opened memory of other processes
        with other.lock:
            for piece in list(other.pieces.values()):
                if piece.context == context.handle:
                    other.free(piece)


def _forget_arrays(driver: DriverState, context: Context) -> None:
    """Forget the arrays, textures and surfaces of a context whose memory is freed."""
    for array in [a for a in list(driver.handles.arrays.values()) if a.context is context]:
        array.destroyed = True
        del driver.handles.arrays[array.handle]
    for mipmapped in [
        m for m in list(driver.handles.mipmapped_arrays.values()) if m.context is context
    ]:
        del driver.handles.mipmapped_arrays[mipmapped.handle]
    for handle in [
        h for h, owner in driver.handles.texture_owners.copy().items() if owner is context
    ]:
        context.device.model.textures.pop(handle, None)
        context.device.model.surfaces.pop(handle, None)


def _forget_default_streams(driver: DriverState, context: Context) -> None:
    for key, stream in driver.handles.default_streams.copy().items():
        if stream.context is context:
            driver.captures.drop(stream)
            del driver.handles.default_streams[key]


def _most_persisting(context: Context, number: int) -> int:
    """Return the most L2 cache that persisting accesses may have, in bytes."""
    nbytes = context.device.attributes[_MAX_PERSISTING]
    if not nbytes:
        raise _unsupported(number)
    return nbytes


def _unsupported(number: int) -> CallError:
    return CallError(
        CUresult.CUDA_ERROR_UNSUPPORTED_LIMIT, f"the emulator has no limit {number} of a context"
    )
