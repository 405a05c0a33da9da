"""Recorded sessions through the Debug Adapter Protocol: each finds a fault in ten requests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .client import Client
from .programs import MISSING_BARRIER, NOT_A_NUMBER, WRONG_INDEX, WRONG_STREAM, line_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="going back needs copies of a process"),
]


def program(folder: Path, text: str) -> Path:
    file = folder / "program.py"
    file.write_text(text)
    return file


def test_a_wrong_index_is_found(tmp_path: Path) -> None:
    with Client() as editor:
        file = program(tmp_path, WRONG_INDEX)
        editor.launch(file)
        stop = editor.stopped("configurationDone")  # 1
        assert stop["reason"] == "exception"
        assert stop["text"].startswith("out-of-bounds read of 4 bytes")
        top = editor.top(stop)  # 2
        frame, line = top["id"], WRONG_INDEX.splitlines().index("        sum += x[i + j];") + 1
        assert (top["source"]["path"], top["line"]) == (str(file), line)
        assert editor.variables(frame, "Locals") == {"i": "63", "sum": "63.0", "j": "1"}  # 3, 4
        assert editor.variables(frame, "Arguments")["n"] == "64"  # 5, 6
        back = editor.stopped("stepBack", threadId=stop["threadId"])  # 7
        assert editor.value(back, "j") == "1"  # 8, 9
        editor.request("disconnect")


def test_a_missing_barrier_is_found(tmp_path: Path) -> None:
    with Client() as editor:
        editor.launch(program(tmp_path, MISSING_BARRIER), checks="race")
        stop = editor.stopped("configurationDone")  # 1
        assert stop["reason"] == "exception"
        assert "race" in stop["text"]
        assert f"reverse.cu:{line_of(MISSING_BARRIER, 'tile[i] = x[i];')}" in stop["text"]
        assert editor.console("info barriers") == "no thread waits at a barrier"  # 2
        top = editor.top(stop)  # 3
        frame, lines = top["id"], MISSING_BARRIER.splitlines()
        reader = lines.index("    int other = tile[blockDim.x - 1 - i];") + 1
        assert top["line"] == reader  # before the second access
        place = editor.request("dataBreakpointInfo", name="tile[blockDim.x - 1 - i]", frameId=frame)
        editor.request(
            "setDataBreakpoints", breakpoints=[{"dataId": place["dataId"], "accessType": "write"}]
        )  # 4, 5
        threads = editor.request("threads")["threads"]  # which editors require of each stop
        assert stop["threadId"] in [each["id"] for each in threads]
        writer = editor.stopped("reverseContinue", threadId=stop["threadId"])  # 6
        assert writer["reason"] == "data breakpoint"
        assert writer["threadId"] != stop["threadId"]  # another thread, with no barrier in between
        source = editor.top(writer)  # 7
        assert source["name"] == "reverse"
        editor.request("disconnect")


def test_a_wrong_stream_is_found(tmp_path: Path) -> None:
    with Client() as editor:
        file = program(tmp_path, WRONG_STREAM)
        editor.launch(file, order="late")
        line = line_of(WRONG_STREAM, "y[i] = 2 * value;")
        editor.request(
            "setBreakpoints", source={"path": "twice.cu"}, breakpoints=[{"line": line}]
        )  # 1
        stop = editor.stopped("configurationDone")  # 2
        assert editor.value(stop, "value") == "0.0"  # 3, 4: the copy has not run
        host = editor.console("info host")  # 5
        lines = WRONG_STREAM.splitlines()
        copied, launched, needed = (
            1 + next(n for n, text in enumerate(lines) if part in text)
            for part in ("copies.copy", "kernel.launch", "work.synchronize()")
        )
        assert f"at {file}:{needed}" in host.splitlines()[0]
        assert any(
            "memcpy" in text and "has not run" in text and text.endswith(f"{file}:{copied}")
            for text in host.splitlines()
        )
        assert any("runs" in e and e.endswith(f"{file}:{launched}") for e in host.splitlines())
        editor.request("disconnect")


def test_the_origin_of_a_nan_is_found(tmp_path: Path) -> None:
    with Client() as editor:
        editor.launch(program(tmp_path, NOT_A_NUMBER))
        line = line_of(NOT_A_NUMBER, "y[row * n + j] = share;")
        editor.request(
            "setBreakpoints",
            source={"path": "normalise.cu"},
            breakpoints=[{"line": line, "condition": "isnan(share)"}],
        )  # 1
        stop = editor.stopped("configurationDone")  # 2
        assert stop["hitBreakpointIds"] == [1]
        frame = editor.top(stop)["id"]  # 3
        variables = editor.variables(frame, "Locals")  # 4, 5
        assert (variables["row"], variables["sum"], variables["share"]) == ("11", "0.0", "nan")
        assert editor.value(stop, "x[row * n : row * n + 4]") == "{0.0, 0.0, 0.0, 0.0}"  # 6, 7
        back = editor.stopped("stepBack", threadId=stop["threadId"])  # 8
        assert editor.value(back, "sum") == "0.0"  # 9, 10
        editor.request("disconnect")
