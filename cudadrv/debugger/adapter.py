"""The debugger for editors: the Debug Adapter Protocol on streams, or on a port of this host.

https://microsoft.github.io/debug-adapter-protocol. The threads of the protocol are those of the
warp that has stopped; the frames of the host are below those of the kernel.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any, BinaryIO, Final

from ptx.emulate.debug.expression import parsed
from ptx.emulate.debug.stops import ANY, Breakpoint, Stop
from ptx.errors import PtxError

from ..errors import CudadrvError
from .debugger import LOOK_S, DebuggedProgram, Debugger, DebuggerError, on_interrupt
from .inspector import WRONG, Body, text_of, thread_id
from .terminal import Commands, is_move, parse_breakpoint, place_of, watchpoint_of, word_of

_CAPABILITIES: Final = (
    "supportsConfigurationDoneRequest", "supportsFunctionBreakpoints",
    "supportsConditionalBreakpoints", "supportsEvaluateForHovers", "supportsStepBack",
    "supportsDataBreakpoints", "supportsDisassembleRequest", "supportsSteppingGranularity",
    "supportsInstructionBreakpoints",
)  # fmt: skip
_REASONS: Final = {"finding": "exception", "watchpoint": "data breakpoint", "arrived": "pause"}
_MOVES: Final[Mapping[str, str]] = {
    "continue": "continue", "next": "next", "stepIn": "step", "stepOut": "finish",
    "stepBack": "rnext", "reverseContinue": "rcontinue",
}  # fmt: skip
_ASKED: Final = (
    "stackTrace", "scopes", "variables", "source", "disassemble", "dataBreakpointInfo",
)  # fmt: skip
_INTEGERS: Final = {
    "threadId", "frameId", "variablesReference", "sourceReference", "start", "count", "startFrame",
    "levels", "instructionCount", "instructionOffset", "offset",
}  # fmt: skip
_PROGRAM: Final = {"file": "program", "arguments": "args"}  # other names are equal
_HOST: Final = 1  # the thread before a kernel has stopped
_ENTRY: Final = 0  # the number of the breakpoint of stopOnEntry
_MOST_BYTES: Final = 1 << 24


class Adapter:
    """One session of an editor.

    Args:
        program: what `attach` debugs, and what `launch` changes.
        source, sink: the streams of the protocol.
    """

    def __init__(self, program: DebuggedProgram, source: BinaryIO, sink: BinaryIO) -> None:
        self._program = program
        self._source, self._sink = source, sink
        self._lock = threading.Lock()
        self._sent = 0
        self._launched: Commands | None = None
        self._stop: Stop | None = None
        self._has_begun = False
        self._unverified: dict[int, Breakpoint] = {}
        self._requests: Mapping[str, Callable[[Body], Body | None]] = {
            "initialize": lambda _: dict.fromkeys(_CAPABILITIES, True),
            "launch": self._launch, "attach": self._launch, "configurationDone": self._begin,
            "setBreakpoints": self._set_breakpoints, "setFunctionBreakpoints": self._set_functions,
            "setInstructionBreakpoints": self._set_instructions,
            "setDataBreakpoints": self._set_data, "threads": self._threads,
            "evaluate": self._evaluate, "pause": self._pause, "disconnect": self._end,
            **dict.fromkeys(_MOVES, self._move), **dict.fromkeys(_ASKED, self._ask),
        }  # fmt: skip

    def run(self) -> int:
        """Serve requests until the editor leaves; return the exit status."""
        try:
            while (request := read_message(self._source)) is not None:
                if isinstance(request, dict) and request.get("type") == "request":
                    self._serve(request)
                    if request.get("command") == "disconnect":
                        break
        except DebuggerError as error:
            self._output("console", f"{error}\n")
            return 1
        finally:
            self._end({})
        return 0

    def _serve(self, request: Body) -> None:
        command, arguments = str(request.get("command")), request.get("arguments")
        answer: Body = {"type": "response", "command": command}
        answer["request_seq"] = request.get("seq", 0)
        try:
            if command not in self._requests:
                raise DebuggerError(f"the debugger has no {command}")
            arguments = arguments if isinstance(arguments, dict) else {}
            for name in _INTEGERS & arguments.keys():
                if type(arguments[name]) is not int:
                    raise DebuggerError(f"{command}: {name} is {arguments[name]!r}, no integer")
            body = self._requests[command]({**arguments, "command": command})
            answer |= {"success": True, "body": body or {}}
        except (CudadrvError, PtxError, OSError, *WRONG) as error:
            text = text_of(error, command)
            error_body = {"error": {"id": 1, "format": text}}
            answer |= {"success": False, "message": text, "body": error_body}
        self._send(answer)
        if command in ("launch", "attach") and answer["success"]:
            self._event("initialized")
        if command == "disconnect":
            self._event("terminated")

    def _send(self, message: Body) -> None:
        with self._lock, suppress(OSError, ValueError):  # the editor may have left
            self._sent += 1
            text = json.dumps({"seq": self._sent, **message}).encode()
            self._sink.write(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
            self._sink.flush()

    def _event(self, name: str, **body: Any) -> None:  # JSON
        self._send({"type": "event", "event": name, "body": body})

    def _output(self, stream: str, text: str) -> None:
        self._event("output", category=stream, output=text)

    @property
    def _commands(self) -> Commands:
        if self._launched is None:
            raise DebuggerError("no program was launched")
        return self._launched

    @property
    def _debugger(self) -> Debugger:
        return self._commands.debugger

    # The session.

    def _launch(self, arguments: Body) -> None:
        if self._launched is not None:
            raise DebuggerError("a program was launched in this session already")
        for each in fields(DebuggedProgram):
            name, former = _PROGRAM.get(each.name, each.name), getattr(self._program, each.name)
            value = arguments.get(name, former)
            value = tuple(map(str, value)) if isinstance(value, list) else value
            if type(value) is not type(former):
                raise DebuggerError(f"launch: {name} is {value!r}")
            # Of the type of the field, by the comparison above.
            self._program = replace(self._program, **{each.name: value})  # type: ignore[arg-type]
        self._launched = Commands(Debugger(self._program, self._output))
        if arguments.get("stopOnEntry"):
            self._debugger.breakpoints["entry"] = (Breakpoint(_ENTRY, kernel=ANY),)

    def _begin(self, _: Body) -> None:
        if self._has_begun:
            raise DebuggerError("the program has begun")
        self._start("continue", None)
        self._has_begun = True

    def _end(self, _: Body) -> None:
        if self._launched is not None:
            self._debugger.close()

    def _start(self, word: str, thread: int | None) -> None:
        """Go on in a thread of its own, so that the editor can pause meanwhile."""
        self._debugger.is_interrupted = False
        self._stop = None
        threading.Thread(target=self._go, args=(word, thread), daemon=True).start()

    def _pause(self, _: Body) -> None:
        self._require_program()
        if self._debugger.stop is None or self._stop is None:  # it runs, or is about to
            self._debugger.pause()

    def _go(self, word: str, thread: int | None) -> None:
        debugger = self._debugger
        try:
            end = debugger.move(word, thread)
        except DebuggerError as error:
            self._output("console", f"{error}\n")
            if debugger.stop is None:
                return
            end = debugger.stop
        if end is None:
            self._event("exited", exitCode=debugger.status)
            self._event("terminated")
            return
        self._commands.choose(thread_id(end.thread))
        self._verify()
        self._stop = end
        body: Body = {"threadId": thread_id(end.thread), "allThreadsStopped": True}
        body["reason"] = _REASONS.get(end.kind, end.kind)
        if end.kind == "breakpoint" and end.number == _ENTRY:
            body["reason"] = "entry"
        elif end.kind == "breakpoint":
            body["hitBreakpointIds"] = [end.number]
        if end.text:
            body |= {"text": end.text, "description": end.text.split("\n")[0]}
        self._event("stopped", **body)

    def _require_program(self) -> None:
        if self._debugger.status is not None:
            raise DebuggerError("the program has ended")

    def _require_stop(self) -> None:
        self._require_program()
        if self._stop is None:
            raise DebuggerError("the program runs" if self._has_begun else "no kernel is stopped")

    def _move(self, arguments: Body) -> Body | None:
        self._require_stop()
        word = _MOVES[arguments["command"]]
        is_small = arguments.get("granularity") == "instruction"
        word += "i" * (is_small and word in ("next", "step", "rnext"))
        self._start(word, None if word.endswith("continue") else int(arguments["threadId"]))
        return {"allThreadsContinued": True} if word == "continue" else None

    # Places to stop at.

    def _set(self, group: str, breakpoints: list[Breakpoint]) -> list[Body]:
        for each in breakpoints:
            if each.condition:
                parsed(each.condition)
        self._debugger.breakpoints[group] = tuple(breakpoints)
        self._unverified |= {each.number: each for each in breakpoints}
        known = self._verified(breakpoints)
        self._changed()
        return [place_of(each, known.get(each.number)) for each in breakpoints]

    def _changed(self) -> None:
        if self._has_begun and self._stop is None:
            self._debugger.has_changed = True

    def _breakpoint(self, arguments: Body, **place: Any) -> Breakpoint:  # of several types
        condition = str(arguments.get("condition") or "")
        return Breakpoint(self._debugger.number(), condition=condition, **place)

    def _set_breakpoints(self, arguments: Body) -> Body:
        source, wanted = arguments["source"], arguments.get("breakpoints") or []
        file = str(source.get("path") or source.get("name") or "")
        file = "" if file.endswith(".ptx") else file
        breakpoints = [self._breakpoint(e, file=file, line=int(e["line"])) for e in wanted]
        found = self._set(f"source {file}", breakpoints)
        return {"breakpoints": [{**each, "source": source} for each in found]}

    def _set_functions(self, arguments: Body) -> Body:
        found = []
        for each in arguments["breakpoints"]:
            place = parse_breakpoint(each["name"], self._debugger.number())
            found.append(replace(place, condition=str(each.get("condition") or place.condition)))
        return {"breakpoints": self._set("functions", found)}

    def _set_instructions(self, arguments: Body) -> Body:
        found = [self._breakpoint(each, line=_ptx_line(each)) for each in arguments["breakpoints"]]
        return {"breakpoints": self._set("instructions", found)}

    def _set_data(self, arguments: Body) -> Body:
        watchpoints = []
        for each in arguments["breakpoints"]:
            reads = each.get("accessType") in ("read", "readWrite")
            number = self._debugger.number()
            watchpoints.append(watchpoint_of(str(each["dataId"]), number, reads=reads))
        self._debugger.wanted.watchpoints = tuple(watchpoints)
        self._changed()
        return {"breakpoints": [{"id": each.number, "verified": True} for each in watchpoints]}

    def _verified(self, breakpoints: list[Breakpoint]) -> dict[int, int]:
        try:
            return dict(self._debugger.ask("verified", breakpoints=breakpoints))
        except DebuggerError:  # no kernel is stopped
            return {}

    def _verify(self) -> None:
        """Report which breakpoints have code by now."""
        for number, line in self._verified(list(self._unverified.copy().values())).items():
            place = place_of(self._unverified.pop(number), line)
            self._event("breakpoint", reason="changed", breakpoint=place)

    # The stopped threads.

    def _ask(self, arguments: Body) -> Body:
        if arguments["command"] != "source":
            self._require_stop()
        answer: Body = self._debugger.ask(**arguments)
        return answer

    def _threads(self, arguments: Body) -> Body:
        if self._stop is None:
            return {"threads": [{"id": _HOST, "name": "host"}]}
        return self._ask(arguments)

    def _evaluate(self, arguments: Body) -> Body:
        text = str(arguments["expression"])
        word = word_of(text)[0] if arguments.get("context") == "repl" else ""
        if is_move(word):
            self._require_stop()
            self._event("continued", threadId=self._commands.thread, allThreadsContinued=True)
            self._start(word, self._commands.thread)
            return {"result": "", "variablesReference": 0}
        if self._commands.has(word):
            return {"result": self._commands.run(text), "variablesReference": 0}
        return self._ask(arguments)


def _ptx_line(arguments: Body) -> int:
    """Return the line of an instruction's reference `ptx:MODULE:LINE`, or of an address."""
    reference: str = arguments["instructionReference"]
    line = int(reference.rpartition(":")[2], 10 if ":" in reference else 0)
    offset: int = arguments.get("offset", 0)
    return line + offset


