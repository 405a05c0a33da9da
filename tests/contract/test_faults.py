"""Faults that spoil a process or its driver, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from tests.patience import SECONDS

PRELUDE = """
import os, sys, threading
import numpy as np
import cudadrv, ptx
from cudadrv import LaunchConfig, cuda_context_for
from cudadrv.errors import *

def kernel(source, name="k"):
    context = cuda_context_for(0)
    image = ptx.compile(source, ptx.CompileOptions(target=context.target))
    return context.load_module(image).kernel(name)
"""


def run(code: str, *arguments: str, **environment: str) -> str:
    """What a process prints that runs `code`; a failure shows what it said."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code), *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_illegal_address_is_reported_and_stays() -> None:
    text = run("""
        k = kernel('extern "C" __global__ void k(int* p) { *p = 1; }')
        stream = cuda_context_for(0).default_stream
        try:
            k.launch(stream, LaunchConfig(1, 1), 64)
            stream.synchronize()
        except IllegalAddressError as error:
            print(error)
        try:
            stream.zeros(4, "f4")
            stream.synchronize()
        except CudaError as error:
            print(error.code)
    """)
    *told, second = text.splitlines()
    assert any("CUDA_ERROR_ILLEGAL_ADDRESS (700)" in line for line in told)
    assert "every later call" in told[-1]
    assert len(told) <= 10
    assert second == "700"


@pytest.mark.slow
def test_a_trap_is_reported() -> None:
    text = run("""
        k = kernel('extern "C" __global__ void k() { __trap(); }')
        stream = cuda_context_for(0).default_stream
        try:
            k.launch(stream, LaunchConfig(1, 1))
            stream.synchronize()
        except CudaError as error:
            print(error.sticky, error.code in (715, 719))
    """)
    assert text == "True True\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_the_error_in_a_forked_child_recommends_spawn() -> None:
    text = run("""
        import warnings
        warnings.simplefilter("ignore")
        stream = cuda_context_for(0).default_stream
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            try:
                cuda_context_for(0).new_stream()
            except ForkedProcessError as error:
                print("before the fork" in str(error), "spawn" in str(error))
            sys.stdout.flush()
            os._exit(0)
        print(os.waitpid(child, 0)[1])
    """)
    assert text == "True True\n0\n"


def test_no_driver_is_reported_every_time_from_every_thread() -> None:
    text = run(
        """
        import ctypes
        try:
            ctypes.CDLL("libcuda.so.1")
            print("there is a driver")
            raise SystemExit
        except OSError:
            pass
        texts = []
        def ask():
            for call in (cudadrv.init, cudadrv.list_devices, lambda: cuda_context_for(0)):
                try:
                    call()
                except cudadrv.DriverNotFoundError as error:
                    texts.append(str(error))
        for _ in range(50):
            ask()
        threads = [threading.Thread(target=ask) for _ in range(16)]
        for t in threads: t.start()
        for t in threads: t.join()
        print(len(texts), len(set(texts)))
        print("CUDADRV_DRIVER=emulator" in texts[0], "NVIDIA driver" in texts[0])
        """,
        CUDADRV_DRIVER="cuda",
    )
    if text.startswith("there is a driver"):
        pytest.skip("needs a machine without an NVIDIA driver")
    assert text == "198 1\nTrue True\n"


@pytest.mark.slow
def test_a_driver_that_is_not_known_is_rejected() -> None:
    text = run(
        """
        try:
            cudadrv.init()
        except DriverSelectionError as error:
            print(error)
        """,
        CUDADRV_DRIVER="rocm",
    )
    assert text.startswith("CUDADRV_DRIVER is 'rocm': use \"cuda\"")


def test_importing_touches_no_driver() -> None:
    text = run(
        """
        from cudadrv.driver import driver_selection
        print(driver_selection.current_or_none(), "nvrtc" in open("/proc/self/maps").read())
        print("platformdirs" in sys.modules, "rich" in sys.modules)
        """,
    )
    assert text == "None False\nFalse False\n"


@pytest.mark.slow
def test_the_drivers_reason_is_given_at_most_once() -> None:
    text = run("""
        from cudadrv.driver.driver_selection import current, failure
        api = current().api
        context = cuda_context_for(0)
        for _ in range(2):
            code, _ = context._api.cuDeviceGetName(0, 99)
            error = failure(api, code, "cuDeviceGetName", "reading a name")
            lines = str(error).splitlines()
            assert sum(line.startswith("  driver: ") for line in lines) == bool(error.reason)
            assert "Returning" not in error.reason and "[" not in error.reason[:1], error.reason
        print(type(error).__name__, sum(line == f"  {error.text}" for line in lines))
        """)
    assert text in ("InvalidValueError 1\n", "InvalidDeviceError 1\n")
