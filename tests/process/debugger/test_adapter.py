"""Requests of the Debug Adapter Protocol, each of which checks its messages by the schema."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cudadrv.debugger.debuggee import MOST_COPIES
from cudadrv.debugger.debugger import DebuggedProgram, Debugger
from tests.patience import SECONDS, wait_until

from .client import Client, check_message
from .programs import LONG, MISSING_BARRIER, NOT_A_NUMBER, WRONG_INDEX, WRONG_STREAM

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="going back needs copies of a process"),
]
FOLDER = Path(__file__).parent


@pytest.fixture
def long(tmp_path: Path) -> Path:
    file = tmp_path / "long.py"
    file.write_text(LONG)
    return file


def test_breakpoints_of_all_kinds_stop(long: Path) -> None:
    with Client() as editor:
        editor.launch(long, stopOnEntry=True)
        stop = editor.stopped("configurationDone")
        thread = stop["threadId"]
        assert stop["reason"] == "entry"
        # PTX: its text, a breakpoint in it, its instructions.
        top = editor.top(stop)
        module = int(top["instructionPointerReference"].split(":")[1])
        text = editor.request("source", sourceReference=module)["content"].splitlines()
        (barrier,) = [n for n, line in enumerate(text, 1) if line.strip().startswith("bar.sync")]
        found = editor.request(
            "setBreakpoints",
            source={"name": "loop.ptx", "sourceReference": module},
            breakpoints=[{"line": barrier}],
        )
        assert [each["verified"] for each in found["breakpoints"]] == [True]
        stop = editor.stopped("continue", threadId=thread)
        reference = editor.top(stop)["instructionPointerReference"]
        instructions = editor.request(
            "disassemble", memoryReference=reference, instructionOffset=-1, instructionCount=3
        )["instructions"]
        assert [e["instruction"] for e in instructions] == text[barrier - 2 : barrier + 1]
        editor.request("setBreakpoints", source={"name": "loop.ptx"}, breakpoints=[])
        # A function, with a condition; the frames of its caller and of the host.
        editor.request(
            "setFunctionBreakpoints", breakpoints=[{"name": "twice", "condition": "value == 3"}]
        )
        stop = editor.stopped("continue", threadId=thread)
        frames = editor.request("stackTrace", threadId=stop["threadId"])["stackFrames"]
        assert [frame["name"] for frame in frames] == ["twice", "loop", "<module> (host)"]
        assert frames[2]["source"]["path"] == str(long)
        caller = frames[1]["id"]
        j = editor.request("evaluate", expression="j", frameId=caller)["result"]
        assert j == "3"
        assert editor.variables(frames[0]["id"], "Arguments") == {"value": "3"}
        # Out of the call, and back into the past.
        stop = editor.stopped("stepOut", threadId=stop["threadId"])
        assert editor.top(stop)["name"] == "loop"
        editor.request("setFunctionBreakpoints", breakpoints=[{"name": "twice"}])
        stop = editor.stopped("reverseContinue", threadId=stop["threadId"])
        stop = editor.stopped("reverseContinue", threadId=stop["threadId"])
        assert editor.value(stop, "value") == "2"
        editor.request("setFunctionBreakpoints", breakpoints=[])
        # Elements of arrays, in pages.
        frame = editor.request("stackTrace", threadId=stop["threadId"])["stackFrames"][1]["id"]
        tile = editor.request("evaluate", expression="tile", frameId=frame)
        assert tile["indexedVariables"] == 32
        page = editor.request(
            "variables", variablesReference=tile["variablesReference"], start=30, count=5
        )["variables"]
        assert [(e["name"], e["value"]) for e in page] == [("[30]", "30"), ("[31]", "31")]
        threads = editor.request("threads")["threads"]
        assert len(threads) == 32
        assert threads[7]["name"] == "block (0, 0, 0), thread (7, 0, 0): stopped"
        failed = editor.response("evaluate", expression="nothing[", frameId=frame)
        assert not failed["success"]
        assert not editor.response("stepInTargets", frameId=frame)["success"]
        editor.request("disconnect")


def test_threads_frames_and_places_that_are_not_there_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(WRONG_INDEX)
    with Client() as editor:
        editor.launch(file)
        stop = editor.stopped("configurationDone")
        frame = editor.top(stop)["id"]
        wrong_place = "global 0 a 4 x"
        cases = {
            "no such thread": ("stackTrace", {"threadId": 1 << 20}),
            "the host's thread": ("stackTrace", {"threadId": 1}),
            "no such frame": ("scopes", {"frameId": frame + 999}),
            "a frame before all": ("scopes", {"frameId": 0}),
            "a place of another form": (
                "setDataBreakpoints", {"breakpoints": [{"dataId": wrong_place}]},
            ),
            "a long expression": ("evaluate", {"expression": "(" * 5000, "frameId": frame}),
        }  # fmt: skip
        for name, (command, arguments) in cases.items():
            response = editor.response(command, **arguments)
            assert not response["success"], name
            assert len(response["message"].splitlines()[0]) <= 110, name
        whole = editor.request("evaluate", expression="x", frameId=frame)["variablesReference"]
        pages: Any = (0, 1 << 40, ["[0]", "[1]"]), (-3, 1, ["[0]"]), (63, 9, ["[63]"]), (64, 9, [])
        for start, count, names in pages:
            rows = editor.request("variables", variablesReference=whole, start=start, count=count)
            assert [each["name"] for each in rows["variables"]][:2] == names
        editor.request("continue", threadId=stop["threadId"])
        editor.event("terminated")
        for command in ("stackTrace", "pause", "continue"):
            response = editor.response(command, threadId=stop["threadId"])
            assert response["message"] == "the program has ended"
        editor.request("disconnect")


def test_the_debug_console_goes_on_and_back(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(WRONG_INDEX)
    with Client() as editor:
        editor.launch(file)
        fault = editor.stopped("configurationDone")
        assert editor.console("rstepi") == ""
        assert editor.event("continued")["threadId"] == fault["threadId"]
        assert editor.event("stopped")["reason"] == "step"
        assert editor.console("continue") == ""
        assert editor.event("stopped")["text"] == fault["text"]
        editor.console("c")
        editor.event("terminated")
        failed = editor.response("evaluate", expression="continue", context="repl")
        assert failed["message"] == "the program has ended"
        editor.request("disconnect")


def test_a_running_kernel_pauses(long: Path) -> None:
    with Client() as editor:
        editor.launch(long, stopOnEntry=True)
        stop = editor.stopped("configurationDone")
        editor.request("continue", threadId=stop["threadId"])
        editor.request("pause", threadId=1)  # also if the threads have not gone on yet
        stop = editor.event("stopped")
        assert stop["reason"] == "pause"
        stop = editor.stopped("stepBack", threadId=stop["threadId"], granularity="instruction")
        assert stop["reason"] == "step"
        editor.request("disconnect")


def test_few_copies_of_a_process_exist_and_none_survives(long: Path) -> None:
    if not Path("/proc/self/stat").is_file():
        pytest.skip("needs the list of processes in /proc")
    debugger = Debugger(DebuggedProgram(str(long)))
    group = debugger.process.pid
    runner = threading.Thread(target=debugger.move, args=("continue",))
    runner.start()
    wait_until(lambda: debugger.copies_made > 2 * MOST_COPIES)
    debugger.pause()
    runner.join(SECONDS)
    debugger.move("rstepi")
    wait_until(lambda: len(processes_of(group)) <= 1 + MOST_COPIES + 2)  # and two of a repetition
    debugger.close()
    wait_until(lambda: not processes_of(group))


def processes_of(group: int) -> list[int]:
    """Return the processes of a group that have not ended."""
    return [pid for pid, _, its_group in processes() if its_group == group]


def processes() -> Iterator[tuple[int, int, int]]:
    """Yield the number, the parent and the group of each process that has not ended."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent, group = file.read_text().rpartition(")")[2].split()[:3]
            if state != "Z":
                yield int(file.parent.name), int(parent), int(group)


