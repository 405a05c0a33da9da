"""C code that holds the interpreter lock, and waits for its own thread, which calls the driver."""

from __future__ import annotations

import platform
import re
from pathlib import Path
from typing import Final

import pytest

from cudadrv.emulator.shared_libraries.lock_wait_code import SOURCE
from tests.emulator.kernels import SPIN
from tools.compile_lock_wait import source_digest

from .native import HERE, compiled
from .process import HEADER, run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="needs x86-64"),
]
PROGRAM: Final = (
    f"""
import ctypes as C, threading
from functools import partial
PTX = {HEADER + SPIN!r}.encode()
"""
    + """
cuda = C.CDLL("libcuda.so.1")
locked = C.PyDLL(LIBRARY)  # its calls keep the interpreter lock
context, module, memory = C.c_void_p(), C.c_void_p(), C.c_void_p()
current, popped, kernel = C.c_void_p(), C.c_void_p(), C.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(C.byref(context), 0) == 0
at = C.addressof

def waited(way, *calls, count=0):
    functions = (C.c_void_p * len(calls))(*(C.cast(each[0], C.c_void_p).value for each in calls))
    arguments = ((C.c_long * 6) * len(calls))()
    for place, (_, *values) in enumerate(calls):
        for position, value in enumerate(values):
            arguments[place][position] = value
    assert locked.begin_calls(functions, arguments, C.c_long(len(calls))) == 0
    for number in range(count):  # so that a call has begun
        count += number
    return locked.wait_for_calls(way)

WAYS = {"join": 0, "semaphore": 1, "condition": 2, "poll": 3, "read": 4, "sleep": 5, "spin": 6}
CALLS = [
    (cuda.cuCtxPushCurrent_v2, context.value), (cuda.cuCtxGetCurrent, at(current)),
    (cuda.cuModuleLoadData, at(module), C.cast(PTX, C.c_void_p).value),
    (cuda.cuMemAlloc_v2, at(memory), 64), (cuda.cuCtxPopCurrent_v2, at(popped)),
]
"""
)
WAITS: Final = (
    PROGRAM
    + """
for name in ("join", "semaphore", "condition", "poll", "read", "sleep"):
    results = []
    for in_thread in (False, True):
        current.value = popped.value = None
        run = lambda: results.append(waited(WAYS[name], *CALLS))
        if in_thread:
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
        else:
            run()
        results.append(current.value == popped.value == context.value)
    print(name, *results, flush=True)
for count in (1000, 300_000, 1_000_000):
    print("within a call", waited(WAYS["join"], *CALLS * 300, count=count), flush=True)
"""
)
ENDS: Final = (
    PROGRAM
    + """
print("begins", flush=True)
waited(WAYS["spin"], (cuda.cuCtxGetCurrent, at(current)))
print("not reached")
"""
)
ENDS_WITHIN_A_CALL: Final = (
    PROGRAM
    + """
print("begins", flush=True)
waited(WAYS["spin"], *CALLS * 3000, count=1_000_000)
print("not reached")
"""
)


def _run(folder: Path, program: str, names: dict[str, str] | None = None) -> tuple[int, str, str]:
    library = compiled(folder, HERE / "waiting_calls.c")
    script = program.replace("LIBRARY", repr(str(library)))
    ended = run("-m", "cudadrv", "emulate", "python", "-c", script, names=names)
    return ended.status, ended.out, ended.err


def test_calls_go_on_while_c_code_holds_the_lock_and_sleeps(tmp_path: Path) -> None:
    ways = ("join", "semaphore", "condition", "poll", "read", "sleep")
    status, out, err = _run(tmp_path, WAITS)
    results = [f"{way} 0 True 0 True" for way in ways] + ["within a call 0"] * 3
    assert out.splitlines() == results, err
    assert (status, err) == (0, "")


def test_a_process_that_holds_the_lock_without_sleeping_ends_with_a_status(tmp_path: Path) -> None:
    status, out, err = _run(tmp_path, ENDS, {"CUDADRV_EMULATOR_LOCK_SECONDS": "1"})
    assert (status, out) == (68, "begins\n")
    line = r"cudadrv: thread \d+ has waited 1 s for Python's interpreter lock, to call "
    assert re.match(line + r"cuCtxGetCurrent: the process ends with status 68\n", err), err


def test_a_process_that_spins_with_the_lock_within_a_call_ends_with_a_status(
    tmp_path: Path,
) -> None:
    status, out, err = _run(tmp_path, ENDS_WITHIN_A_CALL, {"CUDADRV_EMULATOR_LOCK_SECONDS": "2"})
    assert (status, out) == (68, "begins\n")
    line = r"cudadrv: thread \d+ has waited 2 s for Python's interpreter lock, to call "
    assert re.match(line + r"cu\w+: the process ends with status 68\n", err), err


def test_the_code_is_that_of_its_source() -> None:
    assert source_digest() == SOURCE
