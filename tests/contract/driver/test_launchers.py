"""Launchers skip every look at stream and module; a close or a capture takes that away again."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import cast

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig, emulator
from cudadrv.errors import ClosedError
from cudadrv.launch.launcher import LauncherState
from tests.bump_kernel import PTX
from tests.noted_calls import replaced_calls

ONE = LaunchConfig(1, 1)


@pytest.fixture
def machine() -> Iterator[emulator.Emulator]:
    with emulator.session(devices=2) as machine:
        yield machine


def test_a_launch_prepared_in_a_capture_is_noted_there(machine: emulator.Emulator) -> None:
    context = cudadrv.cuda_context_for(0)
    stream, other = context.new_stream(), context.new_stream()
    launcher = context.load_module(PTX).kernel("bump").bind(stream, ONE)
    x = stream.zeros(1, np.uint32)
    with stream.capture() as graph:
        prepared = launcher.prepare(x)
        prepared()
    executable = graph.instantiate()
    used = cudadrv.memory.pool_info(context.device).used
    address = x.ptr
    del x, prepared, launcher
    assert cudadrv.memory.pool_info(context.device).used == used  # the graph has it
    executable.launch(other)
    again = stream.empty(1, np.uint32)
    assert again.ptr != address


def test_captures_leave_a_launcher_as_small_as_it_was(machine: emulator.Emulator) -> None:
    context = cudadrv.cuda_context_for(0)
    stream = context.new_stream()
    launcher = context.load_module(PTX).kernel("bump").bind(stream, ONE)
    x = stream.zeros(1, np.uint32)
    sizes = set()
    for _ in range(5):
        for _ in range(3):
            launcher(x)
        sizes.add(len(cast(FunctionType, launcher).__globals__))
        with stream.capture():
            launcher(x)
    assert len(sizes) == 1
    assert stream.to_host(x).tolist() == [15]


@pytest.mark.parametrize("closes", ["stream", "module"])
def test_what_is_closed_while_a_launch_ends_is_released(
    machine: emulator.Emulator, closes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = cudadrv.cuda_context_for(0)
    stream, module = context.new_stream(), context.load_module(PTX)
    launcher = module.kernel("bump").bind(stream, ONE)
    x = context.default_stream.zeros(1, np.uint32)
    before = machine.live_objects()
    launcher(x)
    is_quick = LauncherState._is_quick
    closers: list[threading.Thread] = []

    def close_meanwhile(state: LauncherState) -> bool:
        found = is_quick(state)
        if not closers:
            things = {"stream": stream, "module": module}
            closers.append(threading.Thread(target=things[closes].close))
            closers[0].start()
            closers[0].join()
        return found

    monkeypatch.setattr(LauncherState, "_is_quick", close_meanwhile)
    launcher(x)
    with pytest.raises(ClosedError):
        launcher(x)
    x.close()
    left = machine.live_objects()
    assert {kind for kind in ("stream", "module") if left[kind] < before[kind]} == {closes}


def test_a_launch_under_way_holds_what_is_closed_no_longer(machine: emulator.Emulator) -> None:
    context = cudadrv.cuda_context_for(0)
    stream = context.new_stream()
    launcher = context.load_module(PTX).kernel("bump").bind(stream, ONE)
    x = stream.zeros(1, np.uint32)
    for _ in range(3):
        launcher(x)
    streams = machine.live_objects()["stream"]
    scope = cast(FunctionType, launcher).__globals__
    block = scope["pop_1"]()  # as a launch does
    stream.close()
    scope["push_1"](block)
    x.close()
    del block, x
    assert machine.live_objects()["stream"] == streams - 1


@pytest.mark.parametrize(
    "function", ["cuFuncGetAttribute", "cuOccupancyMaxActiveBlocksPerMultiprocessor"]
)
def test_a_module_closed_during_a_call_about_its_kernel_stays_until_the_call_is_done(
    machine: emulator.Emulator, function: str
) -> None:
    module = cudadrv.cuda_context_for(0).load_module(PTX)
    kernel = module.kernel("bump")
    called = getattr(machine, function)
    order: list[str] = []

    def call(*args: object) -> object:
        module.close()
        order.append("asked")
        return called(*args)

    machine.on_call("cuModuleUnload", lambda: order.append("unloaded"))
    # The error is that of the next call of those that the answer needs.
    with replaced_calls(**{function: call}), contextlib.suppress(ClosedError):
        kernel.attributes.registers if "Attribute" in function else kernel.max_active_blocks(32)
    assert order == ["asked", "unloaded"]


@pytest.mark.parametrize("by_kernel", [True, False])
@pytest.mark.parametrize("launches_before", [0, 3])
def test_a_launcher_that_is_dropped_and_collected_while_it_launches_ends_the_launch(
    machine: emulator.Emulator, by_kernel: bool, launches_before: int
) -> None:
    launches = 0
    call: Callable[..., object] = machine.cuLaunchKernelEx

    def drop_at_last(*args: object) -> object:
        nonlocal launches
        launches += 1
        if launches > launches_before:
            launchers.clear()
            stream.close()  # the kernel forgets its launcher
            gc.collect()
        return call(*args)

    context = cudadrv.cuda_context_for(0)
    stream = context.new_stream()
    x = stream.zeros(1, np.uint32)
    kernel = context.load_module(PTX).kernel("bump")
    with replaced_calls(cuLaunchKernelEx=drop_at_last):  # launchers keep it
        launchers = [] if by_kernel else [kernel.bind(stream, ONE)]
        for _ in range(launches_before + 1):
            if by_kernel:
                kernel.launch(stream, ONE, x)
            else:
                launchers[0](x)
    assert launches == launches_before + 1
    assert context.default_stream.to_host(x)[0] == launches


PAIR = """
.version 7.8
.target sm_75
.address_size 64
.visible .entry put(.param .u64 p, .param .u32 v, .param .f32 f) {
  .reg .u64 %a; .reg .u32 %v;
  ld.param.u64 %a, [p]; ld.param.u32 %v, [v];
  cvta.to.global.u64 %a, %a; red.global.add.u32 [%a], %v; ret;
}
"""


@pytest.mark.parametrize("launches", [0, 1, 2, 3])
def test_a_first_launch_checks_its_arguments_after_those_of_other_launchers(
    machine: emulator.Emulator, launches: int
) -> None:
    """A further launcher packs by code for the kinds of the kernel's last arguments."""
    context = cudadrv.cuda_context_for(0)
    stream, other = context.new_stream(), context.new_stream()
    kernel = context.load_module(PAIR).kernel("put")
    x, closed = stream.zeros(1, np.uint32), stream.zeros(1, np.uint32)
    closed.close()
    for _ in range(launches):
        kernel.bind(stream, ONE)(x, 1, 1.5)
    far = cudadrv.cuda_context_for(1).default_stream.zeros(1, np.uint32)
    wrong: list[tuple[tuple[object, ...], type[Exception]]] = [
        ((closed, 1, 1.5), ClosedError),
        ((far, 1, 1.5), cudadrv.errors.WrongDeviceError),
        ((x, 1), cudadrv.errors.ArgumentError),
        ((x, 1, 1.5, 2), cudadrv.errors.ArgumentError),
        ((x, 1 << 32, 1.5), cudadrv.errors.ArgumentError),
        ((x, 1.0, 1.5), cudadrv.errors.ArgumentError),
        ((x, True, 1.5), cudadrv.errors.ArgumentError),
        ((x, 1, 1e40), cudadrv.errors.ArgumentError),
        ((np.zeros(1, np.uint32), 1, 1.5), cudadrv.errors.ArgumentError),
    ]
    for args, error in wrong:
        with pytest.raises(error):
            kernel.bind(stream, ONE)(*args)
    other.fill(x, 10)
    kernel.bind(stream, ONE)(x, np.uint32(4), np.float32(1))  # waits for the fill, on `other`
    kernel.bind(other, ONE)(x, 1, 1)
    kernel.bind(stream, ONE)(cudadrv.launch.InOut(np.zeros(1, np.uint32)), 1, 1.5)
    with stream.capture() as graph:
        kernel.bind(stream, ONE)(x, 1, 1.5)
    graph.instantiate().launch(stream)
    assert stream.to_host(x).tolist() == [16]
