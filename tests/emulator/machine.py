"""An emulator in some order, with what its tests queue."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Final

from cudadrv.driver._api import (
    CUdeviceptr,
    CUgraphExec,
    CUstream,
    CUstreamCaptureMode,
)
from cudadrv.emulator import CheckName, Emulator
from cudadrv.emulator.timeline.schedule import OrderName

from .calls import CAPTURE_RELAXED, Parameters, functions, launch, load, ok
from .kernels import FILL, INCREMENT

NON_BLOCKING: Final = 1
BLOCKING: Final = 0
UNTIMED: Final = 2
_Function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Machine:
    """An emulator with a context, two streams, and two kernels."""

    def __init__(
        self, order: OrderName = "late", seed: int | None = None, check: CheckName | None = None
    ) -> None:
        self.api = api = Emulator(2, order=order, seed=seed, check=check)
        ok(api.cuInit(0))
        self.context = ok(api.cuCtxCreate(None, 0, ok(api.cuDeviceGet(0))))
        self.a, self.b = self.stream(), self.stream()
        self.module = load(api, FILL, INCREMENT)
        self._fill, self._increment = functions(api, self.module, "fill", "increment")
        self._functions: list[object] = []

    def stream(self, flags: int = NON_BLOCKING) -> CUstream:
        return ok(self.api.cuStreamCreateWithPriority(flags, 0))

    def memory(self, nbytes: int = 4) -> CUdeviceptr:
        return ok(self.api.cuMemAlloc(nbytes))

    def pinned(self, nbytes: int = 4) -> int:
        return ok(self.api.cuMemHostAlloc(nbytes, 0))

    def fill(self, at: CUdeviceptr, value: int, stream: CUstream) -> None:
        parameters = Parameters(ctypes.c_uint64(int(at)), ctypes.c_uint32(value), ctypes.c_uint8(0))
        ok(launch(self.api, self._fill, parameters, stream=stream))

    def increment(self, at: CUdeviceptr, stream: CUstream) -> None:
        parameters = Parameters(ctypes.c_uint64(int(at)))
        ok(launch(self.api, self._increment, parameters, stream=stream))

    def host_call(self, act: Callable[[object], object], stream: CUstream) -> None:
        found = _Function(act)
        self._functions.append(found)
        address = ctypes.cast(found, ctypes.c_void_p).value or 0
        ok(self.api.cuLaunchHostFunc(stream, address, 0))

    def read(self, at: CUdeviceptr, stream: CUstream) -> int:
        """What is there; from pageable memory of the host, so waited for."""
        word = ctypes.c_uint32()
        ok(self.api.cuMemcpyDtoHAsync(ctypes.addressof(word), at, 4, stream))
        return word.value

    def kernels(self) -> list[str]:
        return [each for each in self.api.executed if "kernel" in each]


def captured(machine: Machine, x: CUdeviceptr) -> CUgraphExec:
    """x = 5 in one branch, x += 1 in another."""
    api = machine.api
    fork, join = ok(api.cuEventCreate(UNTIMED)), ok(api.cuEventCreate(UNTIMED))
    ok(api.cuStreamBeginCapture(machine.a, CUstreamCaptureMode(CAPTURE_RELAXED)))
    ok(api.cuEventRecord(fork, machine.a))
    ok(api.cuStreamWaitEvent(machine.b, fork, 0))
    machine.fill(x, 5, machine.a)
    machine.increment(x, machine.b)
    ok(api.cuEventRecord(join, machine.b))
    ok(api.cuStreamWaitEvent(machine.a, join, 0))
    return ok(api.cuGraphInstantiate(ok(api.cuStreamEndCapture(machine.a)), 0))
