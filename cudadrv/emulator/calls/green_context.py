"""Green contexts: contexts on a part of a device's multiprocessors.

CUDA Driver API: "Green Contexts". On the emulator their kernels run as on the whole device. The
size of a context is reported, and limits cooperative grids. Co-scheduling only affects the sizes of
groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, Protocol

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
from ..call_error import OK, SUCCESS, CallError, invalid_handle, invalid_value
from ..contexts import Context, SmRange, steps, together
from ..driver_state import DriverState
from ..streams import NON_BLOCKING
from ..workqueues import WORKQUEUE_CONFIG, Workqueues, single
from .call import DriverCalls, call
from .context import end_context, release_primary, retain_primary
from .stream import new_stream

_SM: Final = int(CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM)
_HAS_WORKQUEUES: Final = (13, 1)
_IGNORE: Final = 1  # CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING
_DEFAULT_STREAM: Final = 1  # CU_GREEN_CTX_DEFAULT_STREAM
_BACKFILL: Final = 1  # CU_DEV_SM_RESOURCE_GROUP_BACKFILL
_EVEN: Final = 2  # the count of a group is a multiple of it
_OF_GROUPS: Final = -1  # marks a division into groups, instead of the size of equal parts


class GroupParams(Protocol):
    """The used fields of a CU_DEV_SM_RESOURCE_GROUP_PARAMS."""

    smCount: int  # noqa: N815  # the driver's name
    coscheduledSmCount: int  # noqa: N815  # the driver's name
    flags: int


class GreenContextCalls(DriverCalls):
    """Green contexts, and their multiprocessors."""

    @call
    def cuDeviceGetDevResource(
        self, device: CUdevice, kind: CUdevResourceType, /
    ) -> tuple[CUresult, CUdevResource]:
        """Return all multiprocessors of a device."""
        state = self._state.devices.of(device)
        if self._is_workqueues(kind):
            return SUCCESS, Workqueues(state.ordinal).native()
        return SUCCESS, SmRange.of(state).native(state)

    @call
    def cuCtxGetDevResource(
        self, h_ctx: CUcontext, kind: CUdevResourceType, /
    ) -> tuple[CUresult, CUdevResource]:
        """Return the multiprocessors of a context."""
        context = self._state.handles.usable(self._state.handles.context(h_ctx))
        return SUCCESS, self._of_context(context, kind)

    @call
    def cuDevSmResourceSplitByCount(
        self, nb_groups: int, input: CUdevResource | None, flags: int, min_count: int, /
    ) -> tuple[CUresult, list[CUdevResource], int, CUdevResource]:
        """Divide multiprocessors; for 0 groups only return how many are possible."""
        available = SmRange.read(input)
        device = self._state.devices.at(available.ordinal)
        if flags & ~_IGNORE:
            raise CallError(
                CUresult.CUDA_ERROR_NOT_SUPPORTED,
                f"the emulator divides by flags 0 and 1, not {flags:#x}: its clusters are not "
                "bound to neighbours",
            )
        if not available.is_whole:
            raise CallError(
                CUresult.CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                "what a division gave is divided once a green context has it",
            )
        minimum, step = steps(device, ignore=bool(flags & _IGNORE))
        size = max(minimum, -(-min_count // step) * step)
        if not 0 <= min_count <= available.count or size > available.count:
            raise CallError(
                CUresult.CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                f"{min_count} of {available.count} multiprocessors, in steps of {step} from "
                f"{minimum} on",
            )
        parts, remainder = available.divided(size, nb_groups or None)
        groups = [part.native(device) for part in parts] if nb_groups else []
        # The bindings return as many as requested; those after the last are empty.
        groups += [CUdevResource() for _ in range(nb_groups - len(groups))]
        return SUCCESS, groups, len(parts), remainder.native(device)

    @call
    def cuDevResourceGenerateDesc(
        self, resources: Sequence[CUdevResource] | None, nb_resources: int, /
    ) -> tuple[CUresult, CUdevResourceDesc]:
        """Describe the multiprocessors and workqueues of a green context."""
        given = (resources or ())[:nb_resources]
        of_queues = [each for each in given if self._is_known_workqueues(each)]
        workqueues = single([Workqueues.read(each) for each in of_queues])
        parts = [each for each in given if each not in of_queues]
        if workqueues is not None and not parts:
            parts = [self._whole(workqueues)]
        described = together(SmRange.read(each) for each in parts), workqueues
        # No function releases a description, so equal ones are one object.
        with self._state.lock:
            for handle, known in self._state.handles.descriptions.items():
                if known == described:
                    return SUCCESS, CUdevResourceDesc(handle)
            handle = self._state.handles.new()
            self._state.handles.descriptions[handle] = described
            return SUCCESS, CUdevResourceDesc(handle)

    @call
    def cuGreenCtxCreate(
        self, desc: CUdevResourceDesc, dev: CUdevice, flags: int, /
    ) -> tuple[CUresult, CUgreenCtx]:
        """Create a green context, which retains the device's primary one."""
        device = self._state.devices.of(dev)
        ranges, workqueues = self._state.handles.descriptions.get(int(desc), ((), None))
        ordinals = {each.ordinal for each in (*ranges, workqueues) if each is not None}
        if ordinals != {device.ordinal}:
            raise invalid_value("the description is none, or of another device")
        if flags != _DEFAULT_STREAM:
            raise invalid_value("a green context is made with CU_GREEN_CTX_DEFAULT_STREAM")
        try:
            retain_primary(self._state, device)
        except CallError as error:
            raise CallError(error.code, "the primary context cannot be retained") from None
        with self._state.lock:
            context = Context(
                self._state.handles.new_context(),
                device,
                flags=0,
                primary=False,
                sms=ranges,
                workqueues=workqueues,
            )
            self._state.handles.contexts[context.handle] = context
            handle = self._state.handles.new()
            self._state.handles.green[handle] = context
        return SUCCESS, CUgreenCtx(handle)

    @call
    def cuGreenCtxDestroy(self, h_ctx: CUgreenCtx, /) -> tuple[CUresult]:
        """Destroy a green context, and release the primary one."""
        context = self._green_context(h_ctx)
        end_context(self._state, context)
        self._state.handles.green.pop(int(h_ctx), None)
        with suppress(CallError):  # a reset has released it
            release_primary(self._state, context.device)
        return OK

    @call
    def cuCtxFromGreenCtx(self, h_ctx: CUgreenCtx, /) -> tuple[CUresult, CUcontext]:
        """Return the context that may be made current."""
        return SUCCESS, CUcontext(self._green_context(h_ctx).handle)

    @call
    def cuGreenCtxGetDevResource(
        self, h_ctx: CUgreenCtx, kind: CUdevResourceType, /
    ) -> tuple[CUresult, CUdevResource]:
        """Return the multiprocessors or the workqueues of a green context."""
        return SUCCESS, self._of_context(self._green_context(h_ctx), kind)

    @call
    def cuGreenCtxStreamCreate(
        self, green_ctx: CUgreenCtx, flags: int, priority: int, /
    ) -> tuple[CUresult, CUstream]:
        """Create a stream, whose kernels run on the context's multiprocessors."""
        context = self._green_context(green_ctx)
        if flags != NON_BLOCKING:
            raise invalid_value("a stream of a green context is made with CU_STREAM_NON_BLOCKING")
        return SUCCESS, new_stream(self._state, context, flags, priority)

    @call
    def cuStreamGetDevResource(
        self, h_stream: CUstream, kind: CUdevResourceType, /
    ) -> tuple[CUresult, CUdevResource]:
        """Return the multiprocessors or the workqueues of a stream's kernels."""
        return SUCCESS, self._of_context(self._state.handles.stream(h_stream).context, kind)

    def _of_context(self, context: Context, kind: CUdevResourceType) -> CUdevResource:
        """Return a resource of a context; its multiprocessors may be divided again."""
        device = context.device
        if self._is_workqueues(kind):
            return (context.workqueues or Workqueues(device.ordinal)).native()
        ranges = context.sms or (SmRange.of(device),)
        count = sum(sm_range.count for sm_range in ranges)
        return SmRange(device.ordinal, ranges[0].start, count).native(device)

    def _whole(self, workqueues: Workqueues) -> CUdevResource:
        """Return all multiprocessors of the device of workqueues."""
        device = self._state.devices.at(workqueues.ordinal)
        return SmRange.of(device).native(device)

    def _is_known_workqueues(self, resource: CUdevResource) -> bool:
        return int(resource.type) == WORKQUEUE_CONFIG and self._is_workqueues(resource.type)

    def _is_workqueues(self, kind: CUdevResourceType) -> bool:
        """Return whether a type is that of workqueues, else of multiprocessors.

        Raises:
            CallError: it is neither, or a driver of this version does not know it.
        """
        if int(kind) == WORKQUEUE_CONFIG and self._state.process.driver_version >= _HAS_WORKQUEUES:
            return True
        _require_sm(kind)
        return False

    def _green_context(self, handle: CUgreenCtx) -> Context:
        context = self._state.handles.green.get(int(handle))
        if context is None:
            raise invalid_handle(f"invalid resource handle: {int(handle):#x} is no green context")
        return self._state.handles.usable(context)

    @call
    def cuDevSmResourceSplit(
        self,
        nb_groups: int,
        input: CUdevResource | None,
        flags: int,
        group_params: Sequence[GroupParams] | None,
        /,
    ) -> tuple[CUresult, list[CUdevResource], CUdevResource]:
        """Divide multiprocessors into groups, and a rest that may be divided again.

        A group without a given count gets all that are left, and its count is written back.
        """
        groups, remainder = _groups(self._state, nb_groups, input, flags, group_params)
        if any(not group.count for group in groups):
            raise _rejection("there are no multiprocessors left for a group")
        device = self._state.devices.at(remainder.ordinal)
        return SUCCESS, [group.native(device) for group in groups], remainder.native(device)


