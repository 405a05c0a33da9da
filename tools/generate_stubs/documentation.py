"""Reads the docstrings of a compiled module: the embedded signature and the sections below it."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from itertools import zip_longest


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an embedded signature, as Cython writes it."""

    name: str
    c_type: str
    """What stands before the name: `size_t`, `char *`; empty if there is nothing."""
    annotation: str
    """What stands after a colon: `Optional[CUmemLocation]`."""
    default: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a section: a parameter, result or attribute with its documented type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Documentation:
    """What the docstring of a function or class says."""

    parameters: tuple[Parameter, ...]
    returned: str
    """What follows the arrow of the signature; empty if there is none."""
    sections: dict[str, list[Entry]]

    def type_of(self, section: str, name: str) -> str:
        """The documented type of `name`, empty if it is not documented."""
        # A parameter called like a keyword of Python has an underscore that the text has not.
        wanted = (name, name.removesuffix("_"))
        for entry in self.sections.get(section, []):
            if entry.name in wanted:
                return entry.type
        return ""


_SIGNATURE = re.compile(r"[\w.]+\((?P<parameters>.*)\)(?: -> (?P<returned>.+))?")
_PARAMETER = re.compile(
    r"(?P<c_type>(?:[\w ]+ |[\w ]+ \*+)?)(?P<name>\w+)"
    r"(?:: (?P<annotation>[^=]+))?(?:=(?P<default>.+))?"
)
_COMMA_OUTSIDE_BRACKETS = re.compile(r", (?![^\[]*\])")
_NUMPY_ENTRY = re.compile(r"(\w+) : (.+)|([\w.]+)")
_GOOGLE_ENTRY = re.compile(r"    (\w+) \((.+?)\): .*")
_REFERENCE = re.compile(r":py:(?:obj|class):`~?\.?([\w.]+)`")


def read(docstring: str) -> Documentation:
    """What a docstring says; one without an embedded signature has no parameters."""
    lines = inspect.cleandoc(docstring).splitlines() or [""]
    signature = _SIGNATURE.fullmatch(lines[0])
    parameters = signature["parameters"] if signature else ""
    return Documentation(
        tuple(map(_parameter, _COMMA_OUTSIDE_BRACKETS.split(parameters) if parameters else ())),
        (signature["returned"] or "") if signature else "",
        # The text below a signature may be indented more than the signature.
        _sections(inspect.cleandoc("\n".join(lines[1:])).splitlines()),
    )


def _parameter(text: str) -> Parameter:
    match = _PARAMETER.fullmatch(text)
    if match is None:
        raise ValueError(f"not a parameter: {text!r}")
    return Parameter(
        match["name"], match["c_type"].strip(), match["annotation"] or "", match["default"] or ""
    )


def _sections(lines: list[str]) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    entries: list[Entry] = []
    for line, following in zip_longest(lines, lines[1:], fillvalue=""):
        if re.fullmatch("-{3,}", following):
            entries = found.setdefault(line.strip(), [])
        elif line == "Args:":
            entries = found.setdefault("Parameters", [])
        elif numpy := _NUMPY_ENTRY.fullmatch(line):
            named, documented, bare = numpy.groups()
            entries.append(Entry(named or "", _REFERENCE.sub(r"\1", documented or bare)))
        elif google := _GOOGLE_ENTRY.fullmatch(line):
            entries.append(Entry(*google.groups()))
        elif re.match(":py:obj:", line):
            entries.append(Entry("", _REFERENCE.sub(r"\1", line)))
    return found
