"""The debugger for editors: the Debug Adapter Protocol on streams, or on a port of this host.

https://microsoft.github.io/debug-adapter-protocol. The threads of the protocol are those of the
warp that has stopped; the frames of the host are below those of the kernel.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

from ptx.emulate.debug.stops import ANY, Breakpoint, Plan, Stop, Thread, Watchpoint

from ..errors import CudadrvError
from .commands import Commands, host_text, parse_breakpoint
from .debugger import Debugger, DebuggerError, Ended
from .program import DebuggedProgram

Body = dict[str, Any]  # JSON, as the protocol's schema has it
_CAPABILITIES: Final = (
    "supportsConfigurationDoneRequest", "supportsFunctionBreakpoints",
    "supportsConditionalBreakpoints", "supportsEvaluateForHovers", "supportsStepBack",
    "supportsExceptionInfoRequest", "supportTerminateDebuggee", "supportsTerminateRequest",
    "supportsDataBreakpoints", "supportsDisassembleRequest", "supportsSteppingGranularity",
    "supportsInstructionBreakpoints",
)  # fmt: skip
_FILTERS: Final = {"faults": "Faults of kernels", "findings": "Findings of checks"}
_REASONS: Final = {"finding": "exception", "watchpoint": "data breakpoint", "arrived": "pause"}
_SCOPES: Final = ("arguments", "locals", "shared", "registers", "warp", "host")
_MOVES: Final[Mapping[str, tuple[Plan, bool]]] = {  # whether it goes back
    "continue": (Plan(), False), "next": (Plan("line", "over"), False),
    "stepIn": (Plan("line", "in"), False), "stepOut": (Plan("line", "out"), False),
    "stepBack": (Plan("line", "over"), True), "reverseContinue": (Plan(), True),
}  # fmt: skip
_THREADS_OF_BLOCK: Final = 1024
_HOST: Final = 1  # the thread before a kernel has stopped


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
        self._numbers = self._entry = 0
        self._debugger: Debugger | None = None
        self._commands: Commands | None = None
        self._stop: Stop | None = None
        self._runner: threading.Thread | None = None
        self._frames: list[tuple[Thread, int]] = []
        self._variables: list[tuple[int, str, str]] = []  # frame, scope, expression
        self._unverified: dict[int, Breakpoint] = {}
        self._is_open = True
        self._requests: Mapping[str, Callable[[Body], Body | None]] = {
            "initialize": self._initialize, "launch": self._launch, "attach": self._launch,
            "setBreakpoints": self._set_breakpoints, "setFunctionBreakpoints": self._set_functions,
            "setInstructionBreakpoints": self._set_instructions,
            "setExceptionBreakpoints": self._set_filters, "configurationDone": self._begin,
            "dataBreakpointInfo": self._data_info, "setDataBreakpoints": self._set_data,
            "threads": self._threads, "stackTrace": self._stack, "scopes": self._scopes,
            "variables": self._list_variables, "evaluate": self._evaluate, "source": self._text,
            "disassemble": self._disassemble, "exceptionInfo": self._exception,
            "pause": self._pause, "disconnect": self._end, "terminate": self._end,
            **dict.fromkeys(_MOVES, self._move),
        }  # fmt: skip

    def run(self) -> int:
        """Serve requests until the editor leaves; return the exit status."""
        try:
            while self._is_open and (request := read_message(self._source)) is not None:
                self._serve(request)
        finally:
            if self._debugger is not None:
                self._debugger.close()
        return 0

    def _serve(self, request: Body) -> None:
        command = request["command"]
        answer: Body = {"type": "response", "request_seq": request["seq"], "command": command}
        try:
            if command not in self._requests:
                raise DebuggerError(f"the debugger has no {command}")
            body = self._requests[command]({**request.get("arguments", {}), "command": command})
            answer |= {"success": True} | ({} if body is None else {"body": body})
        except (CudadrvError, EOFError, OSError, LookupError) as error:
            answer |= {"success": False, "message": str(error),
                       "body": {"error": {"id": 1, "format": str(error)}}}  # fmt: skip
        self._send(answer)
        if command in ("launch", "attach") and answer["success"]:
            self._event("initialized")
        if command in ("disconnect", "terminate"):
            self._event("terminated")
            self._is_open = command != "disconnect"

    def _send(self, message: Body) -> None:
        with self._lock:
            self._sent += 1
            text = json.dumps({"seq": self._sent, **message}).encode()
            self._sink.write(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
            self._sink.flush()

    def _event(self, name: str, **body: Any) -> None:  # JSON
        self._send({"type": "event", "event": name, **({"body": body} if body else {})})

    @property
    def _used(self) -> Debugger:
        if self._debugger is None:
            raise DebuggerError("no program was launched")
        return self._debugger

    # The session.

    def _initialize(self, _: Body) -> Body:
        filters = [
            {"filter": name, "label": label, "default": True} for name, label in _FILTERS.items()
        ]
        return {**dict.fromkeys(_CAPABILITIES, True), "exceptionBreakpointFilters": filters}

    def _launch(self, arguments: Body) -> None:
        names = {"args": "arguments", "program": "file", "checks": "checks", "order": "order",
                 "optimised": "optimised"}  # fmt: skip
        given = {field: arguments[name] for name, field in names.items() if name in arguments}
        if "arguments" in given:
            given["arguments"] = tuple(given["arguments"])
        self._program = replace(self._program, **given)
        if not Path(self._program.file.partition("::")[0]).is_file():
            raise DebuggerError(f"program {self._program.file!r}: there is no such file")
        self._debugger = Debugger(
            self._program.command, self._program.settings, self._output
        )  # fmt: skip
        self._commands = Commands(self._debugger)
        if arguments.get("stopOnEntry"):
            entry = Breakpoint(self._number(), kernel=ANY)
            self._entry = entry.number
            self._debugger.wanted.breakpoints["entry"] = (entry,)

    def _output(self, stream: str, text: str) -> None:
        self._event("output", category=stream, output=text)

    def _begin(self, _: Body) -> None:
        self._start(Plan(), back=False)

    def _end(self, _: Body) -> None:
        if self._debugger is not None:
            self._debugger.close()

    def _start(self, plan: Plan, *, back: bool) -> None:
        """Go on in a thread of its own, so that the editor can pause meanwhile."""
        self._stop = None
        self._frames, self._variables = [], []
        self._runner = threading.Thread(target=self._go, args=(plan, back), daemon=True)
        self._runner.start()

    def _go(self, plan: Plan, back: bool) -> None:
        debugger = self._used
        try:
            end = debugger.back(plan) if back else debugger.go(plan)
        except DebuggerError as error:
            self._output("console", f"{error}\n")
            if debugger.stop is None:
                return
            end = debugger.stop
        except (EOFError, OSError):  # the session has been ended
            return
        if isinstance(end, Ended):
            self._event("exited", exitCode=end.status)
            self._event("terminated")
            return
        self._stop = end
        if self._commands is not None:
            self._commands.thread = end.thread
        self._verify()
        body: Body = {
            "reason": _REASONS.get(end.kind, end.kind), "threadId": thread_id(end.thread),
            "allThreadsStopped": True,
        }  # fmt: skip
        if end.kind == "breakpoint" and int(end.text) == self._entry:
            body["reason"] = "entry"
        elif end.kind == "breakpoint":
            body["hitBreakpointIds"] = [int(end.text)]
        elif end.text:
            body |= {"text": end.text, "description": end.text.split("\n")[0]}
        self._event("stopped", **body)

    def _move(self, arguments: Body) -> Body | None:
        plan, back = _MOVES[arguments["command"]]
        if self._stop is None:
            raise DebuggerError("the program runs")
        if plan.kind != "go":
            thread = self._thread(arguments["threadId"])
            frames = self._used.ask("frames", thread=asdict(thread))
            is_small = arguments.get("granularity") == "instruction"
            kind = "instruction" if is_small else plan.kind
            plan = Plan(kind, plan.depth, thread, max(len(frames) - 1, 0))
        self._start(plan, back=back)
        return {"allThreadsContinued": True} if arguments["command"] == "continue" else None

    def _pause(self, _: Body) -> None:
        self._used.pause()

    # Places to stop at.

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _set(self, group: str, breakpoints: list[Breakpoint]) -> Body:
        self._used.wanted.breakpoints[group] = tuple(breakpoints)
        self._unverified |= {each.number: each for each in breakpoints}
        known = self._verified(breakpoints)
        return {"breakpoints": [
            {"id": each.number, "verified": each.number in known} for each in breakpoints
        ]}  # fmt: skip

    def _set_breakpoints(self, arguments: Body) -> Body:
        source = arguments["source"]
        file = source.get("path") or source.get("name", "")
        file = "" if file.endswith(".ptx") else file
        wanted = arguments.get("breakpoints", [])
        answer = self._set(f"source {file}", [
            Breakpoint(self._number(), file, each["line"], condition=each.get("condition", ""))
            for each in wanted
        ])  # fmt: skip
        for breakpoint, each in zip(answer["breakpoints"], wanted, strict=True):
            breakpoint |= {"line": each["line"], "source": source}
        return answer

    def _set_functions(self, arguments: Body) -> Body:
        return self._set("functions", [
            replace(parse_breakpoint(each["name"], self._number()),
                    condition=each.get("condition", ""))
            for each in arguments["breakpoints"]
        ])  # fmt: skip

    def _set_instructions(self, arguments: Body) -> Body:
        return self._set("instructions", [
            Breakpoint(self._number(), line=_ptx_line(each), condition=each.get("condition", ""))
            for each in arguments["breakpoints"]
        ])  # fmt: skip

    def _set_filters(self, arguments: Body) -> None:
        self._used.wanted.faults = "faults" in arguments["filters"]
        self._used.wanted.findings = "findings" in arguments["filters"]

    def _verified(self, breakpoints: list[Breakpoint]) -> set[int]:
        if self._stop is None:
            return set()
        return {
            each.number for each in breakpoints
            if self._used.ask("verified", breakpoint=asdict(each))
        }  # fmt: skip

    def _verify(self) -> None:
        """Tell the editor which breakpoints have code by now."""
        for number in self._verified(list(self._unverified.values())):
            del self._unverified[number]
            self._event("breakpoint", reason="changed", breakpoint={"id": number, "verified": True})

    def _data_info(self, arguments: Body) -> Body:
        text, frame = arguments["name"], arguments.get("frameId", 1)
        if arguments.get("variablesReference"):
            frame, _, parent = self._variables[arguments["variablesReference"] - 1]
            text = f"{parent}{text}" if parent else text
        thread, depth = self._frames[frame - 1]
        try:
            place = self._used.ask("place", thread=asdict(thread), depth=depth, text=text)
        except DebuggerError as error:
            return {"dataId": None, "description": str(error)}
        return {"dataId": json.dumps({"name": text, **place}), "description": text,
                "accessTypes": ["write", "readWrite"]}  # fmt: skip

    def _set_data(self, arguments: Body) -> Body:
        watchpoints = [
            Watchpoint(self._number(), reads=each.get("accessType") in ("read", "readWrite"),
                       **json.loads(each["dataId"]))
            for each in arguments["breakpoints"]
        ]  # fmt: skip
        self._used.wanted.watchpoints = tuple(watchpoints)
        return {"breakpoints": [{"id": each.number, "verified": True} for each in watchpoints]}

    # The stopped threads.

    def _lanes(self) -> list[Body]:
        if self._stop is None:
            return []
        lanes: list[Body] = self._used.ask("warp", thread=asdict(self._stop.thread))
        return lanes

    def _thread(self, number: int) -> Thread:
        assert self._stop is not None
        block, thread = divmod(number - 2, _THREADS_OF_BLOCK)
        return Thread(self._stop.thread.launch, block, thread)

    def _threads(self, _: Body) -> Body:
        threads = [
            {"id": thread_id(Thread(**each["thread"])),
             "name": f"block {tuple(each['block'])} thread {tuple(each['at'])}: {each['state']}"}
            for each in self._lanes()
        ]  # fmt: skip
        return {"threads": threads or [{"id": _HOST, "name": "host"}]}

    def _stack(self, arguments: Body) -> Body:
        if self._stop is None:
            return {"stackFrames": [], "totalFrames": 0}
        thread = self._thread(arguments["threadId"])
        frames = []
        for depth, frame in enumerate(self._used.ask("frames", thread=asdict(thread))):
            self._frames.append((thread, depth))
            place = _source(frame)
            frames.append({
                "id": len(self._frames), "name": frame["function"], "column": 1,
                "instructionPointerReference": f"ptx:{frame['module']}:{frame['ptx']}", **place,
            })  # fmt: skip
        for file, line, name in self._used.ask("host")["frames"]:
            self._frames.append((thread, 0))
            frames.append({
                "id": len(self._frames), "name": f"{name} (host)", "line": line, "column": 1,
                "source": {"name": Path(file).name, "path": file}, "presentationHint": "subtle",
            })  # fmt: skip
        first = arguments.get("startFrame", 0)
        last = first + (arguments.get("levels") or len(frames))
        return {"stackFrames": frames[first:last], "totalFrames": len(frames)}

    def _scopes(self, arguments: Body) -> Body:
        scopes = []
        for name in _SCOPES:
            self._variables.append((arguments["frameId"], name, ""))
            scope = {"name": name.capitalize(), "variablesReference": len(self._variables),
                     "expensive": name in ("registers", "warp", "host")}  # fmt: skip
            hint = name if name in ("arguments", "locals", "registers") else None
            scopes.append(scope | ({"presentationHint": hint} if hint else {}))
        return {"scopes": scopes}

    def _list_variables(self, arguments: Body) -> Body:
        frame, scope, text = self._variables[arguments["variablesReference"] - 1]
        thread, depth = self._frames[frame - 1]
        where = {"thread": asdict(thread), "depth": depth}
        if scope == "warp":
            listed = [{"name": f"lane {each['thread']['number'] % 32}", "value": each["state"]}
                      for each in self._lanes()]  # fmt: skip
        elif scope == "host":
            text = host_text(self._used.ask("host"))
            listed = [{"name": str(n), "value": line} for n, line in enumerate(text.split("\n"))]
        elif text:
            first, count = arguments.get("start", 0), arguments.get("count") or 100
            listed = self._used.ask("children", text=text, first=first, count=count, **where)
        else:
            listed = self._used.ask("variables", scope=scope, **where)
        return {"variables": [self._variable(frame, scope, each) for each in listed]}

    def _variable(self, frame: int, scope: str, shown: Body) -> Body:
        variable = {"name": shown["name"], "value": shown["value"], "variablesReference": 0}
        if "text" in shown:
            variable["evaluateName"] = shown["text"]
        if "type" in shown:
            variable["type"] = shown["type"]
        if shown.get("elements") or shown.get("members"):
            self._variables.append((frame, scope, shown["text"]))
            variable["variablesReference"] = len(self._variables)
            variable["indexedVariables"] = shown["elements"]
            variable["namedVariables"] = shown["members"]
        return variable

    def _evaluate(self, arguments: Body) -> Body:
        text = arguments["expression"]
        if self._stop is None or self._commands is None:
            raise DebuggerError("the program runs")
        if arguments.get("context") == "repl" and self._commands.is_query(text):
            return {"result": self._commands.run(text), "variablesReference": 0}
        frame = arguments.get("frameId")
        if frame is None:
            self._frames.append((self._stop.thread, 0))
            frame = len(self._frames)
        thread, depth = self._frames[frame - 1]
        shown = self._used.ask("evaluate", thread=asdict(thread), depth=depth, text=text)
        variable = self._variable(frame, "locals", shown)
        keys = ("type", "variablesReference", "indexedVariables", "namedVariables")
        return {"result": shown["value"]} | {key: variable[key] for key in keys if key in variable}

    def _text(self, arguments: Body) -> Body:
        return {"content": self._used.ask("source", number=arguments["sourceReference"])}

    def _disassemble(self, arguments: Body) -> Body:
        module = int(arguments["memoryReference"].split(":")[1])
        lines = self._used.ask("source", number=module).split("\n")
        first = _ptx_line({**arguments, "instructionReference": arguments["memoryReference"]})
        first += arguments.get("instructionOffset", 0)
        return {"instructions": [
            {"address": hex(line if line > 0 else 0),
             "instruction": lines[line - 1] if 0 < line <= len(lines) else ""}
            for line in range(first, first + arguments["instructionCount"])
        ]}  # fmt: skip

    def _exception(self, _: Body) -> Body:
        if self._stop is None:
            raise DebuggerError("the program runs")
        return {"exceptionId": self._stop.kind, "description": self._stop.text,
                "breakMode": "always"}  # fmt: skip


def thread_id(thread: Thread) -> int:
    """Return the number of a thread in the protocol; 1 is the host."""
    return thread.block * _THREADS_OF_BLOCK + thread.number + 2


def _ptx_line(arguments: Body) -> int:
    """Return the line of an instruction's reference `ptx:MODULE:LINE`, or of an address."""
    reference: str = arguments["instructionReference"]
    line = int(reference.rpartition(":")[2], 10 if ":" in reference else 0)
    offset: int = arguments.get("offset", 0)
    return line + offset