@pytest.mark.parametrize("way", ["the debugger ends", "the program ends", "the editor leaves"])
@pytest.mark.parametrize("runs", [False, True])
def test_no_process_and_no_temporary_file_outlives_a_session(
    long: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, way: str, runs: bool
) -> None:
    """Whichever process ends, and however: a signal has no time to clean up."""
    if not Path("/proc/self/stat").is_file():
        pytest.skip("needs the list of processes in /proc")
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    with Client() as editor:
        editor.launch(long, stopOnEntry=True)
        stop = editor.stopped("configurationDone")
        (program,) = [pid for pid, parent, _ in processes() if parent == editor.process.pid]
        if runs:
            editor.request("continue", threadId=stop["threadId"])
        if way != "the editor leaves":
            os.kill(editor.process.pid if way == "the debugger ends" else program, signal.SIGTERM)
    wait_until(lambda: not processes_of(program))
    assert not list(folder.iterdir())


def start_server() -> tuple[subprocess.Popen[str], int]:
    """Start a server of editors; return it and its port."""
    server = subprocess.Popen(
        [sys.executable, "-m", "cudadrv", "debug", "--port", "0"], stderr=subprocess.PIPE, text=True
    )
    return server, port_of(server)


def port_of(server: subprocess.Popen[str]) -> int:
    assert server.stderr is not None
    return int(server.stderr.readline().rpartition(":")[2])


