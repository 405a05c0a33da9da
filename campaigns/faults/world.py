"""What the scenarios of a case share: streams on two devices of an emulator."""

from __future__ import annotations

import gc
from functools import cached_property

import numpy as np
import numpy.typing as npt

import cudadrv
from cudadrv import Context, Stream, emulator
from cudadrv.driver import deferred_release
from cudadrv.emulator.calls.call import state_of
from cudadrv.memory.array import AnyDeviceArray


class WrongValueError(Exception):
    """A call gave what it should not."""


class World:
    """Two streams on the first device and one on the second, made when they are first used.

    Attributes:
        machine: the emulator.
        said: what the library says of failures where it is asked.
        result: what a captured graph writes.
    """

    result: AnyDeviceArray | None = None

    def __init__(self, machine: emulator.Emulator) -> None:
        self.machine = machine
        self.said: list[str] = []

    @property
    def near(self) -> Context:
        """The primary context of the first device."""
        return cudadrv.cuda_context_for(0)

    @cached_property
    def a(self) -> Stream:
        """A stream of the first device."""
        return self.near.new_stream()

    @cached_property
    def b(self) -> Stream:
        """Another one."""
        return self.near.new_stream()

    @cached_property
    def far(self) -> Stream:
        """A stream of the second device."""
        return cudadrv.cuda_context_for(1).new_stream()

    def expect(self, stream: Stream, array: AnyDeviceArray, value: npt.ArrayLike) -> None:
        """Read an array on a stream, and compare."""
        expect(stream.to_host(array), value)

    def close(self) -> None:
        """Give the streams up."""
        self.result = None
        for stream in ("a", "b", "far"):
            if stream in vars(self):
                getattr(self, stream).close()


def expect(found: object, value: npt.ArrayLike) -> None:
    """Raise unless what was found is the value, in each element."""
    if not np.array_equal(np.asarray(found), np.broadcast_to(value, np.asarray(found).shape)):
        raise WrongValueError(f"found {found!r}, expected {value!r}")


def leftovers(machine: emulator.Emulator) -> dict[str, int]:
    """How much of each kind the driver has, and what waits to be dropped."""
    for _ in range(2):
        gc.collect()
        deferred_release.run_deferred()
    state = state_of(machine)
    return {
        "contexts": len(state.handles.contexts),
        "streams": len(state.handles.streams),
        "events": len(state.handles.events),
        "graphs": len(state.handles.graphs),
        "executables": len(state.handles.executables),
        "modules": len(state.handles.modules),
        "user objects": len(state.handles.user_objects),
        "arrays": len(state.handles.arrays) + len(state.handles.mipmapped_arrays),
        "textures": sum(
            len(device.model.textures) + len(device.model.surfaces)
            for device in state.devices.visible
        ),
        "memory": sum(len(device.pieces) for device in state.devices.visible),
        "mapped memory": len(state.memory.physical) + len(state.memory.multicasts),
        "external resources": len(state.handles.external_memory)
        + len(state.handles.external_semaphores),
        "host memory": len(state.memory.host.pieces),
        "captures": len(state.captures.active),
        "put off": len(deferred_release._rejected)
        + len(deferred_release._parked)
        + len(deferred_release._cells),
    }