def _source(frame: Body) -> Body:
    """Return the line of a frame: of a file, of a source that was compiled, or of the PTX."""
    if frame["path"]:
        source = {"name": Path(frame["path"]).name, "path": frame["path"]}
        return {"line": frame["line"], "source": source}
    if frame["line"] is not None:
        source = {"name": Path(frame["file"]).name, "sourceReference": frame["source"]}
        return {"line": frame["line"], "source": source}
    name = f"{frame['kernel']}.ptx"
    return {"line": frame["ptx"], "source": {"name": name, "sourceReference": frame["module"]}}


def read_message(source: BinaryIO) -> Body | None:
    """Return the next message of a stream; None at its end."""
    nbytes = 0
    while (header := source.readline()).strip():
        name, _, value = header.partition(b":")
        if name.lower() == b"content-length":
            nbytes = int(value)
    text = source.read(nbytes) if nbytes else b""
    return json.loads(text) if text else None


def serve_streams(program: DebuggedProgram) -> int:
    """Serve an editor on standard input and output."""
    return Adapter(program, sys.stdin.buffer, sys.stdout.buffer).run()


def serve_port(program: DebuggedProgram, port: int, show: Callable[[str], None]) -> int:
    """Serve one editor on a port of 127.0.0.1; 0 chooses one."""
    with socket.create_server(("127.0.0.1", port)) as server:
        show(f"listening on 127.0.0.1:{server.getsockname()[1]}")
        connection, _ = server.accept()
        with connection, connection.makefile("rb") as source, connection.makefile("wb") as sink:
            return Adapter(program, source, sink).run()
