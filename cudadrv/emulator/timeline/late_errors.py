"""Errors of operations that fail after their call has returned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...driver._api import CUresult
from ..call_error import CallError, Failure
from ..node_kind import NodeKind

if TYPE_CHECKING:
    from ..contexts import Context
    from .choice import Order
    from .operation import Operation

# The emulator could not do it; the device is as good as before.
_HARMLESS: Final = (CUresult.CUDA_ERROR_NOT_SUPPORTED, CUresult.CUDA_ERROR_OUT_OF_MEMORY)
_QUEUED: Final = "\n  it was queued at "
_CALLS: Final = {
    NodeKind.KERNEL: "cuLaunchKernel",
    NodeKind.COPY: "cuMemcpyAsync",
    NodeKind.SET: "cuMemsetD8Async",
    NodeKind.HOST: "cuLaunchHostFunc",
}


class LateErrors:
    """Faults that break a device, as on a GPU, and refusals for the next call that waits."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._kept: dict[Context, CallError] = {}

    @staticmethod
    def lets_run(operation: Operation) -> bool:
        """Whether the device still runs anything."""
        return operation.stream.context.device.fault is None

    def keep(self, operation: Operation, refusal: CallError) -> None:
        """Let a later call say what went wrong, and where it was queued."""
        context = operation.stream.context
        if _QUEUED in refusal.text:
            return  # another operation's, told already
        text = f"{refusal.text}{_QUEUED}{operation.place or 'an unknown place'}"
        if self._order.name == "random":
            text += f"\n  {self._order.repeated_by}"
        if refusal.code in _HARMLESS:
            self._kept.setdefault(context, CallError(refusal.code, text, refusal.cause))
            return
        code = refusal.code
        if refusal.cause is None:
            # What a call would refuse; queued, it is an access to memory that is gone by now.
            code = CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
        call = _CALLS.get(operation.kind, "a queued operation")
        context.device.fault = Failure(call, code, text, refusal.cause)

    def raise_kept(self, context: Context) -> None:
        """Raise, once, the stored error of a context's work.

        Raises:
            CallError: an operation was not executed.
        """
        kept = self._kept.pop(context, None)
        if kept is not None:
            raise kept
