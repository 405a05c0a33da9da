"""Lays definitions out as the formatter does, so that what is generated needs no formatting."""

from __future__ import annotations

WIDTH = 100


def function(head: str, parameters: list[str], returned: str) -> str:
    """A function of a stub: in one line, its parameters in one line, or each in its own."""
    line = f"{head}({', '.join(parameters)}) -> {returned}: ..."
    if len(line) <= WIDTH:
        return line
    tail = f") -> {returned}: ..."
    if len(tail) > WIDTH:
        items = returned.removeprefix("tuple[").removesuffix("]").split(", ")
        tail = ") -> tuple[\n" + "".join(f"    {item},\n" for item in items) + "]: ..."
    inner = f"    {', '.join(parameters)}"
    if len(inner) > WIDTH or len(parameters) == 1:
        inner = "\n".join(map(_parameter, parameters))
    return f"{head}(\n{inner}\n{tail}"


def _parameter(text: str) -> str:
    line = f"    {text},"
    return line if len(line) <= WIDTH else line.replace(" | ", "\n    | ")


def class_definition(name: str, base: str, body: list[str]) -> str:
    """A class of a stub, in one line if it adds nothing to its base."""
    tail = "" if body else " ..."
    head = f"class {name}({base}):" if base else f"class {name}:"
    if len(head + tail) > WIDTH:
        head = f"class {name}(\n    {base}\n):"
    lines = [f"    {line}" for definition in body for line in definition.split("\n")]
    return "\n".join([head + tail, *lines])
