"""An emulated device with the kernels loaded on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

import ptx
from ptx.emulate.count.launch_counts import LaunchCounts
from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.model.geometry import GridCall
from ptx.emulate.model.order import LaunchOrder
from ptx.emulate.program import Program
from ptx.emulate.threads.device_model import DeviceModel
from ptx.emulate.threads.limits import DEFAULT_LIMITS, Limits

from .cases import Argument, Case
from .kernels import SOURCE


class Launch(Protocol):
    """A launch that is ready to be made."""

    def __call__(
        self,
        order: LaunchOrder | None = None,
        limits: Limits = DEFAULT_LIMITS,
        counts: LaunchCounts | None = None,
    ) -> None:
        """Make it."""


class Device:
    """An emulated device and the module under test.

    Args:
        target: such as "compute_90".
        fmad: whether NVRTC may make one rounding of a product and its sum.
        source: the module's text.
    """

    def __init__(self, target: str, *, fmad: bool = True, source: str = SOURCE) -> None:
        options = ptx.CompileOptions(target=ptx.Target.ptx(target), fmad=fmad)
        image = ptx.compile(source, options)
        assert image.ptx is not None
        self.memory = DeviceMemory(1 << 40, 1 << 30)
        self.program = Program(ptx.parse(image.ptx), DeviceModel(self.memory))

    def prepare(self, case: Case) -> tuple[Launch, Callable[[], list[Argument]]]:
        """A call that launches the case, and one that gives its arguments as they are now.

        Raises:
            UnsupportedInstruction: the emulator does not know one of the kernel's.
        """
        kernel = self.program.kernel(case.kernel)
        places = [self._put(one) if isinstance(one, np.ndarray) else one for one in case.arguments]
        each = [_packed([*places, *step]) for step in case.steps]

        def launch(
            order: LaunchOrder | None = None,
            limits: Limits = DEFAULT_LIMITS,
            counts: LaunchCounts | None = None,
        ) -> None:
            for params in each:
                call = GridCall(case.grid, case.block, params, case.shared_bytes)
                kernel.launch(call, order=order, limits=limits, counts=counts)

        def values() -> list[Argument]:
            return [
                self._get(int(place), one) if isinstance(one, np.ndarray) else one
                for place, one in zip(places, case.arguments, strict=True)
            ]

        return launch, values

    def _put(self, array: NDArray[np.generic]) -> np.uint64:
        address = self.memory.allocate(array.nbytes)
        start = address - self.memory.base
        self.memory.mark_written(address, array.nbytes)
        self.memory.data[start : start + array.nbytes] = array.reshape(-1).view(np.uint8)
        return np.uint64(address)

    def _get(self, address: int, like: NDArray[np.generic]) -> NDArray[np.generic]:
        start = address - self.memory.base
        found = self.memory.data[start : start + like.nbytes].copy()
        return found.view(like.dtype).reshape(like.shape)


def _packed(values: Iterable[np.generic]) -> bytes:
    """Values one after another, each aligned to its size as the kernel's parameters are."""
    packed = b""
    for value in values:
        packed += bytes(-len(packed) % value.nbytes) + value.tobytes()
    return packed
