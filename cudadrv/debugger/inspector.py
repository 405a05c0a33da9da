"""What a stopped process answers: in bodies of the Debug Adapter Protocol, and as lines of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ptx.emulate.check.findings import demangled
from ptx.emulate.debug.debug_info import DebugInfo
from ptx.emulate.debug.expression import Evaluator, ExpressionError, Place, Result
from ptx.emulate.debug.frames import Frame, StoppedLaunch
from ptx.emulate.debug.stops import CodePoint, Stop, Stops, Thread, lane_at
from ptx.emulate.model.geometry import WARP
from ptx.isa.module import PtxModule

from ..driver.driver_selection import current_or_none
from ..emulator.emulator import Emulator
from ..emulator.hosting import work_of
from .sources import Source, Sources, user_frames

Body = dict[str, Any]  # JSON, as the protocol's schema has it
TOLD: Final = ("arguments", "locals", "shared", "registers", "warp", "barriers", "host")
_STATES: Final = ("warp", "barriers", "host")
WRONG: Final = (LookupError, TypeError, ValueError, AttributeError)
"""What requests raise whose arguments are missing, or of another form."""
_THREADS_OF_BLOCK: Final = 1024
_MOST_FRAMES: Final = 5
_PAGE, _MOST_ROWS = 100, 10_000  # of an array, in an answer


class ModuleTexts:
    """The sources and the debug information of the modules that were launched."""

    def __init__(self) -> None:
        self.sources: Sources = Sources()
        self._infos: dict[int, DebugInfo] = {}
        self._have_sources: dict[int, bool] = {}
        self._texts: list[str] = []

    def info(self, module: PtxModule) -> DebugInfo:
        """Return the debug information of a module."""
        if id(module) not in self._infos:
            self._infos[id(module)] = DebugInfo(module.text)
        return self._infos[id(module)]

    def evaluator(self, frame: Frame) -> Evaluator:
        """Return what evaluates expressions in a frame."""
        return Evaluator(frame, self.info(frame.scope.layout.module))

    def describe(self, point: CodePoint) -> None:
        """Complete what is known of an instruction."""
        module, function = point.scope.layout.module, point.scope.function.name
        if id(module) not in self._have_sources:
            found = (self.sources.find("", file) for file in module.files.values())
            self._have_sources[id(module)] = any(found)
        name = self.info(module).names.get(function, "")
        point.names = (*point.names, name, name.partition("<")[0])
        source = None if point.file is None else self.sources.find(function, point.file)
        if self._have_sources[id(module)]:
            point.is_known = source is not None and point.line is not None
        if source is not None and source.file and point.line is not None:
            point.alias = source.file, point.line + source.offset

    def source_of(self, frame: Frame) -> tuple[Source | None, int]:
        """Return the source and the line of a frame; None and the line in the PTX without one."""
        file, line = frame.source
        source = None if file is None else self.sources.find(frame.scope.function.name, file)
        return (None, frame.ptx_line) if source is None or not line else (source, line)

    def number_of(self, text: str) -> int:
        """Return the number of a text, from 1 on."""
        if text not in self._texts:
            self._texts.append(text)
        return self._texts.index(text) + 1

    def text(self, number: int) -> str:
        """Return the text of a number."""
        if not 0 < number <= len(self._texts):
            raise LookupError("there is no such source")
        return self._texts[number - 1]


class Inspector:
    """Answers questions about one stop.

    Attributes:
        answers: by the commands of the protocol, and a few of our own.
    """

    def __init__(self, stop: Stop, stops: Stops, texts: ModuleTexts) -> None:
        self._stop, self._stops, self._texts = stop, stops, texts
        self._launch = StoppedLaunch(stops)
        self._frames: list[Frame | None] = []
        self._variables: list[tuple[int, str, str]] = []  # frame, scope, expression
        self.answers: Mapping[str, Callable[[Body], Any]] = {  # of JSON
            "threads": self._list_threads, "stackTrace": self._stack, "scopes": self._scopes,
            "variables": self._list_variables, "evaluate": self._evaluate, "source": self._source,
            "disassemble": self._disassemble, "dataBreakpointInfo": self._data_info,
            "info": self._info, "where": self._where,
            "list": self._list, "thread": self._find, "depth": self._depth,
            "verified": lambda arguments: {
                each.number: line
                for each in arguments["breakpoints"]
                if (line := stops.line_of(each)) is not None
            },
        }  # fmt: skip

    # Threads and frames.

    def _thread(self, arguments: Body) -> Thread:
        number = arguments.get("threadId", thread_id(self._stop.thread))
        thread = thread_of(number, self._stop.thread.launch)
        lane = thread.lane_in(self._launch.fibre, thread.launch)
        if lane is None or thread.number >= self._launch.geometry.threads_per_block:
            raise LookupError(f"thread {number} is in no block that runs now")
        return thread

    def _named(self, thread: Thread) -> str:
        blocks = self._launch.fibre.blocks
        lane = thread.lane_in(self._launch.fibre, thread.launch)
        assert lane is not None
        return f"block {blocks.block_of(lane)}, thread {blocks.thread_of(lane)}"

    def _list_threads(self, _: Body) -> Body:
        return {
            "threads": [
                {"id": thread_id(each.thread), "name": f"{self._named(each.thread)}: {each.state}"}
                for each in self._launch.warp_of(self._stop.thread)
            ]
        }

    def _find(self, arguments: Body) -> int:
        """Return the number of a thread by its coordinates, by default in the block of another."""
        blocks, block = self._launch.fibre.blocks, arguments["block"]
        if block is None:
            lane = self._thread(arguments).lane_in(self._launch.fibre, self._stop.thread.launch)
            block = blocks.block_of(lane or 0)
        lane = lane_at(blocks, block, arguments["thread"])
        if lane is None:
            raise LookupError(
                f"block {block} is not among those that run now, or has no {arguments['thread']}"
            )
        return thread_id(self._launch.launch.thread_of(blocks, lane))

    def _depth(self, arguments: Body) -> int:
        return max(len(self._launch.frames(self._thread(arguments))) - 1, 0)

    def _number(self, arguments: Body) -> int:
        """Return the number of a frame: its own, or by its depth in the calls of a thread."""
        number: int | None = arguments.get("frameId")
        if number is None:
            frames, depth = self._launch.frames(self._thread(arguments)), arguments.get("depth", 0)
            if not 0 <= depth < len(frames):
                reason = "no such frame" if frames else "the thread is not in a kernel"
                raise LookupError(reason)
            self._frames.append(frames[depth])
            number = len(self._frames)
        return number

    def _frame(self, number: int) -> Frame:
        frame = self._frames[number - 1] if 0 < number <= len(self._frames) else None
        if frame is None:
            raise LookupError("the frame has no variables")
        return frame

    def _name(self, frame: Frame) -> str:
        function, info = frame.scope.function.name, self._texts.info(frame.scope.layout.module)
        return info.names.get(function) or demangled(function)

    def _stack(self, arguments: Body) -> Body:
        frames: list[Body] = []

        def add(frame: Frame | None, name: str, line: int, source: Body, **more: str) -> None:
            self._frames.append(frame)
            body = {"id": len(self._frames), "name": name, "line": line, "column": 1}
            frames.append({**body, "source": source, **more})

        for frame in self._launch.frames(self._thread(arguments)):
            reference = self._texts.number_of(frame.scope.layout.module.text)
            source, line = self._texts.source_of(frame)
            if source is None:
                place = {"name": f"{frame.scope.kernel}.ptx", "sourceReference": reference}
            elif path := source.path:
                place, line = {"name": Path(path).name, "path": path}, line + source.offset
            else:
                number = self._texts.number_of(source.text)
                place = {"name": Path(source.name).name, "sourceReference": number}
            pointer = f"ptx:{reference}:{frame.ptx_line}"
            add(frame, self._name(frame), line, place, instructionPointerReference=pointer)
        for file, line, name in user_frames():
            place = {"name": Path(file).name, "path": file}
            add(None, f"{name} (host)", line, place, presentationHint="subtle")
        first = arguments.get("startFrame", 0)
        last = first + (arguments.get("levels") or len(frames))
        return {"stackFrames": frames[first:last], "totalFrames": len(frames)}

    # Variables.

    def _scopes(self, arguments: Body) -> Body:
        scopes = []
        number = arguments["frameId"]
        if not 0 < number <= len(self._frames):
            raise LookupError("there is no such frame")
        for name in TOLD:
            self._variables.append((number, name, ""))
            scope = {"name": name.capitalize(), "variablesReference": len(self._variables)}
            scope["expensive"] = name in ("registers", *_STATES)
            has_hint = name in ("arguments", "locals", "registers")
            scopes.append(scope | {"presentationHint": name} if has_hint else scope)
        return {"scopes": scopes}

    def _list_variables(self, arguments: Body) -> Body:
        reference = arguments["variablesReference"]
        if not 0 < reference <= len(self._variables):
            raise LookupError("there are no such variables")
        number, scope, text = self._variables[reference - 1]
        if not text:
            return {"variables": list(self._rows(scope, number, self._stop.thread))}
        evaluator = self._texts.evaluator(self._frame(number))
        first = max(arguments.get("start", 0), 0)
        count = min(arguments.get("count") or _PAGE, _MOST_ROWS)
        listed = evaluator.children(evaluator.evaluate(text), first, count)
        shown = (
            self._variable(number, evaluator, name, f"{text}{name}", each) for name, each in listed
        )
        return {"variables": list(shown)}

    def _rows(self, scope: str, number: int, thread: Thread) -> Iterator[Body]:
        """Yield the variables of a scope of a frame, or of a thread's state."""
        if scope in _STATES:
            lines = {"warp": self._warp, "barriers": self._barriers, "host": _host}[scope](thread)
            yield from (_without_parts(str(at), line) for at, line in enumerate(lines))
            return
        evaluator = self._texts.evaluator(self._frame(number))
        if scope == "registers":
            yield from (_without_parts(name, value) for name, value in evaluator.registers())
            return
        is_parameter = evaluator.variables()
        names = [name for name in is_parameter if is_parameter[name] == (scope == "arguments")]
        for name in evaluator.shared() if scope == "shared" else names:
            try:
                yield self._variable(number, evaluator, name, name, evaluator.evaluate(name))
            except ExpressionError as error:
                yield _without_parts(name, f"<{error}>")

    def _variable(
        self, frame: int, evaluator: Evaluator, name: str, text: str, result: Result
    ) -> Body:
        body = _without_parts(name, evaluator.shown(result)) | {"evaluateName": text}
        if isinstance(result, Place):
            body["type"] = result.type.name
            elements, members = evaluator.count(result), len(result.type.fields)
            if elements or members:
                self._variables.append((frame, "", text))
                body |= {
                    "variablesReference": len(self._variables),
                    "indexedVariables": elements,
                    "namedVariables": members,
                }
        return body

    def _evaluate(self, arguments: Body) -> Body:
        text, number = arguments["expression"], self._number(arguments)
        evaluator = self._texts.evaluator(self._frame(number))
        body = self._variable(number, evaluator, text, text, evaluator.evaluate(text))
        del body["name"], body["evaluateName"]  # of variables alone
        return {"result": body.pop("value"), **body}

    def _barriers(self, _: Thread) -> list[str]:
        return self._launch.barriers() or ["no thread waits at a barrier"]

    def _data_info(self, arguments: Body) -> Body:
        text = arguments["name"]
        if arguments.get("variablesReference"):
            number, _, parent = self._variables[arguments["variablesReference"] - 1]
            text = f"{parent}{text}"
        else:
            number = self._number(arguments)
        try:
            place, block = self._texts.evaluator(self._frame(number)).watched(text)
        except ExpressionError as error:
            return {"dataId": None, "description": str(error)}
        first = int(place.addresses[0])
        data = f"{place.space} {block} {first} {first + (place.type.nbytes or 1)} {text}"
        return {"dataId": data, "description": text, "accessTypes": ["write", "readWrite"]}

    # Texts.

    def _source(self, arguments: Body) -> Body:
        return {"content": self._texts.text(arguments["sourceReference"])}

    def _disassemble(self, arguments: Body) -> Body:
        _, module, line = arguments["memoryReference"].split(":")
        lines = self._texts.text(int(module)).split("\n")
        first = int(line) + arguments.get("offset", 0) + arguments.get("instructionOffset", 0)
        every = range(first, first + min(arguments["instructionCount"], len(lines)))
        texts = [lines[line - 1] if 0 < line <= len(lines) else "" for line in every]
        instructions = [
            {"address": hex(max(line, 0)), "instruction": text}
            for line, text in zip(every, texts, strict=True)
        ]
        return {"instructions": instructions}

    def _info(self, arguments: Body) -> str:
        """Return the values of a scope as lines."""
        what: str = arguments["what"]
        is_state = what in _STATES
        number = 0 if is_state else self._number(arguments)
        rows = self._rows(what, number, self._thread(arguments))
        lines = [e["value"] if is_state else f"{e['name']} = {e['value']}" for e in rows]
        return "\n".join(lines) or "none"

    def _where(self, arguments: Body) -> str:
        """Return a thread's state and some of its calls."""
        thread, frames = self._thread(arguments), self._stack(arguments)["stackFrames"]
        lines = [f"{self._named(thread)}: {self._launch.state_of(thread).state}"]
        for number, body in enumerate(frames[: arguments["end"]]):
            pointer: str = body.get("instructionPointerReference", "")
            if pointer and number >= arguments["first"]:
                _, module, ptx_line = pointer.split(":")
                text = self._texts.text(int(module)).split("\n")[int(ptx_line) - 1].strip()
                place, source = f"PTX line {ptx_line}", body["source"]["name"]
                place = place if source.endswith(".ptx") else f"{source}:{body['line']} ({place})"
                lines.append(f"#{number} {body['name']} at {place}: {text * (ptx_line != '0')}")
        return "\n".join(lines)

    def _list(self, arguments: Body) -> str:
        """Return the lines around a frame's line."""
        frame = self._frame(self._number(arguments))
        source, line = self._texts.source_of(frame)
        text, shift = frame.scope.layout.module.text, 0
        if source is not None:
            text, shift = source.text, source.offset
        first = max(line - 5, 1)
        lines = text.split("\n")[first - 1 : line + 4]
        return "\n".join(
            f"{'>' if number == line else ' '}{number + shift:5} {each}"
            for number, each in enumerate(lines, first)
        )

    def _warp(self, thread: Thread) -> list[str]:
        """Return the states of a warp's threads, equal ones together."""
        groups: dict[tuple[str, int], list[int]] = {}
        for lane in self._launch.warp_of(thread):
            line = 0 if lane.instruction is None else lane.instruction.line
            groups.setdefault((lane.state, line), []).append(lane.thread.number % WARP)
        return [
            f"lanes {_ranges(numbers)}: {state}" + (f", next PTX line {line}" if line else "")
            for (state, line), numbers in groups.items()
        ]


