"""A client of the Debug Adapter Protocol, which checks all messages by the protocol's schema.

`debug_adapter_protocol.json` has the definitions of debugAdapterProtocol.json 1.x, without their
descriptions, from https://github.com/microsoft/debug-adapter-protocol (MIT and CC BY 4.0, Microsoft
Corporation).
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from queue import Queue
from types import TracebackType
from typing import Any, Final, Self

from tests.patience import SECONDS

Json = Any  # of the protocol
ADAPTER: Final = (sys.executable, "-m", "cudadrv", "debug", "--adapter")
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}
_LARGEST: Final = 2**31 - 1  # of references, by the text of the protocol


class Client:
    """An editor, with a debugger of its own.

    Attributes:
        log: all messages, in their order.
        process: the debugger.
    """

    def __init__(self, *arguments: str, command: Sequence[str] = ADAPTER) -> None:
        self.log: list[Json] = []
        self._sequence = 0
        self._messages: Queue[Json] = Queue()
        self.process = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(SECONDS)
        self._reader.join(SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def request(self, command: str, **arguments: Json) -> Json:
        """Return the body of the response; None if it has none."""
        response = self.response(command, **arguments)
        assert response["success"], response
        return response.get("body")

    def response(self, command: str, **arguments: Json) -> Json:
        """Send a request; return its response."""
        self._sequence += 1
        request = {
            "seq": self._sequence,
            "type": "request",
            "command": command,
            "arguments": arguments,
        }
        definition = f"{command[0].upper()}{command[1:]}Request"
        _require(request, {"$ref": f"#/definitions/{definition}"}, command)
        self.log.append(request)
        text = json.dumps(request).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
        self.process.stdin.flush()
        return next(
            each
            for each in self._arriving()
            if each["type"] == "response" and each["request_seq"] == self._sequence
        )

    def event(self, name: str) -> Json:
        """Return the body of the next event of a name, after those that were returned."""
        for message in self.log:
            if message.get("event") == name and not message.get("was_returned"):
                message["was_returned"] = True
                return message.get("body")
        for message in self._arriving():
            if message.get("event") == name:
                message["was_returned"] = True
                return message.get("body")
        raise AssertionError(f"no event {name}")

    def launch(self, program: Path, **arguments: Json) -> None:
        """Initialise the session, up to the configuration."""
        self.request("initialize", adapterID="cudadrv", linesStartAt1=True)
        self.request("launch", program=str(program), **arguments)
        self.event("initialized")

    def stopped(self, command: str, **arguments: Json) -> Json:
        """Send a request that goes on; return the stop."""
        self.request(command, **arguments)
        return self.event("stopped")

    def top(self, stop: Json) -> Json:
        """Return the innermost frame of the stopped thread."""
        return self.request("stackTrace", threadId=stop["threadId"])["stackFrames"][0]

    def value(self, stop: Json, expression: str) -> str:
        """Return the value of an expression in the innermost frame."""
        frame = self.top(stop)["id"]
        result: str = self.request("evaluate", expression=expression, frameId=frame)["result"]
        return result

    def console(self, command: str) -> str:
        """Return what a command of the debug console says."""
        result: str = self.request("evaluate", expression=command, context="repl")["result"]
        return result

    def variables(self, frame: int, scope: str) -> dict[str, str]:
        """Return the variables of a scope of a frame."""
        scopes = self.request("scopes", frameId=frame)["scopes"]
        (reference,) = [e["variablesReference"] for e in scopes if e["name"] == scope]
        variables = self.request("variables", variablesReference=reference)["variables"]
        return {each["name"]: each["value"] for each in variables}

    def _arriving(self) -> Iterator[Json]:
        while True:
            message = self._messages.get(timeout=SECONDS)
            assert message is not None, "the debugger has ended"
            self.log.append(message)
            check_message(message)
            yield message

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while header := stream.readline():
            assert header.startswith(b"Content-Length: ")
            stream.readline()
            self._messages.put(json.loads(stream.read(int(header.split()[1]))))
        self._messages.put(None)


def check_message(message: Json) -> None:
    """Check a message of the debugger by the definition of its command or event."""
    if message["type"] == "event":
        name, suffix = message["event"], "Event"
    else:
        name, suffix = message["command"], "Response"
    definition = f"{name[0].upper()}{name[1:]}{suffix}"
    if not message.get("success", True):
        definition = "ErrorResponse"
    schema = {"$ref": f"#/definitions/{definition}"}
    _require(message, schema, definition)
    unknown = list(_unknown(message, schema, definition))
    assert not unknown, unknown


@cache
def _definitions() -> Mapping[str, Json]:
    text = (Path(__file__).parent / "debug_adapter_protocol.json").read_text()
    definitions: Mapping[str, Json] = json.loads(text)["definitions"]
    return definitions


def _require(value: Json, schema: Json, path: str) -> None:
    faults = list(_faults(value, schema, path))
    assert not faults, faults


def _faults(value: Json, schema: Json, path: str) -> Iterator[str]:
    """Yield where a value does not have the form of a schema."""
    if "$ref" in schema:
        schema = _definitions()[schema["$ref"].removeprefix("#/definitions/")]
    for part in schema.get("allOf", ()):
        yield from _faults(value, part, path)
    choices = schema.get("oneOf", schema.get("anyOf"))
    if choices and all(list(_faults(value, each, path)) for each in choices):
        yield f"{path}: {value!r} has none of the forms"
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_is(value, name) for name in types):
        yield f"{path}: {value!r} is not of type {types}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if isinstance(value, list) and "items" in schema:
        for index, each in enumerate(value):
            yield from _faults(each, schema["items"], f"{path}[{index}]")
    if isinstance(value, dict):
        yield from (f"{path}: no {e}" for e in schema.get("required", ()) if e not in value)
        for name, part in schema.get("properties", {}).items():
            if name in value:
                yield from _faults(value[name], part, f"{path}.{name}")
                is_number = name.endswith("Reference") and isinstance(value[name], int)
                if is_number and not 0 <= value[name] <= _LARGEST:
                    yield f"{path}.{name}: {value[name]} is too large"


def _unknown(value: Json, schema: Json, path: str) -> Iterator[str]:
    """Yield the members of objects that their schema, if it has members, does not name."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _unknown(each, schema.get("items", {}), f"{path}[{index}]")
    members = _members(schema)
    if isinstance(value, dict) and members:
        for name, each in value.items():
            if name not in members:
                yield f"{path}: the protocol has no {name}"
            yield from _unknown(each, members.get(name, {}), f"{path}.{name}")


def _members(schema: Json) -> dict[str, Json]:
    """Return the schemas of an object's members, of all parts of its schema."""
    if "$ref" in schema:
        schema = _definitions()[schema["$ref"].removeprefix("#/definitions/")]
    members: dict[str, Json] = {}
    for part in schema.get("allOf", ()):
        members |= _members(part)
    members |= schema.get("properties", {})
    return members


def _is(value: Json, name: str) -> bool:
    if isinstance(value, bool) and name in ("integer", "number"):
        return False
    return isinstance(value, _TYPES[name])