class GroupCountCalls(DriverCalls):
    """Counts without groups, which only callers from C can request."""

    @call
    def cuDevSmResourceSplit(
        self,
        nb_groups: int,
        input: CUdevResource | None,
        flags: int,
        group_params: Sequence[GroupParams] | None,
        /,
    ) -> tuple[CUresult]:
        """Write the counts into the parameters; unlike those of groups, a count may be 0."""
        _groups(self._state, nb_groups, input, flags, group_params)
        return (SUCCESS,)


def _groups(
    state: DriverState,
    count: int,
    resource: CUdevResource | None,
    flags: int,
    params: Sequence[GroupParams] | None,
) -> tuple[list[SmRange], SmRange]:
    """Return the groups and the rest of a division, and write the counts into the parameters."""
    available = SmRange.read(resource)
    if flags or not params or not 0 < count <= len(params):
        raise invalid_value(f"{count} groups with flags {flags:#x}: give one or more, and 0")
    if not available.is_whole:
        raise _rejection("a group is divided once a green context has it")
    step = steps(state.devices.at(available.ordinal), ignore=False)[1]
    groups: list[SmRange] = []
    remainder = available
    for group in params[:count]:
        size = _size_of(group, step, remainder.count)
        group.smCount = size
        groups.append(replace(remainder, count=size, part=_OF_GROUPS, is_whole=False))
        remainder = replace(remainder, start=remainder.start + size, count=remainder.count - size)
    return groups, remainder