def end_server(server: subprocess.Popen[str]) -> None:
    """End a server as Ctrl-C does."""
    server.send_signal(signal.SIGINT)
    assert server.wait(SECONDS) == 0
    assert server.stderr is not None
    server.stderr.close()


def test_the_port_serves_one_editor_after_another() -> None:
    server, port = start_server()
    for _ in range(2):
        with socket.create_connection(("127.0.0.1", port)) as first:
            with (
                pytest.raises(OSError),  # noqa: PT011  # refused, or closed at once
                socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as second,
            ):
                second.sendall(b"Content-Length: 2\r\n\r\n{}")  # as an editor begins
                second.recv(1)
                raise ConnectionResetError
            first.sendall(b"Content-Length: 2\r\n\r\n{}")
        assert port_of(server) == port  # it listens again
    end_server(server)


def json_of_page(number: int) -> Any:
    """Return a block of JSON of the debugger's page."""
    page = Path(__file__).parents[3] / "docs" / "howto" / "debug.md"
    return json.loads(page.read_text().split("```json\n")[number + 1].split("```")[0])


def test_the_files_of_the_page_start_the_adapter_of_vs_code(tmp_path: Path) -> None:
    """VS Code starts `runtime` with `runtimeArgs`, and sends the configuration as arguments."""
    program = tmp_path / "program.py"
    program.write_text(WRONG_INDEX)
    (debugger,) = json_of_page(0)["contributes"]["debuggers"]
    (configuration,) = json_of_page(1)["configurations"]
    assert configuration["type"] == debugger["type"]
    assert configuration.pop("program") == "${file}"
    assert debugger["runtime"] == "python"
    command = [sys.executable, *debugger["runtimeArgs"]]
    with Client(command=command) as editor:
        editor.launch(program, **configuration, __sessionId="1")
        stop = editor.stopped("configurationDone")
        assert "out-of-bounds read" in stop["text"]
        editor.request("disconnect", restart=False, terminateDebuggee=True)


