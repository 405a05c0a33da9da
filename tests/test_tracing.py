"""That a trace leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

import cudadrv
import ptx
from cudadrv.driver import in_use
from cudadrv.tracing import trace


def functions() -> dict[str, object]:
    """What is found under the names of the driver's functions and the compiler's."""
    api = in_use.current().api
    found = {name: getattr(api, name) for name in dir(api) if name.startswith("cu")}
    return {**found, "compile": ptx.compile, "link": ptx.link}


def test_every_function_is_back_after_a_trace(tmp_path: Path) -> None:
    cudadrv.init()
    before = functions()
    own = dict(vars(in_use.current().api))
    with trace(tmp_path / "trace.json"):
        within = functions()
    assert functions() == before
    assert vars(in_use.current().api) == own
    changed = {name for name in before if within[name] != before[name]}
    assert {"cuLaunchKernel", "cuMemAllocAsync", "cuStreamSynchronize", "compile"} <= changed


def test_every_function_is_back_after_an_error(tmp_path: Path) -> None:
    cudadrv.init()
    before = functions()
    with pytest.raises(ZeroDivisionError), trace(tmp_path / "trace.json"):
        _ = 1 / 0
    assert functions() == before
    assert (tmp_path / "trace.json").stat().st_size > 0


def test_a_file_that_cannot_be_written_is_said_at_once(tmp_path: Path) -> None:
    cudadrv.init()
    before = functions()
    with pytest.raises(FileNotFoundError):
        trace(tmp_path / "missing" / "trace.json").__enter__()
    assert functions() == before
    with trace(tmp_path / "trace.json"):
        pass
