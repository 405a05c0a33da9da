"""A child that is forked while threads of its parent hold locks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import SECONDS

ROOT = Path(__file__).parents[2]

SCRIPT = """
import faulthandler, gc, os, signal, sys, threading, warnings
warnings.simplefilter("ignore")
import numpy as np
import cudadrv
from cudadrv import emulator
from cudadrv.client.cuda_client import registry
from cudadrv.driver import handle, driver_selection
from cudadrv.errors import ForkedProcessError
from cudadrv.memory import order
from cudadrv.memory.staging import LEAST_STAGED_BYTES
from cudadrv.runtime import calibration, probe
from ptx.emulate.exec import collection

ONE = cudadrv.LaunchConfig(1, 1)

cudadrv.client.register_module("bump", 'extern "C" __global__ void bump(unsigned *x) { *x += 1; }')
context = cudadrv.cuda_context_for(0)
stream = context.new_stream()
array = stream.to_device(np.ones(LEAST_STAGED_BYTES, "u1"))  # by helpers, which a child has not
holds = {
    "selection": driver_selection._selection.lock,
    "driver": driver_selection.current().lock,
    "adopting": handle._adopting,
    "moving": order._recording,
    "measuring": calibration._measuring,
    "outcome": probe._cached.lock,
    "modules": registry._entries["bump"].cache._lock,
}

def work():
    try:
        cudadrv.Context.create(1)
        return 3
    except ForkedProcessError:
        pass
    gc.collect()
    with emulator.session(2):
        own = cudadrv.Context.create(1)
        a, b = own.new_stream(), own.new_stream()
        x = a.to_device(np.ones(LEAST_STAGED_BYTES, "u1"))
        b.fill(x, 2)
        if not (a.to_host(x) == 2).all():
            return 4
        own.close()
        client = cudadrv.CudaClient(0)
        cudadrv.GpuRuntime.current()
        with client.stream.capture() as graph:
            pass
        count = client.stream.zeros(1, "u4")
        client.module("bump").kernel("bump").launch(client.stream, ONE, count)
        if client.stream.to_host(count).tolist() != [1]:
            return 6
    gc.collect()
    return 0 if gc.isenabled() else 5

def fork_while_held(held):
    taken, free = threading.Event(), threading.Event()
    def hold():
        with held:
            taken.set()
            free.wait()
    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    sys.stdout.flush()
    child = os.fork()
    if not child:
        faulthandler.dump_traceback_later(120, exit=True)
        code = 9
        try:
            code = work()
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    free.set()
    thread.join()
    return os.waitstatus_to_exitcode(status)

holds["pause"] = collection.collection_paused()
for name, held in holds.items():
    print(name, fork_while_held(held), flush=True)
"""
HELD = {"selection", "driver", "adopting", "moving", "measuring", "outcome", "modules", "pause"}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
def test_a_child_works_whatever_lock_a_thread_of_its_parent_held() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=2 * SECONDS,
        check=False,
    )
    codes = dict(line.split() for line in done.stdout.splitlines())
    assert codes == dict.fromkeys(HELD, "0"), done.stderr[-3000:]


OBJECTS_OF_THE_PARENT = """
import os, sys, warnings
warnings.simplefilter("ignore")
from cudadrv import emulator
from tests.ended_objects import (
    FAIL_ALIVE, OBJECTS, WITHOUT_DRIVER, Lab, differences, outcomes,
)

labs = [Lab(), Lab()]
cached = Lab()
arena, allocator = cached.arena, cached.allocator
arena.release(cached.bucket, cached.slab)
allocator.deallocate(cached.address, 64)

def report(lab):
    found = outcomes(lab, OBJECTS)
    known = {full: error for full, error in found.items() if full not in FAIL_ALIVE}
    print(*differences(known, "ForkedProcessError", answers=WITHOUT_DRIVER), sep="\\n", flush=True)

if os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
for call in (lambda: arena.alloc(cached.stream, 4, "a"), lambda: allocator.allocate(64)):
    try:
        print("handed out", call())
    except Exception as error:
        if type(error).__name__ != "ForkedProcessError":
            print(type(error).__name__)
report(labs[0])
with emulator.session(2):
    report(labs[1])
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
def test_objects_of_the_parent_raise_in_a_child() -> None:
    done = subprocess.run(
        [sys.executable, "-c", OBJECTS_OF_THE_PARENT],
        cwd=ROOT,
        env={**os.environ, "CUDADRV_DRIVER": "emulator:2"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stdout + done.stderr[-3000:]
