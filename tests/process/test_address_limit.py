"""A process with a limit of addresses (`ulimit -v`) has smaller emulated devices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import SECONDS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of addresses are Linux's")
SCRIPT = """
import numpy as np
import cudadrv

context = cudadrv.cuda_context_for(0)
stream = context.default_stream
total = context.device.total_memory
n = total // 16
fill = '''extern "C" __global__ void fill(int* x, int n) {
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 256 * gridDim.x) x[i] = i;
}'''
array = stream.empty(n, np.int32)
kernel = context.compile(fill).kernel("fill")
kernel.launch(stream, cudadrv.LaunchConfig(16, 256), array, n)
print(total.bit_count(), total < 16 << 30, int(stream.to_host(array)[-1]) == n - 1)
try:
    stream.empty(1 << 36, np.uint8)
except cudadrv.errors.OutOfMemoryError as error:
    print(f"free of {total}" in str(error))
"""
SESSIONS = """
import gc, resource, sys
import cudadrv
from cudadrv import emulator
from cudadrv.__main__ import main

def limit(free):
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + free, resource.RLIM_INFINITY))

limit(4 << 30)
sizes = set()
for number in range(20):
    with emulator.session(devices=2, check=("race", "init") if number % 2 else ()):
        device = cudadrv.list_devices()[1]
        cudadrv.cuda_context_for(1).default_stream.zeros(1 << 20, "u1")
        sizes.add((number % 2, device.total_memory))
print(len(sizes), min(sizes)[1] > max(sizes)[1])
gc.collect()
limit(24 << 20)
try:
    with emulator.session(check="race"):
        cudadrv.list_devices()
except cudadrv.CudadrvError as error:
    print(type(error).__name__, "ulimit -v" in str(error))
print([main([command, sys.argv[1]]) for command in ("check", "count")])
"""


def run(*arguments: str, limit: int = 0) -> tuple[int, list[str], str]:
    command = [sys.executable, *arguments]
    if limit:
        command = ["/bin/sh", "-c", f'ulimit -v {limit >> 10} && exec "$@"', "sh", *command]
    done = subprocess.run(
        command,
        env={**os.environ, "CUDADRV_DRIVER": "emulator"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.mark.slow
def test_a_script_runs_with_checks_within_the_limit(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    status, lines, errors = run("-m", "cudadrv", "check", str(script), limit=6 << 30)
    assert (status, lines[:2]) == (0, ["1 True True", "True"]), errors


@pytest.mark.slow
def test_sessions_are_fitted_alike_and_the_last_resort_is_a_typed_error(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("print('ran')")
    status, lines, errors = run("-c", SESSIONS, str(script))
    assert lines == ["2 True", "AddressSpaceExhausted True", "[2, 2]"], errors
    assert status == 0