def test_a_breakpoint_at_a_line_without_code_is_shown_where_it_stops(tmp_path: Path) -> None:
    """In the file that has the kernel as a text, before its launch and after it."""
    program = tmp_path / "program.py"
    old = "        y[row * n"
    program.write_text(NOT_A_NUMBER.replace(old, f"\n    // the share\n{old}"))
    line = line_in(program.read_text(), "    // the share")
    with Client() as editor:
        editor.launch(program)
        places = {
            "source": {"path": str(program)},
            "breakpoints": [{"line": line - 1}, {"line": 2}],
        }
        before = editor.request("setBreakpoints", **places)["breakpoints"]
        assert [(e["verified"], e["line"]) for e in before] == [(False, line - 1), (False, 2)]
        stop = editor.stopped("configurationDone")
        assert stop["hitBreakpointIds"] == [before[0]["id"]]
        assert editor.top(stop)["line"] == line + 1
        moved = editor.event("breakpoint")["breakpoint"]
        assert (moved["id"], moved["verified"], moved["line"]) == (before[0]["id"], True, line + 1)
        after = editor.request("setBreakpoints", **places)["breakpoints"]
        assert [(e["verified"], e["line"]) for e in after] == [(True, line + 1), (False, 2)]
        assert after[0]["message"] == f"line {line - 1} has no code: moved to line {line + 1}"
        editor.request("disconnect")


SESSIONS = {
    "steps": (WRONG_INDEX, "        sum += x[i + j];"),
    "wrong_index": (WRONG_INDEX, ""),
    "missing_barrier": (MISSING_BARRIER, ""),
    "wrong_stream": (WRONG_STREAM, "    y[i] = 2 * value;"),
    "not_a_number": (NOT_A_NUMBER, "        y[row * n + j] = share;"),
}
MOST_REQUESTS = 10


@pytest.mark.parametrize("name", SESSIONS)
def test_a_client_of_vs_code_finds_faults_with_ten_requests(name: str, tmp_path: Path) -> None:
    """The client of VS Code's own tests of debug adapters; NODE_PATH names its folder."""
    text, line = SESSIONS[name]
    program = tmp_path / "program.py"
    program.write_text(text)
    lines = [line_in(text, line)] if line else []
    answer = session_of_vs_code(name, program, *lines, uses_port=name == "steps")
    expected: dict[str, list[object]] = {
        "steps": ["breakpoint", line_in(text, line) - 1, line_in(text, line)],
        "wrong_index": ["exception", line_in(text, "        sum += x[i + j];"), "63", "1", "64"],
        "missing_barrier": [
            "exception",
            line_in(text, "    int other = tile[blockDim.x - 1 - i];"),
            "data breakpoint",
            line_in(text, "    tile[i] = x[i];"),
            False,
        ],
        "wrong_stream": [
            "breakpoint",
            "0.0",
            "memcpy 5 of stream 2 has not run, queued at "
            f"{program}:{line_in(text, '    copies.copy(x, host)')}",
        ],
        "not_a_number": ["breakpoint", "11", "0.0", "nan", "0.0"],
    }
    assert answer["found"] == expected[name]
    assert len(answer["requests"]) <= MOST_REQUESTS
    for message in answer["messages"]:
        check_message(message)


def line_in(text: str, line: str) -> int:
    """Return the number of a line in a program; 0 if it has none."""
    lines = text.splitlines()
    return lines.index(line) + 1 if line in lines else 0


def session_of_vs_code(name: str, program: Path, *lines: int, uses_port: bool) -> Any:  # of JSON
    """Return what a session of `vscode_client.js` prints."""
    node, module = shutil.which("node"), "@vscode/debugadapter-testsupport"
    found = [node or "", "-e", f"require('{module}')"]
    if node is None or subprocess.run(found, check=False, capture_output=True).returncode:
        pytest.skip(f"needs Node.js with {module}")
    command = [sys.executable, *json_of_page(0)["contributes"]["debuggers"][0]["runtimeArgs"]]
    server, port = start_server() if uses_port else (None, 0)
    script, adapter = str(FOLDER / "vscode_client.js"), json.dumps(command)
    done = subprocess.run(
        [node, script, adapter, str(port), name, str(program), *map(str, lines)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    if server is not None:
        end_server(server)
    return json.loads(done.stdout)
