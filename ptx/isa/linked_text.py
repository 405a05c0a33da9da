"""Linking of several PTX modules to one, on their text.

PTX ISA, "Linking Directives". Symbols without a linking directive are a module's own: if two
modules have one of the same name, the later one's gets a suffix. The first of several weak symbols
stays, unless there is a visible one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ptx.errors import LinkError
from ptx.isa.declarations import OPAQUE_TYPES
from ptx.isa.errors import syntax_error
from ptx.isa.forms.check import DEVICE_FUNCTIONS, check_bodies
from ptx.isa.lexer import without_comments
from ptx.isa.model import Linkage, Space, SymbolValue
from ptx.isa.module import PtxModule, parse

_TEXT: Final = re.compile(r"\S")
_WORD: Final = re.compile(r"[A-Za-z_$%][\w$]*")
_LINE: Final = re.compile(r"\.(version|target|address_size|file|loc)\b[^\n]*")
_SECTION: Final = re.compile(r"\.section\b[^\n{;]*")
_STOP: Final = re.compile(r'"[^"\n]*"|[;{}]')
_FUNCTION: Final = re.compile(r"\.(?:func|entry)\b\s*(?:\([^)]*\)\s*)?([A-Za-z_$%][\w$]*)")
_VARIABLE: Final = re.compile(r"([A-Za-z_$%][\w$]*)\s*(?:\[[^\]]*\]\s*)*(?:[=,;]|$)")
_FILE: Final = re.compile(r"(\.file\s+)(\d+)")
_LOCATION: Final = re.compile(r"(\.loc\s+)(\d+)")
_INLINED_FROM: Final = re.compile(r"(\.loc\s+\d+\s+\d+\s+\d+)\s*,[^\n]*")
_SHARED_LINKAGES: Final = (Linkage.VISIBLE, Linkage.WEAK, Linkage.COMMON)
_Symbols = dict[str, Linkage]


@dataclass(frozen=True, slots=True)
class _Statement:
    """A directive of module scope: its text, and the symbol that it defines or declares."""

    text: str
    name: str = ""
    linkage: Linkage = Linkage.NONE


def link_texts(texts: Sequence[tuple[str, str]]) -> str:
    """One text of several, given as names and texts; one alone stays as it is.

    Debug sections are left out of several; places in the source (`.file`, `.loc`) stay.

    Raises:
        PtxSyntaxError: a text is wrong at module level, or declares a function of another one
            without `.extern`.
        LinkError: two modules define the same visible symbol.
    """
    modules = [(name, parse(text)) for name, text in texts]
    if len(texts) == 1:
        return texts[0][1]
    for _, module in modules:
        check_bodies(module)
    definitions = [(name, _definitions(module)) for name, module in modules]
    chosen = _chosen(definitions)
    used_names = {
        name
        for _, symbols in definitions
        for name, linkage in symbols.items()
        if linkage in _SHARED_LINKAGES
    }
    linkages = {
        name: symbols[name]
        for name, number in chosen.items()
        for _, symbols in definitions[number : number + 1]
    }
    parts = [_header([module for _, module in modules])]
    files = 0
    for number, ((_, module), (_, symbols)) in enumerate(zip(modules, definitions, strict=True)):
        dropped = {symbol for symbol in symbols if chosen.get(symbol, number) != number}
        defined_above = {symbol for symbol, at in chosen.items() if at < number}
        text = _renamed(without_comments(module.text), symbols, used_names)
        used_names |= symbols.keys()
        parts += [
            _placed(_declared(s, linkages), files)
            for s in _statements(text)
            if _stays(s, dropped) and not _is_declared_again(s, defined_above)
        ]
        files += max(module.files, default=0)
    return "\n".join(parts) + "\n"


def reject_twice_defined(texts: Sequence[tuple[str, str]]) -> None:
    """Raise where texts, given by names, define the same visible symbol.

    nvJitLink 13.0 to 13.5 writes such an error to the process's standard error, and then links.

    Raises:
        PtxSyntaxError: a text is wrong at module level.
        LinkError: two define the same.
    """
    _chosen([(name, _definitions(parse(text))) for name, text in texts])


def undefined_references(linked: str, texts: Sequence[tuple[str, str]]) -> Mapping[str, str]:
    """Return the symbols that no text defines, each with the name of a text that declares it.

    As in nvJitLink 13.5, these are all external variables, and the functions that kernels or the
    values of variables reach.

    Raises:
        PtxSyntaxError: a text is wrong at module level.
    """
    module = parse(linked)
    variables = {
        v.name
        for v in module.variables.values()
        if v.linkage is Linkage.EXTERN and v.space is not Space.SHARED
        if v.ptx_type not in OPAQUE_TYPES
    }
    functions = {f.name for f in module.functions.values() if f.span is None and not f.is_entry}
    functions -= DEVICE_FUNCTIONS | module.aliases.keys()
    missing = variables | (functions & _reached(module) if functions else functions)
    if not missing:
        return {}
    declared = {
        symbol: name
        for name, text in texts
        for symbol in missing.intersection(_WORD.findall(without_comments(text)))
    }
    return {symbol: declared.get(symbol, "the inputs") for symbol in sorted(missing)}


def _reached(module: PtxModule) -> set[str]:
    """Return the names that kernels use, and values of variables, and functions among these."""
    reached = {f.name for f in module.functions.values() if f.is_entry}
    reached |= {
        value.name
        for variable in module.static_variables
        for value in variable.initialiser
        if isinstance(value, SymbolValue)
    }
    pending = list(reached)
    while pending:
        function = module.functions.get(pending.pop())
        if function is not None and function.span is not None:
            found = module.uses(function.name).names - reached
            reached |= found
            pending += found
    return reached


def _header(modules: Sequence[PtxModule]) -> str:
    """The newest version and architecture of all."""
    version = max((module.version for module in modules), key=_numbers)
    target = max((module.target for module in modules), key=_rank)
    return f".version {version}\n.target {target}\n.address_size 64\n"


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))


def _rank(target: str) -> tuple[tuple[int, ...], int]:
    """Return a sort key: later architectures are above, then those with specific features."""
    return _numbers(target), 2 * target.endswith("a") + target.endswith("f")


def _definitions(module: PtxModule) -> _Symbols:
    """Return the symbols that a module defines, with their linkages."""
    functions = {f.name: f.linkage for f in module.functions.values() if f.span is not None}
    variables = {
        v.name: v.linkage for v in module.variables.values() if v.linkage is not Linkage.EXTERN
    }
    return {**functions, **variables, **dict.fromkeys(module.aliases, Linkage.VISIBLE)}


def _chosen(definitions: Sequence[tuple[str, _Symbols]]) -> dict[str, int]:
    """Return the module that supplies each shared symbol: by a visible definition, or the first.

    Modules are given by their positions, as several may have one name.
    """
    chosen: dict[str, tuple[int, Linkage]] = {}
    for number, (name, symbols) in enumerate(definitions):
        for symbol, linkage in symbols.items():
            if linkage not in _SHARED_LINKAGES:
                continue
            before = chosen.get(symbol)
            if before is not None and Linkage.VISIBLE is before[1] is linkage:
                raise LinkError(
                    f"the inputs do not link: {symbol} is defined in {definitions[before[0]][0]} "
                    f"and in {name}",
                    "",
                    (),
                )
            if before is None or linkage is Linkage.VISIBLE:
                chosen[symbol] = number, linkage
    return {symbol: number for symbol, (number, _) in chosen.items()}


def _renamed(text: str, symbols: _Symbols, used_names: set[str]) -> str:
    """The text, with the module's own symbols named as no other module names one."""
    clashing = [
        name for name, linkage in symbols.items() if linkage is Linkage.NONE and name in used_names
    ]
    for name in clashing:
        names = (f"{name}_{n}" for n in range(1, 1 << 30))
        fresh = next(
            candidate
            for candidate in names
            if candidate not in used_names and candidate not in symbols
        )
        pattern = re.compile(rf"(?<![\w$%.]){re.escape(name)}(?![\w$])")
        text = pattern.sub(fresh, text)
        symbols[fresh] = symbols.pop(name)
    return text


