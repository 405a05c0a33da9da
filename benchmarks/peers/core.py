"""cuda.core."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

import cudadrv

from ..kernels import BLOCK, FIVE_IN_PTX, GRID
from ..setting import Setting
from ..timing import Case

NAME = "cuda.core"


# Not every version of the library has type stubs.
def _device() -> tuple[Any, Any]:
    core = importlib.import_module("cuda.core")
    device = core.Device(0)
    device.set_current()
    return core, device


def launch(setting: Setting) -> list[Case]:
    """``launch(stream, config, kernel, *args)`` with buffers and NumPy scalars."""
    core, _ = _device()
    return [_launch_case(core.ObjectCode.from_cubin(bytes(setting.kernels.image)))]


def launch_in_a_thread() -> Case:
    """The same launch for the calling thread: kernel, stream and arguments are its own."""
    core, _ = _device()
    return _launch_case(core.ObjectCode.from_ptx(FIVE_IN_PTX.encode()))


def _launch_case(code: Any) -> Case:
    core, device = _device()
    stream = device.create_stream()
    names = {
        "launch": core.launch,
        "stream": stream,
        "config": core.LaunchConfig(grid=GRID, block=BLOCK),
        "kernel": code.get_kernel("k5"),
        "x": np.float32(1.5),
        "n": np.int32(100),
    }
    names |= {name: device.allocate(1024, stream=stream) for name in "abc"}
    return Case(f"{NAME} launch", "launch(stream, config, kernel, a, b, c, x, n)", names)


def given_to_cudadrv(setting: Setting, stream: cudadrv.Stream) -> list[Case]:
    """Its buffers, given to a launcher of cudadrv."""
    _, device = _device()
    theirs = device.create_stream()
    a, b, c = (device.allocate(1024, stream=theirs) for _ in "abc")
    return [setting.given(stream, f"{NAME} buffers", (a, b, c))]


def allocation(setting: Setting) -> list[Case]:
    """A buffer of the device's memory resource, made and closed."""
    _, device = _device()
    names = {"allocate": device.allocate, "stream": device.create_stream()}
    return [Case(f"{NAME} Buffer", "allocate(1024, stream=stream).close()", names)]


def copies(
    setting: Setting,
    pairs: Sequence[tuple[cudadrv.DeviceArray[Any], cudadrv.DeviceArray[Any]]],
) -> list[Case]:
    """Buffers on the same memory, copied one by one and in a batch."""
    core, device = _device()
    buffer = core.Buffer.from_handle
    buffers = [
        (buffer(to.ptr, to.nbytes), buffer(source.ptr, source.nbytes)) for to, source in pairs
    ]
    names = {
        "stream": device.create_stream(),
        "pairs": buffers,
        "copy_batch": importlib.import_module("cuda.core.utils").copy_batch,
        "targets": [to for to, _ in buffers],
        "sources": [source for _, source in buffers],
    }
    return [
        Case(f"{NAME} Buffer.copy_to", "for to, of in pairs: of.copy_to(to, stream=stream)", names),
        Case(f"{NAME} copy_batch", "copy_batch(stream, sources, targets)", names),
    ]


def exported(setting: Setting) -> Any:
    """A buffer of 1 KiB."""
    _, device = _device()
    return device.allocate(1024, stream=device.create_stream())


def viewed(setting: Setting, what: object) -> list[Case]:
    """A view of an array of another library, by DLPack."""
    view = importlib.import_module("cuda.core.utils").StridedMemoryView.from_dlpack
    return [Case(f"{NAME} StridedMemoryView", "view(x, -1)", {"view": view, "x": what})]


def operation(setting: Setting, case: str) -> list[Case]:
    """The same operation on events and streams, where the library has it."""
    statement = _OPERATIONS.get(case)
    if statement is None:
        return []
    core, device = _device()
    stream, other = device.create_stream(), device.create_stream()
    names = {
        "create_stream": device.create_stream,
        "event": stream.record(),
        "options": core.EventOptions(**_TIMED),
        "other": other,
        "stream": stream,
    }
    return [Case(NAME, statement, names)]


# The option was renamed.
_TIMED = {"timing_enabled": True}
_OPERATIONS = {
    "event recorded, waited for and closed": "e = stream.record(); e.sync(); e.close()",
    "two events of one stream, and the time between them": (
        "a = stream.record(options=options); b = stream.record(options=options); b.sync(); b - a;"
        " a.close(); b.close()"
    ),
    "event recorded again": "stream.record(event)",
    "event queried": "event.is_done",
    "wait for an event": "stream.wait(event)",
    "wait for a stream": "stream.wait(other)",
    "stream made and closed": "create_stream().close()",
    "stream waited for": "stream.sync()",
}
