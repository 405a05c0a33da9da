"""Green contexts: contexts on a part of a device's multiprocessors.

CUDA Driver API: "Green Contexts". Kernels run on the emulator as they run on all of it; what a
context has is said, and bounds cooperative grids.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from ...driver._api import (
    CUcontext,
    CUdevice,
    CUdevResource,
    CUdevResourceDesc,
    CUdevResourceType,
    CUgreenCtx,
    CUresult,
    CUstream,
)
from ..contexts import Context
from ..refusal import OK, SUCCESS, Refusal, invalid_handle, invalid_value
from ..sm_resources import SmRange, steps, together
from ..streams import NON_BLOCKING
from .call import call
from .setting import SettingCalls

_SM: Final = int(CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM)
_IGNORE: Final = 1  # CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING
_DEFAULT_STREAM: Final = 1  # CU_GREEN_CTX_DEFAULT_STREAM


class GreenContextCalls(SettingCalls):
    """Green contexts: contexts on a part of a device's multiprocessors."""

    @call(1)
    def cuDeviceGetDevResource(
        self, device: CUdevice, kind: CUdevResourceType, /
    ) -> tuple[CUresult, CUdevResource]:
        """All multiprocessors of a device."""
        state = self._device(device)
        _require_sm(kind)
        return SUCCESS, SmRange.of(state).native(state)

    @call(1)
    def cuCtxGetDevResource(
        self, h_ctx: CUcontext, kind: CUdevResourceType, /
    ) -> tuple[CUresult, CUdevResource]:
        """The multiprocessors of a context."""
        context = self._usable(self._context(h_ctx))
        _require_sm(kind)
        return SUCCESS, _of_context(context)

    @call(3)
    def cuDevSmResourceSplitByCount(
        self, nb_groups: int, input: CUdevResource | None, flags: int, min_count: int, /
    ) -> tuple[CUresult, list[CUdevResource], int, CUdevResource]:
        """Divide multiprocessors; for 0 groups only how many there can be."""
        given = SmRange.read(input)
        device = self._device_at(given.ordinal)
        if flags & ~_IGNORE:
            raise Refusal(
                CUresult.CUDA_ERROR_NOT_SUPPORTED,
                f"the emulator divides by flags 0 and 1, not {flags:#x}: its clusters are not "
                "bound to neighbours",
            )
        if not given.is_whole:
            raise Refusal(
                CUresult.CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                "what a division gave is divided once a green context has it",
            )
        least, step = steps(device, ignore=bool(flags & _IGNORE))
        size = max(least, -(-min_count // step) * step)
        if not 0 <= min_count <= given.count or size > given.count:
            raise Refusal(
                CUresult.CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                f"{min_count} of {given.count} multiprocessors, in steps of {step} from {least} on",
            )
        parts, rest = given.divided(size, nb_groups or None)
        found = [part.native(device) for part in parts] if nb_groups else []
        # The bindings give as many as were asked for; those behind the last are empty.
        found += [CUdevResource() for _ in range(nb_groups - len(found))]
        return SUCCESS, found, len(parts), rest.native(device)

    @call(1)
    def cuDevResourceGenerateDesc(
        self, resources: Sequence[CUdevResource] | None, nb_resources: int, /
    ) -> tuple[CUresult, CUdevResourceDesc]:
        """What a green context is to have."""
        found = together(SmRange.read(each) for each in (resources or ())[:nb_resources])
        # No function gives a description up, so equal ones are one.
        for handle, known in tuple(self._descriptions.items()):
            if known == found:
                return SUCCESS, CUdevResourceDesc(handle)
        handle = next(self._handles)
        self._descriptions[handle] = found
        return SUCCESS, CUdevResourceDesc(handle)

    @call(1)
    def cuGreenCtxCreate(
        self, desc: CUdevResourceDesc, dev: CUdevice, flags: int, /
    ) -> tuple[CUresult, CUgreenCtx]:
        """A green context, which retains the device's primary one."""
        device, ranges = self._device(dev), self._descriptions.get(int(desc))
        if ranges is None or ranges[0].ordinal != device.ordinal:
            raise invalid_value("the description is none, or of another device")
        if flags != _DEFAULT_STREAM:
            raise invalid_value("a green context is made with CU_GREEN_CTX_DEFAULT_STREAM")
        code, _ = self.cuDevicePrimaryCtxRetain(dev)
        if code:
            raise Refusal(code, "the primary context cannot be retained")
        with self._lock:
            context = Context(self._context_handle(), device, flags=0, primary=False, sms=ranges)
            self._contexts[context.handle] = context
            handle = next(self._handles)
            self._green[handle] = context
        return SUCCESS, CUgreenCtx(handle)

    @call()
    def cuGreenCtxDestroy(self, h_ctx: CUgreenCtx, /) -> tuple[CUresult]:
        """Destroy a green context, and release the primary one."""
        context = self._green_context(h_ctx)
        self._end_context(context)
        self._green.pop(int(h_ctx), None)
        with suppress(Refusal):  # a reset has released it
            self._release_primary(context.device)
        return OK

    @call(1)
    def cuCtxFromGreenCtx(self, h_ctx: CUgreenCtx, /) -> tuple[CUresult, CUcontext]:
        """The context that may be made current."""
        return SUCCESS, CUcontext(self._green_context(h_ctx).handle)

    @call(1)
    def cuGreenCtxGetDevResource(
        self, h_ctx: CUgreenCtx, kind: CUdevResourceType, /
    ) -> tuple[CUresult, CUdevResource]:
        """The multiprocessors of a green context."""
        context = self._green_context(h_ctx)
        _require_sm(kind)
        return SUCCESS, _of_context(context)

    @call(1)
    def cuGreenCtxStreamCreate(
        self, green_ctx: CUgreenCtx, flags: int, priority: int, /
    ) -> tuple[CUresult, CUstream]:
        """A stream, whose kernels run on the context's multiprocessors."""
        context = self._green_context(green_ctx)
        if flags != NON_BLOCKING:
            raise invalid_value("a stream of a green context is made with CU_STREAM_NON_BLOCKING")
        return SUCCESS, self._new_stream(context, flags, priority)

    def _regular_and_green(self, context: int) -> tuple[int, int]:
        """The handles of a context's regular and of its green one, 0 where it is none.

        The regular one of a green context is its device's primary one (CUDA Driver API,
        cuStreamGetCtx_v2).
        """
        for handle, found in list(self._green.items()):
            if found.handle == context:
                return self._primaries[found.device.ordinal].handle, handle
        return context, 0

    def _green_context(self, handle: CUgreenCtx) -> Context:
        context = self._green.get(int(handle))
        if context is None:
            raise invalid_handle(f"invalid resource handle: {int(handle):#x} is no green context")
        return self._usable(context)


def _of_context(context: Context) -> CUdevResource:
    """What a context has, which may be divided again."""
    device = context.device
    ranges = context.sms or (SmRange.of(device),)
    count = sum(each.count for each in ranges)
    return SmRange(device.ordinal, ranges[0].start, count).native(device)


def _require_sm(kind: CUdevResourceType) -> None:
    if int(kind) != _SM:
        raise Refusal(
            CUresult.CUDA_ERROR_INVALID_RESOURCE_TYPE,
            f"the emulator has multiprocessors as a resource, and not type {int(kind)}",
        )