def _require_sm(kind: CUdevResourceType) -> None:
    if int(kind) != _SM:
        raise CallError(
            CUresult.CUDA_ERROR_INVALID_RESOURCE_TYPE,
            f"the emulator has multiprocessors as a resource, and not type {int(kind)}",
        )


def _size_of(params: GroupParams, step: int, available: int) -> int:
    """Return how many multiprocessors a group has."""
    together, size = int(params.coscheduledSmCount) or step, int(params.smCount)
    if int(params.flags) & ~_BACKFILL:
        raise CallError(
            CUresult.CUDA_ERROR_NOT_SUPPORTED,
            f"the emulator makes groups by flags 0 and 1, not {int(params.flags):#x}: its devices "
            "are one locality domain",
        )
    if together % _EVEN:
        raise _rejection(f"{together} multiprocessors together: an even number will do")
    unit = _EVEN if int(params.flags) & _BACKFILL else together
    if not size:
        largest = available // unit * unit
        return largest if largest >= together else 0
    if size % unit or size > available or size < together:
        raise _rejection(
            f"a group of {size} multiprocessors, {together} of them together, of {available} that "
            f"are left: a multiple of {unit} will do"
        )
    return size


def _rejection(text: str) -> CallError:
    return CallError(CUresult.CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, text)
