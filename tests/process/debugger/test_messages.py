"""Malformed messages of an editor: each has an error as its answer, and none ends the session."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from cudadrv.debugger.adapter import Adapter
from cudadrv.debugger.debugger import DebuggedProgram, DebuggerError
from cudadrv.debugger.terminal import coordinates, parse_breakpoint, watchpoint_of
from ptx.emulate.debug.stops import Watchpoint

from .client import check_message

Json = Any  # of the protocol


def messages(data: bytes) -> list[Json]:
    """Return what an adapter sends for some bytes of an editor."""
    sink = io.BytesIO()
    Adapter(DebuggedProgram(), io.BytesIO(data), sink).run()
    found, text = [], sink.getvalue()
    while text:
        header, _, text = text.partition(b"\r\n\r\n")
        nbytes = int(header.partition(b":")[2])
        found.append(json.loads(text[:nbytes]))
        text = text[nbytes:]
    return found


def framed(message: Json) -> bytes:
    text = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(text), text)


def request(command: str, arguments: Json = None) -> bytes:
    return framed({"seq": 7, "type": "request", "command": command, "arguments": arguments})


def test_a_request_that_cannot_be_served_has_an_error_response() -> None:
    cases = {
        "unknown command": ("nothing", {}),
        "no program": ("launch", {}),
        "a number as the program": ("launch", {"program": 5}),
        "a text as arguments": ("launch", {"program": __file__, "args": "a b"}),
        "a number as checks": ("launch", {"program": __file__, "checks": 3}),
        "a list as arguments of the request": ("launch", [1]),
        "an absent file": ("launch", {"program": "/nowhere/script.py"}),
        "begin without a program": ("configurationDone", {}),
        "a step without a program": ("next", {"threadId": 2}),
        "a breakpoint without a program": (
            "setBreakpoints", {"source": {"path": "a.cu"}, "breakpoints": [{"line": 1}]},
        ),
        "a breakpoint without a source": ("setBreakpoints", {}),
        "a breakpoint without a line": (
            "setBreakpoints", {"source": {"path": "a.cu"}, "breakpoints": [{}]},
        ),
        "functions of another form": ("setFunctionBreakpoints", {"breakpoints": [3]}),
        "filters of another form": ("setExceptionBreakpoints", {"filters": 3}),
        "data of another form": ("setDataBreakpoints", {"breakpoints": [{"dataId": "x"}]}),
        "a move of the console": ("evaluate", {"expression": "continue", "context": "repl"}),
        "variables of nothing": ("variables", {"variablesReference": "x"}),
        "frames of nothing": ("stackTrace", {"threadId": None}),
        "an expression of no kernel": ("evaluate", {"expression": "x"}),
        "no expression": ("evaluate", {}),
        "source of nothing": ("source", {"sourceReference": 1}),
        "pause without a program": ("pause", {"threadId": 1}),
    }  # fmt: skip
    wrong = {}
    for name, (command, arguments) in cases.items():
        response, after = messages(request(command, arguments) + request("threads"))
        check_message(response)
        if response["success"] or not response["message"] or not after["success"]:
            wrong[name] = response, after
    assert not wrong


def test_numbers_of_another_type_are_reported_by_their_names() -> None:
    values: tuple[Json, ...] = ("2", 1.5, [], True, None)
    for value in values:
        (response,) = messages(request("stackTrace", {"threadId": value}))
        check_message(response)
        assert response["message"] == f"stackTrace: threadId is {value!r}, no integer"


def test_a_watchpoint_needs_a_data_id_of_the_debugger() -> None:
    found = watchpoint_of("shared 2 16 20 tile[4]", 3, reads=True)
    assert found == Watchpoint(3, "tile[4]", "shared", 16, 20, 2, reads=True)
    for text in ("", "{}", "null", "[1]", "x", "global 0 1 2", "nowhere 0 1 2 x", "global 0 a 2 x"):
        with pytest.raises(DebuggerError, match=r"^dataId is .*: take it from dataBreakpointInfo$"):
            watchpoint_of(text, 1, reads=False)


def test_bytes_that_are_no_messages_end_the_session_with_a_reason() -> None:
    cases = {
        "junk": b"hello\r\n\r\n",
        "no length": b"Content-Length: abc\r\n\r\n{}",
        "a negative length": b"Content-Length: -5\r\n\r\n{}",
        "a large length": b"Content-Length: 99999999999\r\n\r\n{}",
        "no JSON": b"Content-Length: 5\r\n\r\n{nope",
    }
    wrong = {}
    for name, data in cases.items():
        (event,) = messages(data + request("threads"))
        if not event["body"]["output"].startswith("not the Debug Adapter Protocol: "):
            wrong[name] = event
    assert not wrong
    assert messages(b"") == messages(b"Content-Length: 50\r\n\r\n{") == []
    (response,) = messages(framed([1]) + framed(3) + framed({"type": "event"}) + request("threads"))
    assert response["success"]


def test_places_that_cannot_be_read_are_rejected() -> None:
    for text in ("", ":", "1:2:3!", "a.cu:-1", f"a.cu:{'9' * 30}", "k if ((", "k if 9 ** 9",
                 "k if f'x'", "k thread 0,0,0,0", "k if x = 3"):  # fmt: skip
        with pytest.raises(DebuggerError):
            parse_breakpoint(text, 1)
    for text in ("", "a", "1,", "1,2,3,4"):
        with pytest.raises(DebuggerError):
            coordinates(text)
    found = parse_breakpoint("a.cu:7 block 1,2 thread 3 if sum > 3 && !isnan(x[i])", 4)
    assert (found.file, found.line, found.block, found.thread) == ("a.cu", 7, (1, 2), (3,))
    assert parse_breakpoint("*", 1).kernel == "*"