def _statements(text: str) -> Iterator[_Statement]:
    """The directives of module scope, functions with their bodies."""
    at = 0
    while True:
        start = _TEXT.search(text, at)
        if start is None:
            return
        at = start.start()
        line = _LINE.match(text, at)
        if line is not None:
            if line[1] == "file":
                yield _Statement(line.group())
            at = line.end()
            continue
        section = _SECTION.match(text, at)
        end = _end(text, section.end() if section else at, bool(section))
        if section is None:
            yield _statement(text[at:end])
        at = end


def _end(text: str, at: int, is_section: bool) -> int:
    """Return the end of the directive that begins at an offset."""
    depth, is_function = 0, _FUNCTION.search(text, at, _first_stop(text, at)) is not None
    for stop in _STOP.finditer(text, at):
        mark = stop.group()
        depth += (mark == "{") - (mark == "}")
        ends_here = mark == "}" if is_function or is_section else mark == ";"
        if not depth and (ends_here or mark == ";"):
            return stop.end()
    raise syntax_error(text, at, "this directive has no end")


def _first_stop(text: str, at: int) -> int:
    stop = re.compile(r"[;{]").search(text, at)
    return stop.start() if stop else len(text)


def _statement(text: str) -> _Statement:
    """Return the symbol that a directive defines or declares."""
    linkage = next(
        (
            candidate
            for candidate in Linkage
            if candidate.value and text.startswith(f".{candidate.value}")
        ),
        Linkage.NONE,
    )
    function = _FUNCTION.search(text, 0, _first_stop(text, 0))
    match = function or _VARIABLE.search(text)
    return _Statement(text, match[1] if match else "", linkage)


def _stays(statement: _Statement, dropped: set[str]) -> bool:
    return statement.linkage not in _SHARED_LINKAGES or statement.name not in dropped


def _is_declared_again(statement: _Statement, defined_above: set[str]) -> bool:
    """Whether a statement declares a function below its definition, which no module may."""
    return (
        statement.linkage is Linkage.EXTERN
        and statement.name in defined_above
        and _FUNCTION.search(statement.text) is not None
    )


def _declared(statement: _Statement, linkages: _Symbols) -> str:
    """A statement, where `.extern` of a function that an input defines is that one's linkage."""
    linkage = linkages.get(statement.name)
    if linkage is None or statement.linkage is not Linkage.EXTERN:
        return statement.text
    if _FUNCTION.search(statement.text) is None:
        return statement.text
    return statement.text.replace(".extern", f".{linkage.value}", 1)


def _placed(text: str, files: int) -> str:
    """A directive with the numbers of its files after those of the modules before."""
    if files:
        text = _FILE.sub(lambda m: f"{m[1]}{int(m[2]) + files}", text)
        text = _LOCATION.sub(lambda m: f"{m[1]}{int(m[2]) + files}", text)
    # The callers of inlined code are labels of the debug sections.
    return _INLINED_FROM.sub(r"\1", text)
