"""NVIDIA's assembler, as the reference of what a target has."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from ptx.assembler import Assembly, default_assembler
from ptx.errors import NvJitLinkNotFoundError

_REGISTER = re.compile(r"%(\w+?)_(\d+)")
_WRONG = re.compile(r"line (\d+); (error|fatal)")
_LINES = 3  # of a kernel


@functools.cache
def has_assembler() -> bool:
    """Whether nvJitLink is installed."""
    try:
        return bool(default_assembler().build)
    except NvJitLinkNotFoundError:
        return False


@functools.cache
def newest_version() -> tuple[int, int]:
    """The newest `.version` that it takes."""
    log = _assembled(".version 99.0\n.target sm_80\n", "sm_80").errors
    found = re.search(r"current version is '(\d+)\.(\d+)'", log)
    assert found is not None, log
    return int(found[1]), int(found[2])


@functools.cache
def has_target(target: str) -> bool:
    """Whether it knows the target."""
    text = f".version {'.'.join(map(str, newest_version()))}\n.target {target}\n"
    return not _assembled(text, target).skipped


def _built_for(target: str) -> str:
    """An architecture to build for: it makes code for sm_75 and later ones only."""
    number = re.match(r"sm_(\d+)", target)
    assert number is not None
    return target if int(number[1]) >= 75 else "sm_75"


def _assembled(text: str, target: str) -> Assembly:
    return default_assembler().assemble(text, _built_for(target))


def assembles(text: str, target: str) -> bool:
    """Whether it makes machine code of a text for a target."""
    return _assembled(text, target) == Assembly()


def takes(target: str, version: str) -> bool:
    """Whether a module of the version may be for the target."""
    text = f".version {version}\n.target {target}\n.visible .entry k() {{ ret; }}\n"
    return "does not support .target" not in _assembled(text, target).errors


def kernel_of(form: str, name: str) -> str:
    """A kernel of three lines, the second of which is the instruction."""
    most: dict[str, int] = {}
    for kind, number in _REGISTER.findall(form):
        most[kind] = max(most.get(kind, 0), int(number))
    declared = " ".join(f".reg .{kind} %{kind}_<{number + 1}>;" for kind, number in most.items())
    shared = ".shared .align 128 .b8 mem[1024];" if "mem" in form else ""
    return f".visible .entry {name}() {{ {declared} {shared}\n{form}\nret; }}\n"


def refused(forms: Sequence[str], target: str, version: str) -> set[str]:
    """The forms that it refuses in a module of a target and version."""
    found: set[str] = set()
    left = list(forms)
    while True:
        kernels = "".join(kernel_of(form, f"k{at}") for at, form in enumerate(left))
        text = f".version {version}\n.target {target}\n.address_size 64\n{kernels}"
        wrong = _WRONG.findall(_assembled(text, target).errors)
        places = {(int(line) - 4) // _LINES for line, _ in wrong}
        found |= {left[at] for at in places if at >= 0}
        if not any(kind == "fatal" for _, kind in wrong):
            return found
        left = left[max(places) + 1 :]  # it reads no further
