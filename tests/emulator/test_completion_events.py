"""Launch completion events: recorded when all blocks have begun, ahead of the kernel's results."""

from __future__ import annotations

import numpy as np

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.launch import LaunchAttributes

SOURCE = 'extern "C" __global__ void set(int* x) { *x = 7; }'


def test_work_after_the_event_does_not_wait_for_the_kernel() -> None:
    with cudadrv.emulator.session(1, order="late"):
        context = cudadrv.cuda_context_for(0)
        first, second = context.new_stream(), context.new_stream()
        kernel = context.compile(SOURCE).kernel("set")
        event = cudadrv.Event(context, timing=False)
        config = LaunchConfig(1, 1, attributes=LaunchAttributes(completion_event=event))
        with first.unordered(), second.unordered():
            x = first.zeros(1, np.int32)
            first.synchronize()
            kernel.launch(first, config, x)
            second.wait(event)
            seen = second.to_host(x)
        assert seen.tolist() == [0]
        assert first.to_host(x).tolist() == [7]