def text_of(error: Exception, command: str) -> str:
    """Return what was wrong with a request."""
    return f"{command}: no {error}" if isinstance(error, KeyError) else str(error)


def thread_id(thread: Thread) -> int:
    """Return the number of a thread in the protocol; 1 is the host."""
    return thread.block * _THREADS_OF_BLOCK + thread.number + 2


def thread_of(number: int, launch: int) -> Thread:
    """Return the thread of a number."""
    return Thread(launch, *divmod(number - 2, _THREADS_OF_BLOCK))


def _without_parts(name: str, value: str) -> Body:
    return {"name": name, "value": value, "variablesReference": 0}


def _host(_: Thread) -> list[str]:
    """Return the host's calls, and what is queued."""
    driver = current_or_none()
    api = None if driver is None else driver.api
    work = work_of(api) if isinstance(api, Emulator) else []
    return [
        *(
            f"the host is in {name} at {file}:{line}"
            for file, line, name in user_frames()[:_MOST_FRAMES]
        ),
        *(
            f"{each['kind']} {each['number']} of stream {each['stream']} "
            f"{'runs' if each['is_running'] else 'has not run'}, queued at {each['call']}"
            for each in work
        ),
    ]


def _ranges(numbers: list[int]) -> str:
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ", ".join("-".join(map(str, part)) for part in parts)
