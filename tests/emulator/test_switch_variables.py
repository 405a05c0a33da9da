"""Variables of the environment that are switches or files: each text works or is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import emulator
from cudadrv.__main__ import main
from cudadrv.emulator import Emulator
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


@pytest.mark.parametrize("text", [text for text in TEXTS if _switch(text) is None])
def test_emulate_rejects_another_text_than_0_or_1(
    text: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUDADRV_NO_STAND_IN", text)
    with pytest.raises(SystemExit, match="2"):
        main(["emulate", "no-such-command"])
    assert "CUDADRV_NO_STAND_IN is" in capfd.readouterr().err


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
