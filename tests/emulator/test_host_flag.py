"""A kernel that waits for the host, which goes on while it runs."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import cudadrv
from cudadrv import emulator

WAIT = """
extern "C" __global__ void wait(volatile int* flag, int* turns) {
  while (*flag == 0) {}
  *turns = 1;
}
"""


@pytest.mark.slow
def test_a_wait_for_a_flag_that_the_host_sets_is_not_endless(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ptx.emulate.exec.scheduler._LONG", 1000)  # so that the test is short
    with emulator.session():
        stream = cudadrv.cuda_context_for(0).new_stream()
        kernel = stream.context.compile(WAIT).kernel("wait")
        flag, turns = cudadrv.pinned_empty(1, np.int32), stream.zeros(1, np.int32)
        flag[0] = 0
        timer = threading.Timer(0.6, lambda: flag.__setitem__(0, 1))
        timer.start()
        kernel.launch(stream, cudadrv.LaunchConfig(1, 1), flag, turns)
        assert stream.to_host(turns).tolist() == [1]
        timer.join()
