"""The C++ types of the parameters of ``extern "C"`` kernels, read from their declarations.

Such a kernel's name says nothing of its types. A declaration is believed only where it is surely
the kernel's own: outside of every conditional of the preprocessor, of C linkage, outside of every
namespace, and of words that no macro of the source or of the options stands for. All else is
unknown, and so is a type that is no name of the language or of CUDA.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

_LEXEME: Final = re.compile(
    r"""
    (?P<comment> //[^\n]* | /\*.*?\*/ )
  | (?P<raw> \b(?:u8|[uUL])?R"(?P<mark>[^\s()\\"]{0,16})\(.*?\)(?P=mark)" )
  | (?P<string> "(?:[^"\\\n]|\\.)*" )
  | (?P<number> \.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])* )
  | (?P<char> '(?:[^'\\\n]|\\.)*' )
  | (?P<word> [A-Za-z_]\w* )
  | (?P<line> \n )
  | (?P<blank> [^\S\n]+ )
  | (?P<mark_of_one> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_C_LINKAGE: Final = '"C"'
# Before a kernel's name, apart from `void` and what has arguments in brackets.
_SPECIFIERS: Final = frozenset(("extern", _C_LINKAGE, "__global__", "void", "static", "inline"))
_IGNORED: Final = frozenset(
    ("volatile", "__restrict__", "__restrict", "restrict", "__grid_constant__")
)
_NUMBERS: Final = {
    "bool": "b", "char": "c", "signed char": "a", "unsigned char": "h", "short": "s",
    "unsigned short": "t", "": "i", "unsigned": "j", "long": "l", "unsigned long": "m",
    "long long": "x", "unsigned long long": "y", "float": "f", "double": "d", "void": "v",
    "int8_t": "a", "uint8_t": "h", "int16_t": "s", "uint16_t": "t", "int32_t": "i",
    "uint32_t": "j", "int64_t": "x", "uint64_t": "y", "size_t": "m",
}  # fmt: skip
_WORDS: Final = frozenset(word for name in _NUMBERS for word in name.split()) | {"int", "signed"}
_SIGNS: Final = ("signed", "unsigned")
_CLASSES: Final = re.compile(
    r"(u?char|u?short|u?int|u?long|u?longlong|float|double)[1-4]|__half2?|__nv_bfloat162?"
    r"|__nv_fp8_e4m3|__nv_fp8_e5m2"
)


class _NotUnderstoodError(Exception):
    """The source is written in a way in which nothing can be told. Never leaves this file."""


class _Token(NamedTuple):
    text: str
    # Whether a conditional of the preprocessor is around it.
    conditional: bool


def declared_types(source: str, defined: Iterable[str] = ()) -> dict[str, tuple[str, ...]]:
    """The parameters' types of each kernel of C linkage, in the letters of the Itanium C++ ABI.

    Args:
        source: the C++ text.
        defined: the macros that the options define.

    Returns:
        Such as {"saxpy": ("f", "PKf", "Pf", "i")}; "" stands for an unknown type.
    """
    if "__global__" not in source or "??" in source or "%:" in source:
        return {}
    macros = set(defined)
    try:
        return dict(_declarations(list(_tokens(source, macros)), macros))
    except _NotUnderstoodError:
        return {}


def _tokens(source: str, macros: set[str]) -> Iterator[_Token]:
    """The words of the code; directives are taken out, and their macros added to `macros`."""
    opened: list[list[int]] = []  # of each conditional: braces open before it, and now
    depth = 0
    for line in _lines(source.replace("\\\r\n", "").replace("\\\n", "")):
        if line and line[0] == "#":
            depth = _directive(line[1:], depth, opened, macros)
            continue
        for text in line:
            depth += (text == "{") - (text == "}")
            if opened and depth < opened[-1][0]:
                raise _NotUnderstoodError  # it closes what it has not opened
            yield _Token(text, bool(opened))


def _lines(source: str) -> Iterator[list[str]]:
    line: list[str] = []
    for match in _LEXEME.finditer(source):
        kind, text = match.lastgroup, match[0]
        if match["raw"] is not None:
            kind, text = "string", '""'
        if kind == "line":
            yield line
            line = []
        elif kind == "string":
            line.append(text if text == _C_LINKAGE else '""')
        elif kind not in ("comment", "blank"):
            line.append(text)
    yield line


def _directive(words: list[str], depth: int, opened: list[list[int]], macros: set[str]) -> int:
    """How many braces are open behind a directive."""
    what = words[0] if words else ""
    if what == "define":
        macros.add(words[1] if len(words) > 1 else "")
        if words.count("{") != words.count("}"):
            raise _NotUnderstoodError
    elif what in ("if", "ifdef", "ifndef"):
        opened.append([depth])
    elif what in ("elif", "else", "elifdef", "elifndef", "endif"):
        # A branch that opens more than it closes changes what all behind it is in.
        if not opened or depth != opened[-1][0]:
            raise _NotUnderstoodError
        if what == "endif":
            opened.pop()
    return depth


def _declarations(
    tokens: Sequence[_Token], macros: set[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    enclosing: list[bool] = []  # whether each open brace is of an extern "C" block
    begin = 0  # of the present declaration
    texts = [token.text for token in tokens]
    for at, (text, conditional) in enumerate(tokens):
        if text == "{":
            enclosing.append(texts[max(at - 2, 0) : at] == ["extern", _C_LINKAGE])
        elif text == "}":
            if not enclosing:
                raise _NotUnderstoodError
            enclosing.pop()
        elif text == "__global__" and not conditional and all(enclosing):
            has_c_linkage = enclosing or _C_LINKAGE in texts[begin:at]
            found = _kernel(texts, begin, at, macros) if has_c_linkage else None
            if found is not None:
                yield found
        if text in ("{", "}", ";"):
            begin = at + 1


def _kernel(
    texts: Sequence[str], begin: int, at: int, macros: set[str]
) -> tuple[str, tuple[str, ...]] | None:
    """The name and types of the kernel whose declaration begins at `begin`."""
    if not macros.isdisjoint(texts[begin:at]) or not _SPECIFIERS.issuperset(texts[begin:at]):
        return None
    while at < len(texts):
        text, behind = texts[at], texts[at + 1 : at + 2]
        if text in macros:
            return None
        if text in _SPECIFIERS:
            at += 1
        elif text.startswith("__") and behind == ["("]:  # __launch_bounds__(256)
            at = _end(texts, at + 1)
        elif behind == ["("] and re.fullmatch(r"[A-Za-z_]\w*", text):
            inside = texts[at + 2 : _end(texts, at + 1) - 1]
            params = _parameters(inside)
            types = tuple(_type(param) if macros.isdisjoint(param) else "" for param in params)
            return text, () if inside in ([], ["void"]) else types
        else:
            return None
    return None


def _end(texts: Sequence[str], at: int) -> int:
    """The place behind the bracket that closes the one at a place."""
    depth = 0
    for place in range(at, len(texts)):
        depth += (texts[place] in "([{") - (texts[place] in ")]}")
        if not depth:
            return place + 1
    raise _NotUnderstoodError


def _parameters(texts: Sequence[str]) -> list[list[str]]:
    """The parameters between two brackets, parted at the commas that are in no other brackets."""
    found: list[list[str]] = [[]]
    depth = 0
    for text in texts:
        depth += (text in "([{<") - (text in ")]}>")
        if text == "," and not depth:
            found.append([])
        else:
            found[-1].append(text)
    return found


def _type(words: Sequence[str]) -> str:
    """The letters of a parameter's type: a number, or a pointer to something; else ""."""
    declared = [word for word in words if word not in _IGNORED]
    base: list[str] = []
    while declared and (declared[0] in _WORDS or declared[0] == "const" or _is_class(declared[0])):
        base.append(declared.pop(0))
    stars = 0
    while declared and declared[0] in ("*", "const"):
        stars += declared.pop(0) == "*"
    if declared and re.fullmatch(r"[A-Za-z_]\w*", declared[0]):
        declared.pop(0)
    if declared[:1] == ["["] and declared[-1] == "]" and declared.count("[") == 1:
        stars, declared = stars + 1, []
    letters = _letters([word for word in base if word != "const"])
    if declared or letters is None or stars > 1:
        return ""
    return f"P{'K' * ('const' in base)}{letters}" if stars else letters


def _is_class(word: str) -> bool:
    return _CLASSES.fullmatch(word) is not None


def _letters(base: Sequence[str]) -> str | None:
    """The letters of a type's words, which may stand in any order."""
    if len(base) == 1 and _is_class(base[0]):
        return f"{len(base[0])}{base[0]}"
    left = [word for word in base if word != "int"]
    if "signed" in left and "char" not in left:
        left.remove("signed")
    if not base:
        return None
    return _NUMBERS.get(" ".join(sorted(left, key=lambda word: word not in _SIGNS)))
