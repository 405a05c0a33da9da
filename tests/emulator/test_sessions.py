from __future__ import annotations

import dataclasses
import gc
import os
import pickle
import subprocess
import sys
import textwrap
from typing import get_type_hints

import pytest

import cudadrv
from cudadrv.driver import driver_selection
from cudadrv.emulator import (
    H100,
    T4,
    DeviceProperties,
    EmulatedDevice,
    Emulator,
    Limits,
    session,
)
from cudadrv.errors import DriverSelectionError, LaunchTimeoutError
from ptx.emulate.model.errors import Runaway
from tests.patience import SECONDS
from tests.short_cases import few

from .kernels import EMPTY, TRAP, UNKNOWN_OPCODE


def completed(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={k: v for k, v in os.environ.items() if k != "CUDADRV_DRIVER"} | environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def run(code: str, **environment: str) -> str:
    done = completed(code, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_session_has_the_devices_requested_and_ends() -> None:
    before = driver_selection.current_or_none()
    with session(devices=3, name="tiny", sm_count=2, total_memory=1 << 20):
        names = [(d.name, d.total_memory) for d in cudadrv.list_devices()]
        assert names == [("tiny", 1 << 20)] * 3
    assert driver_selection.current_or_none() is before


def test_a_session_accepts_whole_devices() -> None:
    with session([H100, T4]) as emulator:
        assert [d.name for d in cudadrv.list_devices()] == [H100.name, T4.name]
        assert emulator.devices == (H100, T4)
        assert all(d.is_emulated for d in cudadrv.list_devices())


def test_sessions_nest_and_end_on_errors() -> None:
    before = driver_selection.current_or_none()
    with session(devices=1):
        with pytest.raises(RuntimeError, match="inside"), session(devices=5):
            assert len(cudadrv.list_devices()) == 5
            raise RuntimeError("inside")
        assert len(cudadrv.list_devices()) == 1
    assert driver_selection.current_or_none() is before


def test_each_session_is_fresh() -> None:
    for _ in range(2):
        with session(total_memory=1 << 22):
            context = cudadrv.cuda_context_for(0)
            info = context.memory_info()
            assert info.free == info.total == 1 << 22
            stream = context.new_stream()
            kept = stream.zeros(1000, "f4")
            assert kept.nbytes == 4000


def test_properties_do_not_go_with_whole_devices() -> None:
    with (
        pytest.raises(ValueError, match=r"sm_count.*dataclasses\.replace"),
        session([H100], sm_count=4),
    ):
        pass


def test_the_typed_properties_are_those_of_a_device() -> None:
    fields = {field.name for field in dataclasses.fields(EmulatedDevice)}
    assert set(get_type_hints(DeviceProperties)) == fields


@pytest.mark.slow
def test_the_environment_gives_one_device_or_as_many_as_it_specifies() -> None:
    code = "import cudadrv; print(len(cudadrv.list_devices()))"
    assert run(code, CUDADRV_DRIVER="emulator") == "1\n"
    assert run(code, CUDADRV_DRIVER="emulator:4") == "4\n"


def test_use_before_the_first_call_is_the_driver_of_the_process() -> None:
    text = run("""
        import cudadrv, cudadrv.emulator
        emulator = cudadrv.emulator.use(2, name="mine", compute_capability=(8, 0))
        print([(d.name, d.compute_capability) for d in cudadrv.list_devices()])
        """)
    assert "mine" in text
    assert text.count("(8, 0)") + text.count("major=8") == 2


def test_use_after_the_first_call_is_rejected_and_changes_nothing() -> None:
    text = run(
        """
        import cudadrv, cudadrv.emulator
        cudadrv.init()
        try:
            cudadrv.emulator.use(2)
        except cudadrv.errors.DriverSelectionError as error:
            print(error)
        print(len(cudadrv.list_devices()))
        """,
        CUDADRV_DRIVER="emulator:3",
    )
    assert "came after the first driver call" in text
    assert "session()" in text
    assert text.splitlines()[-1] == "3"


def test_importing_cudadrv_loads_no_emulator() -> None:
    text = run("""
        import sys, cudadrv
        print(any(name.startswith("cudadrv.emulator") for name in sys.modules))
        """)
    assert text == "False\n"


SPIN = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry spin() { A: bra A; }
"""


def test_an_endless_kernel_is_reported_with_the_way_to_raise_the_limit() -> None:
    with session(limits=Limits(max_steps=10_000)):
        stream = cudadrv.cuda_context_for(0).default_stream
        kernel = stream.context.load_module(SPIN).kernel("spin")
        with pytest.raises(LaunchTimeoutError, match=r"Limits\(max_steps=") as caught:
            kernel.launch(stream, cudadrv.LaunchConfig(1, 32))
            stream.synchronize()
    assert isinstance(caught.value.fault, Runaway)
    assert "display" not in str(caught.value)
    remade = pickle.loads(pickle.dumps(caught.value))
    assert (str(remade), remade.fault) == (str(caught.value), None)


def test_an_uncaught_fault_is_printed_once() -> None:
    result = completed(f"""
        import cudadrv
        from cudadrv import emulator

        with emulator.session(limits=emulator.Limits(max_steps=10_000)):
            stream = cudadrv.cuda_context_for(0).default_stream
            kernel = stream.context.load_module({SPIN!r}).kernel("spin")
            kernel.launch(stream, cudadrv.LaunchConfig(1, 32))
        """)
    assert result.returncode == 1
    assert result.stderr.count("Traceback") == 1
    assert result.stderr.count("no end after") == 1
    assert "LaunchTimeoutError: launching kernel 'spin'" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "said"),
    few(
        [
            ("5000", "limit of 5000"),
            ("0", "use a number of steps"),
            ("many", "use a number of steps"),
        ],
        1,
    ),
)
def test_the_environment_sets_how_many_steps_a_kernel_may_take(steps: str, said: str) -> None:
    found = run(
        f"""
        import cudadrv
        try:
            stream = cudadrv.cuda_context_for(0).default_stream
            kernel = stream.context.load_module({SPIN!r}).kernel("spin")
            kernel.launch(stream, cudadrv.LaunchConfig(1, 32))
            stream.synchronize()
        except cudadrv.CudadrvError as error:
            print(error)
        """,
        CUDADRV_DRIVER="emulator",
        CUDADRV_EMULATOR_STEPS=steps,
    )
    assert said in found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("threads", "said"), [("3", "3"), ("0", "use a number of threads"), ("", "0")]
)
def test_the_environment_sets_how_many_threads_run_a_launch(threads: str, said: str) -> None:
    found = run(
        """
        from cudadrv.emulator.environment import emulated_limits
        from cudadrv.errors import CudadrvError
        try:
            print(emulated_limits().threads)
        except CudadrvError as error:
            print(error)
        """,
        CUDADRV_EMULATOR_THREADS=threads,
    )
    assert said in found


HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


@pytest.mark.parametrize(
    "image",
    few([
        f"{HEADER}foo",
        f"{HEADER}{UNKNOWN_OPCODE}",
        f"{HEADER}.visible .entry k() {{ call missing; ret; }}",
        f"{HEADER}.visible .entry k() {{ oops oops; ret; }}",
        f"{HEADER}.visible .entry k() {{ cp.async.bulk.commit_group; ret; }}",
        f"{HEADER.replace('8.0', '99.0')}{EMPTY}",
        f"{HEADER.replace('sm_80', 'sm_120')}{EMPTY}",
        f"{HEADER}.global .align 4 .b8 big[99999999];",
        f"{HEADER}{TRAP}",
        "\x7fELF",
    ], 2),
    ids=[
        "syntax", "opcode", "undefined", "body", "requirement", "version", "target", "memory",
        "fault", "elf",
    ],
)  # fmt: skip
def test_a_module_that_fails_leaves_nothing_of_its_session(image: str) -> None:
    """A collection frees the emulator, though the error went through frames that hold it."""
    _reject(image)
    gc.collect()  # takes the launchers and streams
    gc.collect()  # takes the emulator, whose driver is named by nothing since
    # A weak reference is no proof: a collection clears it, even if it frees the object later.
    emulators = [each for each in gc.get_objects() if isinstance(each, Emulator)]
    assert not [each for each in emulators if each.devices[0].name == "of a failed module"]


def _reject(image: str) -> None:
    """A session in which a module was not loaded, or its kernel failed."""
    with session(name="of a failed module", total_memory=1 << 24):
        stream = cudadrv.cuda_context_for(0).new_stream()
        try:
            _run_all(stream, image)
        except cudadrv.CudaError:
            return
    raise AssertionError("nothing was refused")


def _run_all(stream: cudadrv.Stream, image: str) -> None:
    module = stream.context.load_module(image.encode())
    for name in ("unknown", "k", "traps"):
        if name in image:
            module.kernel(name).launch(stream, cudadrv.LaunchConfig(1, 1))
    stream.synchronize()


def test_sessions_take_the_limits_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDADRV_EMULATOR_STEPS", "77")
    monkeypatch.setenv("CUDADRV_EMULATOR_THREADS", "3")
    with cudadrv.emulator.session() as chosen:
        assert (chosen.limits.max_steps, chosen.limits.threads) == (77, 3)
    with cudadrv.emulator.session(limits=cudadrv.emulator.Limits(max_steps=99)) as chosen:
        assert chosen.limits.max_steps == 99
    monkeypatch.setenv("CUDADRV_EMULATOR_STEPS", "many")
    with (
        pytest.raises(DriverSelectionError, match="CUDADRV_EMULATOR_STEPS is 'many': use a number"),
        cudadrv.emulator.session(),
    ):
        pass
