"""What ends libNVVM, and the process with it, found in the text of NVVM IR before it gets there.

LLVM ends the process at a data layout that is none, or that is missing, and reads annotations
without a look at what they are. Bitcode is not read here, nor is what functions do.

Sources: NVVM IR specification, "Data Layout" and "Global Property Annotation"; LLVM language
reference, "Data Layout".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

_LAYOUT: Final = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-"
    "v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
)
# What LLVM's reader passes over. Nothing here goes back on what it has matched, whatever follows,
# and each token begins with a plain character, which is searched for three times faster.
_SPACE: Final = r"(?>(?:[\0\s]++|;[^\r\n]*+)*+)"
_TOKEN: Final = re.compile(
    rf'target(?<![\w.$@%-]target)\b{_SPACE}datalayout{_SPACE}={_SPACE}"(?P<layout>[^"]*+)"'
    rf"|!(?P<name>nvvm\.annotations|[0-9]++){_SPACE}=(?:{_SPACE}distinct\b)?{_SPACE}!{_SPACE}\{{"
    r'|"[^"]*+"|;[^\r\n]*+',
    re.ASCII,
)
_BRACKET: Final = re.compile(r'"[^"]*+"|;[^\r\n]*+|[][(){}<>,]')
_ESCAPE: Final = re.compile(r"\\([0-9a-fA-F]{2}|\\)")
_VALUE: Final = re.compile(r"i[0-9]+\s+(?:-?[0-9]+|true|false)|!.*", re.DOTALL)


def fault_of(text: str, *, is_first: bool, is_old: bool) -> str | None:
    """What libNVVM would end the process at, and the remedy; None where nothing was found.

    Args:
        text: a module of NVVM IR.
        is_first: whether libNVVM gets it first. Modules behind it may leave the layout to it.
        is_old: whether it is the IR of LLVM 7, for architectures before Blackwell.
    """
    layouts: list[tuple[str, int]] = []
    nodes: dict[str, int] = {}
    for found in _TOKEN.finditer(text):
        if found["layout"] is not None:
            layouts.append((_ESCAPE.sub(_unescaped, found["layout"]), found.start()))
        elif found["name"] is not None:
            nodes[found["name"]] = found.end()
    for layout, at in layouts:
        # A later LLVM tells of it, and minds only that there is none.
        wrong = _fault_of_layout(layout) if layout and is_old else None
        if wrong is not None:
            return f"line {_line(text, at)}: the data layout {wrong}\n  {_REMEDY}"
    if is_first and not is_old and not any(layout for layout, _ in layouts):
        return f"it has no data layout\n  {_REMEDY}"
    return _fault_of_annotations(text, nodes)


def _fault_of_annotations(text: str, nodes: Mapping[str, int]) -> str | None:
    """What is wrong among the nodes that `!nvvm.annotations` names, given where each begins."""
    for each in _elements(text, nodes["nvvm.annotations"]) if "nvvm.annotations" in nodes else ():
        at = nodes.get(each.removeprefix("!"))
        elements = [] if at is None else list(_elements(text, at))
        if at is not None and not _is_annotation(elements):
            return (
                f"line {_line(text, at)}: the annotation !{{{', '.join(elements)}}} is none\n  it "
                "is the thing that it is of, and then names with numbers, such as "
                '!{ptr @k, !"kernel", i32 1}'
            )
    return None


_REMEDY: Final = f'NVVM IR has the line: target datalayout = "{_LAYOUT}"'


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _unescaped(found: re.Match[str]) -> str:
    return "\\" if found[1] == "\\" else chr(int(found[1], 16))


def _elements(text: str, at: int) -> Iterator[str]:
    """What stands between the commas up to the brace that closes the one before `at`."""
    depth, begin = 0, at
    for found in _BRACKET.finditer(text, at):
        mark = found.group()
        if mark in ("(", "[", "{", "<"):
            depth += 1
        elif depth and mark in (")", "]", "}", ">"):
            depth -= 1
        elif not depth and mark in (",", "}"):
            element = text[begin : found.start()].strip()
            if element or mark == ",":
                yield element
            begin = found.end()
            if mark == "}":
                return


def _is_annotation(elements: Sequence[str]) -> bool:
    """Whether these are a thing, and then names with values: a number, or another node."""
    names, values = elements[1::2], elements[2::2]
    return (
        len(elements) > 0
        and len(names) == len(values)
        and all(name.startswith('!"') for name in names)
        and all(_VALUE.fullmatch(value) and value[:2] != '!"' for value in values)
    )


def _fault_of_layout(layout: str) -> str | None:
    """What of a data layout LLVM does not read."""
    for piece in layout.split("-"):
        sizes = [int(size) for size in piece.split(":")[1:] if size.isdecimal()]
        needed = sizes[1:3] if piece.startswith("p") else sizes
        if not _PIECE.fullmatch(piece) or (piece[0] in "pivfa" and needed != sorted(needed)):
            return f"{layout!r} has {piece!r}, which is no part of one"
    return None


_BITS: Final = "(?:8|16|32|64|128|256|512|1024)"
# An alignment that is needed may be followed by one that is preferred, which is no smaller.
_PIECE: Final = re.compile(
    rf"""[eE] | m:[eomwx] | S{_BITS}? | [AP]\d{{0,7}} | s\d*(:\d+)*
    | p\d{{0,7}}(:{_BITS}){{2,4}}           # of pointers: their size, alignments, and of an index
    | [ivf]\d{{0,7}}(:{_BITS}){{1,2}}
    | a0?(:(0|{_BITS})){{1,2}}
    | n[1-9]\d{{0,6}}(:[1-9]\d{{0,6}})*
    | ni(:[1-9]\d{{0,6}})+""",
    re.ASCII | re.VERBOSE,
)
