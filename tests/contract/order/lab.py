"""Where programs run: the devices' contexts, the kernels, and what a program must not leave.

On the emulator each lab has a fresh one, because a fault spoils an emulated device for good.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import Final, Self

import cudadrv
from cudadrv import emulator

from .late_kernels import LateKernels, late_cycles

POOL_SLACK: Final = 2 << 20
"""What a real driver may keep in use for itself."""


class Unraisable:
    """Collects what finalizers, callbacks and threads of the driver could not raise."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def take(self) -> list[str]:
        """What there was since the last time."""
        texts, self._texts = self._texts, []
        return texts

    def __call__(self, caught: sys.UnraisableHookArgs) -> None:
        """Remember the words alone: the objects would come to life again."""
        kind = caught.exc_type.__name__
        where = "".join(traceback.format_tb(caught.exc_traceback))
        self._texts.append(f"unraisable {kind}: {caught.exc_value} ({caught.err_msg})\n{where}")


@contextlib.contextmanager
def unraisable_collected() -> Iterator[Unraisable]:
    """`sys.unraisablehook` collects in the block."""
    former = sys.unraisablehook
    hook = sys.unraisablehook = Unraisable()
    try:
        yield hook
    finally:
        sys.unraisablehook = former


def used_bytes() -> list[int]:
    """What each device's pool has given out."""
    return [cudadrv.memory.pool_info(device).used for device in cudadrv.list_devices()]


class Lab:
    """Contexts and kernels of the devices, and the accounts of their memory.

    Attributes:
        contexts: the primary context of the first device, and of the second if there is one.
        kernels: the late kernels on each.
        is_emulated: whether this is the emulator.
        unraisable: what could not be raised.
    """

    def __init__(self) -> None:
        self._closing = contextlib.ExitStack()
        self._emulators = contextlib.ExitStack()
        self.is_emulated = False
        self._emulator: emulator.Emulator | None = None
        self.contexts: list[cudadrv.Context] = []
        self.kernels: list[LateKernels] = []
        self.unraisable = Unraisable()
        self._start: list[int] = []

    def __enter__(self) -> Self:
        self.is_emulated = cudadrv.list_devices()[0].is_emulated
        self.unraisable = self._closing.enter_context(unraisable_collected())
        # What there is already is no garbage: leaving it out makes a collection a thousand times
        # as fast.
        gc.collect()
        gc.freeze()
        self._closing.callback(self._emulators.close)
        self._furnish()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.contexts.clear()
        self.kernels.clear()
        gc.collect()
        self._closing.close()

    def renew(self) -> bool:
        """A fresh emulator after a fault; False on a device, which nothing brings back."""
        if not self.is_emulated:
            return False
        self.contexts.clear()
        self.kernels.clear()
        self._emulators.close()
        self._furnish()
        return True

    def settle(self) -> None:
        """Give back what is dropped, and wait for all work of the contexts.

        What a closed context still does nobody can wait for; it takes a moment, or the emulator is
        told to end it.
        """
        gc.collect()
        if self._emulator is not None:
            self._emulator.finish()
        for context in self.contexts:
            context.synchronize()

    def leftovers(self) -> list[int]:
        """Bytes more than at the start that each device's pool has given out, once settled."""
        return [now - then for now, then in zip(used_bytes(), self._start, strict=True)]

    def forgive(self) -> None:
        """Count from now on."""
        self._start = used_bytes()

    def _furnish(self) -> None:
        count = min(len(cudadrv.list_devices()), 2)
        if self.is_emulated:
            self._emulator = self._emulators.enter_context(emulator.session(devices=count))
        self.contexts += [cudadrv.cuda_context_for(ordinal) for ordinal in range(count)]
        self.contexts[0].bind()
        for context in self.contexts:
            self.kernels.append(LateKernels(context, late_cycles(context)))
        self.settle()
        self.forgive()
