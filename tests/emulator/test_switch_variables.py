"""Variables of the environment that are switches or files: each text works or is reported."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import emulator
from cudadrv.__main__ import main
from cudadrv.cli.command_line import COMMANDS, WITH_ANY_VARIABLES
from cudadrv.driver import driver_selection
from cudadrv.emulator import Emulator
from cudadrv.emulator.environment import READERS
from cudadrv.environment import RULED
from cudadrv.testing import strategies
from cudadrv.testing.verify import KernelCase
from cudadrv.testing.verify.verification import VerifyOptions, compiled_case
from ptx.options import is_for_debuggers

TRACE: Final = "CUDADRV_EMULATOR_TRACE"
ORDER: Final = "CUDADRV_EMULATOR_ORDER"


def _switch(text: str) -> bool | None:
    """What a switch does with a text, by the page; None for an error."""
    return {"": False, "0": False, "1": True}.get(text.strip())


TEXTS: Final = (
    "",
    " ",
    "0",
    "1",
    " 1 ",
    "01",
    "2",
    "true",
    "on",
    "no",
    "1,1",
    "\N{SUPERSCRIPT ONE}",
)


@pytest.mark.parametrize("text", TEXTS)
def test_a_switch_is_0_or_1(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDADRV_DEVICE_DEBUG", text)
    expected = _switch(text)
    if expected is not None:
        assert is_for_debuggers() is expected
        return
    with pytest.raises(ptx.PtxError, match="CUDADRV_DEVICE_DEBUG is .*: use 0 or 1"):
        ptx.compile("__global__ void k() {}")


WRONG: Final = {
    "CUDADRV_DRIVER": ("emulatr", "emulator:two", "emulator:0", "emulator:+1", "cuda:1", "GPU"),
    "CUDADRV_CHECK": ("rac", "race;init", ","),
    "CUDADRV_EMULATOR_ORDER": ("lat", "random:x", "late:1"),
    "CUDADRV_EMULATOR_COMPUTE_CAPABILITY": ("nine", "90", "1.0"),
    "CUDADRV_EMULATOR_TRACE": ("/missing/trace",),
    "CUDADRV_EMULATOR_STEPS": ("1e3", "0"),
    "CUDADRV_EMULATOR_THREADS": ("two", "-1"),
    "CUDADRV_EMULATOR_FAULT": ("stic", "1"),
    "CUDADRV_EMULATOR_LOCK_SECONDS": ("soon", "0.5"),
    "CUDADRV_CHECK_SUPPRESSIONS": ("/missing/known.txt", __file__),
    "CUDADRV_NO_STAND_IN": ("yes", "01"),
    "CUDADRV_CACHE_MAX_MB": ("big", "-1"),
    "CUDADRV_DEVICE_DEBUG": ("yes", "2"),
    "CUDADRV_KEEP_BLOCKS": ("2", "no"),
    "CUDADRV_HEADERS": ("/missing/include", f"{__file__}", f"/usr{os.pathsep}/missing/include"),
}
"""Wrong values of each variable that has any. Two limits of a client issue a warning instead."""
WITHOUT_WRONG: Final = {
    "CUDA_VISIBLE_DEVICES",  # by CUDA's rules: devices after a wrong one are invisible
    "CUDADRV_CACHE_DIR",  # any text names a folder, which the cache makes
    "CUDADRV_POOL_RELEASE_THRESHOLD_MB", "CUDADRV_FREE_LIST_CAP_MB",  # issue a warning
    "CUDADRV_EMULATE_EVENTS", "CUDADRV_EMULATE_LIBRARIES", "CUDADRV_PYTHON",  # set by commands
    "CUDADRV_DEBUG_ADDRESS",
}  # fmt: skip
WRONG_VALUES: Final = [(name, text) for name, texts in WRONG.items() for text in texts]
COMMANDS_WITH_WORDS: Final = {
    "selftest": (), "top": (), "cluster": (),
    "compile": ("k.cu",), "ptx": ("k.ptx",), "sass": ("k.cu",), "run": ("k.cu",),
    "check": ("script.py",), "verify": ("cases.py",), "replay": ("finding.json",),
    "debug": ("script.py",), "count": ("script.py",), "profile": ("script.py",),
    "emulate": ("no-such-command",), "explore": ("script.py",), "cache": ("info",),
}  # fmt: skip
WAYS: Final[dict[str, Callable[[], object]]] = {
    "a driver": driver_selection.current,
    "an emulator": lambda: Emulator(order="late", check=[], limits=ptx.emulate.Limits()),
    "a session": lambda: emulator.session(check=[]).__enter__(),
    "a stand-in": lambda: emulator.stand_in(order="late"),
    "use": lambda: emulator.use(order="late"),
}


def test_each_documented_variable_has_wrong_values_or_none() -> None:
    page = Path(cudadrv.__file__).parents[1] / "docs" / "environment.md"
    documented = set(re.findall(r"^\| `(\w+)` \|", page.read_text("utf-8"), re.MULTILINE))
    assert documented == WRONG.keys() | WITHOUT_WRONG
    assert WRONG.keys() == RULED == READERS.keys()
    assert COMMANDS_WITH_WORDS.keys() == COMMANDS.keys() - set(WITH_ANY_VARIABLES)


@pytest.mark.parametrize(("name", "text"), WRONG_VALUES)
def test_a_wrong_value_is_an_error_with_the_variables_name_in_each_way(
    name: str, text: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if name != "CUDADRV_DRIVER":
        monkeypatch.setenv("CUDADRV_DRIVER", "emulator")
    monkeypatch.setenv(name, text)
    former = driver_selection.set_current(None)
    try:
        for start in WAYS.values():
            with pytest.raises(cudadrv.CudadrvError, match=name):
                start()
    finally:
        driver_selection.set_current(former)
    for command, words in COMMANDS_WITH_WORDS.items():
        assert main([command, *words]) == 2, command
        output, error = capfd.readouterr()
        assert error.count("\n") <= 2, command
        assert name in error, command
        assert not output, command


def test_the_limit_of_steps_counts_in_verify(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDADRV_EMULATOR_STEPS", "1234")
    monkeypatch.setenv("CUDADRV_EMULATOR_THREADS", "3")
    case = KernelCase(
        'extern "C" __global__ void k(int* x) { *x = 1; }',
        arguments={"x": strategies.arrays(np.int32, 1)},
        launch=cudadrv.LaunchConfig(1, 1),
        reference=lambda x: {"x": 0 * x + 1},
    )
    limits = compiled_case(case, VerifyOptions(checks=("race",)), "cases.py::case").limits
    assert (limits.max_steps, limits.threads) == (1234, 3)


def test_an_order_of_spaces_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ORDER, " ")
    assert Emulator().order == "immediate"


@pytest.mark.parametrize("order", ["immediate", "late", "random:1", "held:"])
def test_a_trace_has_the_operations_in_each_order(
    order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ORDER, order)
    monkeypatch.setenv(TRACE, str(tmp_path / "operations"))
    with emulator.session():
        stream = cudadrv.cuda_context_for(0).new_stream()
        stream.to_host(stream.zeros(8, np.int32))
    lines = (tmp_path / "operations").read_text().splitlines()
    kinds = [line.split()[1] for line in lines]
    assert [kind for kind in kinds if kind != "memory"] == ["memset", "memcpy"]
    assert all("test_switch_variables.py" in line for line in lines)


def test_a_trace_that_cannot_be_written_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TRACE, str(tmp_path / "missing" / "operations"))
    with pytest.raises(cudadrv.CudadrvError, match=f"{TRACE} is .* cannot be written"):
        Emulator()


@pytest.mark.parametrize("order", ["immediate", "late"])
def test_a_trace_without_space_ends_with_a_line_on_standard_error(
    order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.setenv(ORDER, order)
    monkeypatch.setenv(TRACE, str(folder / "operations"))
    with emulator.session():
        stream = cudadrv.cuda_context_for(0).new_stream()
        stream.synchronize()
        (folder / "operations").unlink(missing_ok=True)
        folder.rmdir()
        assert stream.to_host(stream.zeros(8, np.int32))[0] == 0
    assert capfd.readouterr().err.count(f"{TRACE}: no more lines") == 1
