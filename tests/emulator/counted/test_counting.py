"""Which launches count: by block, line, kernel, device and order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

import numpy as np
import pytest
from numpy.typing import NDArray

import cudadrv
import ptx
from cudadrv import emulator
from cudadrv.driver.driver_selection import Driver, set_current
from cudadrv.emulator import Counts, InstructionClass
from cudadrv.errors import DriverSelectionError, KernelNotFoundError
from tests.emulator.counted.one_launch import (
    ELEMENTS,
    count,
    kernel,
)


def test_each_line_has_its_own_conflicts(context: cudadrv.Context) -> None:
    body = "__shared__ float s[4096];\ns[t] = t;\n__syncthreads();\ny[i] = s[32 * t % 4096];"
    counters = count(context, kernel(body), grid=1)
    found = {line.number: c for (_, line), c in counters.lines.items()}
    assert {number for number, c in found.items() if c.shared_loads.conflicts} == {7}
    assert found[7].shared_loads.conflicts == 4 * 31
    assert found[5].shared_stores.requests == 4
    assert sum(found.values(), Counts()) == counters["k"]


def test_launches_add_up_by_kernel(context: cudadrv.Context) -> None:
    source = kernel("y[i] = x[2 * i];", "a") + kernel("y[i] = t;", "b")
    module = context.load_module(ptx.compile(source, ptx.CompileOptions(target=context.target)))
    stream = context.new_stream()
    x, y = (stream.zeros(ELEMENTS, np.float32) for _ in range(2))
    idx = stream.zeros(ELEMENTS, np.int32)
    with emulator.counting() as counters:
        for name in "aba":
            module.kernel(name).launch(stream, cudadrv.LaunchConfig(2, 64), x, y, idx, 0)
        stream.synchronize()
    assert [each.kernel for each in counters.launches] == ["a", "b", "a"]
    assert counters["a"].global_loads.sectors == 2 * 4 * 8
    assert counters.total == counters["a"] + counters["b"]
    assert [*counters.kernels] == ["a", "b"]
    with pytest.raises(KernelNotFoundError, match="no launch of 'c' was counted"):
        counters["c"]
    launch = counters.launches[0]
    assert (launch.grid, launch.block, launch.device) == ((2, 1, 1), (64, 1, 1), 0)
    # Without line information a line is one of PTX.
    assert {line.file for line in launch.lines} == {""}


def test_kernels_are_counted_by_their_name_expressions_and_symbols(
    context: cudadrv.Context,
) -> None:
    source = "template <typename T> __global__ void k(T* x) { *x = 1; }"
    names = ["k<float>", "k<int>"]
    module = context.compile(source, name_expressions=names)
    assert module.image is not None
    symbols = [module.image.lowered_names[name] for name in names]
    stream = context.new_stream()
    x = stream.zeros(1, np.int32)
    with emulator.counting() as counters:
        module.kernel("k<float>").launch(stream, cudadrv.LaunchConfig(1, 1), x.view(np.float32))
        module.kernel(symbols[1]).launch(stream, cudadrv.LaunchConfig(1, 32), x)
    assert [*counters] == [*counters.kernels] == names
    assert {kernel for kernel, _ in counters.lines} == {*names}
    for name, symbol in zip(names, symbols, strict=True):
        assert counters[name] == counters[symbol] == counters.kernels[name]
    assert [each.symbol for each in counters.launches] == symbols
    assert counters["k<float>"].executed.threads < counters["k<int>"].executed.threads


def test_occupancy_is_that_of_the_driver(context: cudadrv.Context) -> None:
    body = "__shared__ float s[8192]; s[t] = x[i]; __syncthreads(); y[i] = s[127 - t];"
    (launch,) = count(context, kernel(body)).launches
    found = launch.occupancy
    # 32 KiB and 1 KiB that the system takes, of 228 KiB.
    assert (found.blocks, found.warps, found.most_warps) == (6, 24, 64)
    assert found.share == 24 / 64


def test_nothing_is_counted_outside_of_the_block(context: cudadrv.Context) -> None:
    source = kernel("y[i] = x[i];")
    module = context.load_module(ptx.compile(source, ptx.CompileOptions(target=context.target)))
    stream = context.new_stream()
    x = stream.zeros(ELEMENTS, np.float32)
    launch = module.kernel("k").launch
    config = cudadrv.LaunchConfig(1, 32)
    launch(stream, config, x, x, 0, 0)
    with emulator.counting() as outer:
        launch(stream, config, x, x, 0, 0)
        with emulator.counting() as inner:
            launch(stream, config, x, x, 0, 0)
    launch(stream, config, x, x, 0, 0)
    assert (len(outer.launches), len(inner.launches)) == (2, 1)


@pytest.mark.parametrize("order", ["late", "random"])
def test_queued_launches_count_where_they_were_queued(order: Literal["late", "random"]) -> None:
    with emulator.session(order=order, seed=5 if order == "random" else None):
        context = cudadrv.cuda_context_for(0)
        source = kernel("__syncthreads(); y[i] = __shfl_sync(~0u, x[2 * i], 3);")
        module = context.load_module(ptx.compile(source, ptx.CompileOptions(target=context.target)))
        stream = context.new_stream()
        x = stream.zeros(ELEMENTS, np.float32)
        y = stream.zeros(ELEMENTS, np.float32)
        launch = module.kernel("k").launch
        launch(stream, cudadrv.LaunchConfig(3, 64), x, y, 0, 0)
        with emulator.counting() as counters:
            launch(stream, cudadrv.LaunchConfig(2, 64), x, y, 0, 0)
        launch(stream, cudadrv.LaunchConfig(3, 64), x, y, 0, 0)
        stream.synchronize()
    (counted,) = counters.launches
    assert counted.grid == (2, 1, 1)
    # The warps run whole, whatever the order.
    assert counted.total.of(InstructionClass.WARP).warps == 4
    assert counted.total.global_loads.sectors == 4 * 8


def test_replays_of_a_graph_and_launches_on_each_device_count() -> None:
    with emulator.session(2), emulator.counting() as counters:
        for ordinal in range(2):
            context = cudadrv.cuda_context_for(ordinal)
            options = ptx.CompileOptions(target=context.target)
            module = context.load_module(ptx.compile(kernel("y[i] = x[i];"), options))
            stream = context.new_stream()
            x = stream.zeros(ELEMENTS, np.float32)
            with stream.capture() as graph:
                module.kernel("k").launch(stream, cudadrv.LaunchConfig(1, 32), x, x, 0, 0)
            executable = graph.instantiate()
            for _ in range(ordinal + 2):
                executable.launch(stream)
            stream.synchronize()
    assert [each.device for each in counters.launches] == [0, 0, 1, 1, 1]


def test_results_are_the_same_with_counting(context: cudadrv.Context) -> None:
    body = "float v = i; for (int k = 0; k < t % 9; k++) { v = v * 1.5f + k;"
    body += " if (k & 1 && t & 2) v = sqrtf(v); } y[i] = v + __shfl_xor_sync(~0u, v, 5);"
    options = ptx.CompileOptions(target=context.target)
    module = context.load_module(ptx.compile(kernel(body), options))
    stream = context.new_stream()
    found: list[NDArray[np.float32]] = []
    for counted in (False, True):
        y = stream.zeros(512, np.float32)
        arguments: Sequence[object] = (y, y, 0, 0)
        if counted:
            with emulator.counting():
                module.kernel("k").launch(stream, cudadrv.LaunchConfig(4, 128), *arguments)
        else:
            module.kernel("k").launch(stream, cudadrv.LaunchConfig(4, 128), *arguments)
        found.append(stream.to_host(y))
    assert np.array_equal(found[0], found[1])


def test_a_launch_that_fails_is_not_counted(context: cudadrv.Context) -> None:
    with emulator.counting() as counters, pytest.raises(cudadrv.CudaError):
        module = context.load_module(
            ptx.compile(kernel("x[1 << 28] = 1;"), ptx.CompileOptions(target=context.target))
        )
        stream = context.new_stream()
        x = stream.zeros(4, np.float32)
        module.kernel("k").launch(stream, cudadrv.LaunchConfig(1, 32), x, x, 0, 0)
        stream.synchronize()
    assert counters.launches == []
    assert counters.total.executed.warps == 0
    # Up to the fault, its store took part.
    (failed,) = counters.failed
    assert (failed.kernel, failed.total.global_stores.requests) == ("k", 1)


def test_counting_on_a_gpu_is_rejected_with_the_way_out() -> None:
    class Gpu:
        is_emulated = False

    former = set_current(cast(Driver, Gpu()))
    try:
        match = "CUDADRV_DRIVER=emulator"
        with pytest.raises(DriverSelectionError, match=match), emulator.counting():
            pass
    finally:
        set_current(former)
