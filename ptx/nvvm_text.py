"""What ends libNVVM, and the process with it, found in the text of NVVM IR before it gets there.

LLVM ends the process at a data layout that is none, or that is missing, and reads annotations
without a look at what they are. Bitcode is not read here, nor is what functions do.

Sources: NVVM IR specification, "Data Layout" and "Global Property Annotation"; LLVM language
reference, "Data Layout".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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
_MOST_BITS: Final = 1 << 24


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
        try:
            head, *rest = piece.split(":")
            if not head or not all(rest):
                return f"{layout!r} has an empty part"
            read = _PIECES.get("ni" if head == "ni" else head[0])
            if read is None:
                return f"{layout!r} has {piece!r}, which begins with no letter of layouts"
            read(head[1:], rest)
        except _WrongPieceError as error:
            return f"{layout!r} has {piece!r}, of which {error}"
    return None


class _WrongPieceError(Exception):
    """A part of a data layout that LLVM does not read."""


def _number(text: str, most: int = 2**32) -> int:
    if not re.fullmatch("[0-9]+", text) or int(text) >= most:
        raise _WrongPieceError(f"{text!r} is no number below {most}")
    return int(text)


def _nbytes(text: str) -> int:
    bits = _number(text)
    if bits % 8:
        raise _WrongPieceError(f"{bits} bits are no whole bytes")
    return bits // 8


def _needs(rest: Sequence[str], least: int) -> None:
    if len(rest) < least:
        raise _WrongPieceError("a size or an alignment is missing")


def _alignments(texts: Sequence[str]) -> None:
    """The alignment that is needed, and the one that is preferred."""
    found = [_nbytes(text) for text in texts]
    if any(each & (each - 1) or each >= 1 << 16 for each in found) or found != sorted(found):
        raise _WrongPieceError("the alignments are no powers of two, or the second is smaller")


def _pointer(tail: str, rest: Sequence[str]) -> None:
    """`p[space]:size:alignment[:preferred[:index]]`."""
    _number(tail or "0", _MOST_BITS)
    _needs(rest, 2)
    if not all(map(_nbytes, rest[:4])):
        raise _WrongPieceError("a size or an alignment is 0")
    _alignments(rest[1:3])


def _typed(tail: str, rest: Sequence[str]) -> None:
    """`i`, `v` or `f` with `size:alignment[:preferred]`."""
    _number(tail or "0", _MOST_BITS)
    _needs(rest, 1)
    if not _nbytes(rest[0]):
        raise _WrongPieceError("the alignment is 0")
    _alignments(rest[:2])


def _aggregate(tail: str, rest: Sequence[str]) -> None:
    if _number(tail or "0"):
        raise _WrongPieceError("the size is not 0")
    _needs(rest, 1)
    _alignments(rest[:2])


def _native(tail: str, rest: Sequence[str]) -> None:
    if not all(map(_number, (tail, *rest))):
        raise _WrongPieceError("a width is 0")


def _spaces(tail: str, rest: Sequence[str]) -> None:
    _needs(rest, 1)
    if not all(map(_number, rest)):
        raise _WrongPieceError("a space is 0")


def _mangling(tail: str, rest: Sequence[str]) -> None:
    if tail or list(rest) not in (["e"], ["o"], ["m"], ["w"], ["x"]):
        raise _WrongPieceError("the names are of no known kind")


def _stack(tail: str, rest: Sequence[str]) -> None:
    _nbytes(tail)


def _space(tail: str, rest: Sequence[str]) -> None:
    _number(tail, _MOST_BITS)


def _nothing(tail: str, rest: Sequence[str]) -> None:
    """What LLVM does not look at any further."""


_PIECES: Final[dict[str, Callable[[str, Sequence[str]], None]]] = {
    "e": _nothing, "E": _nothing, "s": _nothing, "p": _pointer, "i": _typed, "v": _typed,
    "f": _typed, "a": _aggregate, "n": _native, "ni": _spaces, "S": _stack, "P": _space,
    "A": _space, "m": _mangling,
}  # fmt: skip
