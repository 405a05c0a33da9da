"""Threads that C makes: the driver's state belongs to the native thread, until its end."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from .native import HERE, calling, compiled
from .process import run, run_program

_PREPARED = """
stand_in(devices=2)
cuda = C.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
contexts = [C.c_void_p(), C.c_void_p()]
for ordinal, context in enumerate(contexts):
    assert cuda.cuDevicePrimaryCtxRetain(C.byref(context), ordinal) == 0
first, second = (context.value for context in contexts)
NOT_SET = 0x5A5A

def slots(count):
    return [C.c_void_p(NOT_SET) for _ in range(count)]

def values(slots):
    names = {None: "none", first: "first", second: "second", NOT_SET: "not set"}
    return [names.get(slot.value, slot.value) for slot in slots]
"""


def _lines(folder: Path, program: str) -> list[str]:
    return run_program(calling(folder) + _PREPARED + textwrap.dedent(program)).splitlines()


@pytest.mark.slow
def test_a_native_thread_has_its_contexts_at_each_call(tmp_path: Path) -> None:
    assert _lines(
        tmp_path,
        """
        a, b, c, popped, e, device = slots(6)
        print(in_threads([
            (cuda.cuCtxGetCurrent, a),
            (cuda.cuCtxPushCurrent_v2, first), (cuda.cuCtxPushCurrent_v2, second),
            (cuda.cuCtxGetCurrent, b), (cuda.cuCtxGetDevice, device),
            (cuda.cuCtxPopCurrent_v2, popped), (cuda.cuCtxGetCurrent, c),
            (cuda.cuCtxSetCurrent, 0), (cuda.cuCtxGetCurrent, e),
        ]))
        print(values([a, b, popped, c, e]), device.value & 0xFF)
    """,
    ) == ["[[0, 0, 0, 0, 0, 0, 0, 0, 0]]", "['none', 'second', 'second', 'first', 'none'] 1"]


@pytest.mark.slow
def test_a_thread_that_gets_the_identifier_of_an_ended_one_begins_without_a_context(
    tmp_path: Path,
) -> None:
    # The system gives the stack, and so the identifier, of an ended thread to the next one.
    assert _lines(
        tmp_path,
        """
        identifier = C.CDLL(None).pthread_self
        found, same = slots(20), 0
        threads = [
            [(cuda.cuCtxGetCurrent, slot), (cuda.cuCtxSetCurrent, first), (identifier,)]
            for slot in found]
        results = in_threads(*threads)
        print(set(values(found)), len({result[2] for result in results}) < 20)
    """,
    ) == ["{'none'} True"]


@pytest.mark.slow
def test_threads_that_run_together_have_contexts_of_their_own(tmp_path: Path) -> None:
    assert _lines(
        tmp_path,
        """
        found = slots(600)
        threads = []
        for number in range(6):
            own = contexts[number % 2].value
            calls = [(cuda.cuCtxSetCurrent, own)]
            calls += [(cuda.cuCtxGetCurrent, found[100 * number + i]) for i in range(100)]
            threads.append(calls)
        results = in_threads(*threads, together=True)
        print({code for result in results for code in result})
        print([set(values(found[100 * n:100 * n + 100])) for n in range(6)])
    """,
    ) == ["{0}", str([{"first"}, {"second"}] * 3)]


@pytest.mark.slow
def test_a_native_thread_keeps_its_capture_mode_and_its_own_stream(tmp_path: Path) -> None:
    assert _lines(
        tmp_path,
        """
        modes, streams = [C.c_int(2), C.c_int(0), C.c_int(0)], [C.c_uint64() for _ in range(2)]
        memory = C.c_uint64()
        print(in_threads([
            (cuda.cuThreadExchangeStreamCaptureMode, modes[0]),
            (cuda.cuThreadExchangeStreamCaptureMode, modes[1]),
            (cuda.cuCtxSetCurrent, first),
            (cuda.cuMemAlloc_v2, memory, 64),
            (cuda.cuStreamGetId, 2, streams[0]), (cuda.cuStreamGetId, 2, streams[1]),
            (cuda.cuMemsetD8_v2_ptds, memory.value, 1, 0),
        ]))
        print([mode.value for mode in modes[:2]], streams[0].value == streams[1].value)
        in_threads([(cuda.cuThreadExchangeStreamCaptureMode, modes[2])])
        print("a thread afterwards:", modes[2].value)
    """,
    ) == ["[[0, 0, 0, 0, 0, 0, 0]]", "[0, 2] True", "a thread afterwards: 0"]


@pytest.mark.slow
def test_a_capture_of_a_native_thread_rejects_its_own_unsafe_calls_alone(tmp_path: Path) -> None:
    assert _lines(
        tmp_path,
        """
        stream, graph, memory, other = C.c_void_p(), C.c_void_p(), C.c_uint64(), C.c_uint64()
        assert cuda.cuCtxSetCurrent(contexts[0]) == 0
        assert cuda.cuStreamCreate(C.byref(stream), 1) == 0
        begin = (cuda.cuStreamBeginCapture_v2, stream.value, 1)  # of this thread
        unsafe = (cuda.cuMemAlloc_v2, memory, 64)
        print(in_threads(
            [(cuda.cuCtxSetCurrent, first), begin],
            [(cuda.cuCtxSetCurrent, first), (cuda.cuMemAlloc_v2, other, 64)]))
        end = (cuda.cuStreamEndCapture, stream.value, graph)
        print(in_threads([(cuda.cuCtxSetCurrent, first), end]))
        print(in_threads([(cuda.cuCtxSetCurrent, first), begin, unsafe, end]))
    """,
    ) == [
        "[[0, 0], [0, 0]]",
        "[[0, 908]]",  # CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD
        "[[0, 0, 900, 901]]",
    ]


IN_BACKGROUND = """
import ctypes, sys
library = ctypes.PyDLL({library!r})  # its calls keep the interpreter lock
sys.setswitchinterval(float(sys.argv[2]))
library.begin(int(sys.argv[1]))
import asyncio, inspect, numpy, unittest.mock
total = 0
for number in range(2_000_000):  # until the thread has made its first call
    total += number
print(library.end(int(sys.argv[1]) > 0))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("pause", "interval"), [(0, 0.005), (20, 0.005), (0, 1e-6), (20, 1e-6)])
def test_a_library_may_wait_for_its_thread_that_makes_the_first_calls(
    tmp_path: Path, pause: int, interval: float
) -> None:
    """The short interval is a busy host: the main thread soon has the lock again.

    The main thread imports meanwhile, and both need the locks of modules.
    """
    library = compiled(tmp_path, HERE / "background_start.c")
    program = IN_BACKGROUND.format(library=str(library))
    command = ("-m", "cudadrv", "emulate", "--devices", "3", "python", "-c", program)
    ended = run(*command, str(pause), str(interval))
    assert (ended.status, ended.out, ended.err) == (0, "3\n", "")