def read_message(source: BinaryIO) -> Any:  # JSON
    """Return the next message of a stream; None at its end.

    Raises:
        DebuggerError: it has no length, or is not JSON.
    """
    nbytes = -1
    try:
        while (header := source.readline(_MOST_BYTES)).strip():
            name, _, value = header.partition(b":")
            if name.strip().lower() == b"content-length":
                nbytes = int(value)
        if not header:
            return None
        if not 0 <= nbytes <= _MOST_BYTES:
            raise ValueError("a message has no Content-Length, or is too long")
        text = source.read(nbytes)
        return json.loads(text) if len(text) == nbytes else None
    except ValueError as error:
        raise DebuggerError(f"not the Debug Adapter Protocol: {error}") from None
    except OSError:  # the editor has left
        return None


def serve_port(program: DebuggedProgram, port: int, show: Callable[[str], None]) -> int:
    """Serve editors on a port of 127.0.0.1, one after another, until Ctrl-C; 0 chooses one."""
    ended: list[bool] = []
    with on_interrupt(lambda: ended.append(True)):
        while not ended:
            with socket.create_server(("127.0.0.1", port)) as server:
                port = server.getsockname()[1]
                show(f"listening on 127.0.0.1:{port}")
                server.settimeout(LOOK_S)
                connection: socket.socket | None = None
                while connection is None and not ended:
                    with suppress(TimeoutError):
                        connection, _ = server.accept()
            if connection is not None:
                _serve_connection(program, connection, ended)
    return 0


def _serve_connection(
    program: DebuggedProgram, connection: socket.socket, ended: list[bool]
) -> None:
    """Serve an editor until it leaves, or a list is no longer empty."""
    with connection, connection.makefile("rb") as source, connection.makefile("wb") as sink:
        session = threading.Thread(target=Adapter(program, source, sink).run)
        session.start()
        try:
            while session.is_alive() and not ended:
                session.join(LOOK_S)
        finally:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            session.join()
