"""The log of accesses: only those of the block, the warp and the first steps that are wanted."""

from __future__ import annotations

import numpy as np

import cudadrv
import ptx
from cudadrv import emulator
from ptx.emulate.history.access_log import AccessLog

LOOP = """extern "C" __global__ void k(int* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    #pragma unroll 1
    for (int k = 0; k < n; k++) atomicAdd(x + i, k);
}"""


def logged(log: AccessLog, steps: int) -> AccessLog:
    limits = emulator.Limits(watchers=(log.watcher,))
    with emulator.session(order="immediate", limits=limits):
        context = cudadrv.cuda_context_for(0)
        options = ptx.CompileOptions(target=context.target)
        kernel = context.load_module(ptx.compile(LOOP, options)).kernel("k")
        stream = context.default_stream
        x = stream.zeros((2, 96), np.int32)
        kernel.launch(stream, cudadrv.LaunchConfig((1, 2), 96), x, steps)
    return log


def test_only_one_warp_of_one_block_is_logged() -> None:
    log = logged(AccessLog("global", block=(0, 1, 0), warp=2), 1)
    assert {each.where.block for each in log.accesses} == {(0, 1, 0)}
    assert [each.where.thread for each in log.accesses] == [(i, 0, 0) for i in range(64, 96)]


def test_a_warp_of_every_block_is_logged() -> None:
    log = logged(AccessLog("global", warp=0), 1)
    assert {each.where.block for each in log.accesses} == {(0, 0, 0), (0, 1, 0)}
    assert {each.where.thread for each in log.accesses} == {(i, 0, 0) for i in range(32)}


def test_only_the_first_steps_of_an_instruction_are_logged() -> None:
    log = logged(AccessLog("global", block=(0, 0, 0), warp=0, most=3), 9)
    assert len({each.step for each in log.accesses}) == 3
    assert len(log.accesses) == 3 * 32
