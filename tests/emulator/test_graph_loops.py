"""Loops of graphs that no kernel ends: told, where a GPU would go on for ever."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig, emulator
from cudadrv.emulator import Limits
from cudadrv.emulator.timeline.schedule import OrderName
from cudadrv.errors import LaunchTimeoutError

COUNT_DOWN = """
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);
extern "C" __global__ void next(unsigned long long handle, int* left) {
    *left -= 1;
    cudaGraphSetConditional(handle, *left > 0);
}
"""
ORDERS: tuple[OrderName, ...] = ("immediate", "late")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("runs", "ends"), [(45, True), (55, False)])
def test_a_loop_ends_or_is_reported_as_endless(order: OrderName, runs: int, ends: bool) -> None:
    with emulator.session(limits=Limits(max_steps=1000), order=order):
        context = cudadrv.cuda_context_for(0)
        stream = context.new_stream()
        left = stream.to_device(np.array([runs], np.int32))
        stream.synchronize()
        graph = context.new_graph()
        condition = graph.new_condition(default=1)
        kernel = context.compile(COUNT_DOWN).kernel("next")
        loop = graph.add_while(condition)
        loop.body.add_kernel(kernel, LaunchConfig(1, 1), condition, left)
        executable = graph.instantiate()
        if ends:
            executable.launch(stream)
            assert stream.to_host(left).tolist() == [0]
            return
        with pytest.raises(LaunchTimeoutError, match="has not ended after 50 runs of its body"):
            executable.launch(stream)
            stream.synchronize()


@pytest.mark.slow
def test_a_condition_goes_with_its_graph_and_what_was_made_of_that() -> None:
    with emulator.session() as machine:
        context = cudadrv.cuda_context_for(0)
        stream = context.new_stream()
        array = stream.zeros(1, "u4")
        graph = context.new_graph()
        for value in (7, 8):
            graph.add_if(graph.new_condition(1)).body.add_fill(array, value)
        graph.new_condition()  # for which no node comes
        executable = graph.instantiate()
        assert machine.live_objects()["condition"] == 3
        graph.close()
        gc.collect()
        executable.launch(stream)
        assert stream.to_host(array)[0] in (7, 8)
        executable.close()
        stream.synchronize()
        del graph, executable
        gc.collect()
        assert machine.live_objects()["condition"] == 0
