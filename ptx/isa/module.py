"""The module: its directives are read at once, its function bodies when they are asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from ptx import border
from ptx.errors import FunctionNotFoundError
from ptx.isa.body import parse_body
from ptx.isa.declarations import LINKAGES, SPACES, integer, parameter_list, variables
from ptx.isa.errors import PtxSyntaxError, syntax_error
from ptx.isa.lexer import TOKEN_OR_TABLE, Cursor, LineIndex, without_comments
from ptx.isa.model import Body, Function, Linkage, Space, Variable

_BRACE = re.compile(r'"[^"\n]*"|[{}]')
_SECTION = re.compile(r"(?m)^[ \t]*\.section\b[^\n{]*(?:\s*\{)?")
_FUNCTION = re.compile(r"\.(?:entry|func)(?![\w$])")
_FILE = re.compile(r'(?m)^[ \t]*\.file[ \t]+(\d+)[ \t]+"([^"\n]*)"')
_WORD = re.compile(r"[A-Za-z_$%][\w$]*")
# A declaration, not an instruction such as ld.shared.b32, whose `.shared` follows a word. The
# pattern begins with plain characters, which are searched for ten times faster.
_SHARED = re.compile(r"\.shared(?<![\w$]\.shared)\s(?:(?!\.shared\s)[^;])*+;")
# At the start of a line or a statement, behind a guard. Each pattern begins with one character,
# which is searched for ten times faster than any of them. None reads blank lines that another
# match reads again: time stays linear.
_STATEMENT_WORDS = tuple(
    re.compile(rf"{start}*+(?:@!?[\w$%]+\s+)?([a-z]\w*(?:(?:\.|::)\w+)+)")
    for start in (r"\n[^\S\n]", r";\s", r"\{\s", r"\}\s", r":(?<!::)\s")
)
_TUNING_WITHOUT_NUMBERS = {".noreturn", ".explicitcluster", ".blocksareclusters"}


@dataclass(frozen=True, slots=True)
class Uses:
    """The names that occur in a function's body, and the shared variables that it declares."""

    names: frozenset[str]
    shared: tuple[Variable, ...]


class PtxModule:
    """One PTX text: what it declares, and each function's body on demand.

    Attributes:
        text: the text as given.
        version, target, address_size: of the three opening directives; target without options.
        files: the CUDA source of each `.file` number.
        functions: by name; a definition hides its declaration.
        variables: module-scope variables by name.
    """

    def __init__(self, text: str) -> None:
        self.text: str = border.instance("PTX", text, str)
        self.version = ""
        self.target = ""
        self.address_size = 64
        self.functions: dict[str, Function] = {}
        self.variables: dict[str, Variable] = {}
        self.aliases: dict[str, str] = {}
        self._clean = without_comments(text)
        self._lines = LineIndex(text)
        self._bodies: dict[str, Body] = {}
        self._uses: dict[str, Uses] = {}
        self.files: dict[int, str] = {
            int(found[1]): found[2] for found in _FILE.finditer(self._clean)
        }
        _ModuleReader(self, self._clean, self._lines).read()

    @property
    def entries(self) -> tuple[Function, ...]:
        """The kernels, in the order of the text."""
        return tuple(found for found in self.functions.values() if found.is_entry)

    @cached_property
    def device_functions(self) -> frozenset[str]:
        """The names of the functions that are no kernels."""
        return frozenset(name for name, found in self.functions.items() if not found.is_entry)

    @cached_property
    def shared_places(self) -> dict[str, int]:
        """For each variable of module scope in shared memory, how many variables stand before."""
        variables = enumerate(self.variables.values())
        return {v.name: place for place, v in variables if v.space is Space.SHARED}

    @cached_property
    def instruction_words(self) -> frozenset[str]:
        """The dotted words of all instructions, such as `ld.global.f32`; no body is read."""
        return frozenset().union(*(words.findall(self._clean) for words in _STATEMENT_WORDS))

    def uses_special(self, name: str) -> bool:
        """Whether a special register such as `%clusterid` stands anywhere, comments aside."""
        special = re.escape(border.text("PtxModule.uses_special: name", name))
        return re.search(rf"{special}(?!\w)", self._clean) is not None

    def line_of(self, word: str) -> int:
        """The line that the first instruction of this word, or the first use of a name, is on."""
        exact = re.escape(border.text("PtxModule.line_of: word", word))
        found = re.search(rf"(?<![\w.:%$]){exact}(?![\w:])(?!\.(?![xyzw]\b))", self._clean)
        return self._lines.line(found.start()) if found else 1

    def body(self, name: str) -> Body:
        """The parsed body of a function that is defined here.

        Raises:
            FunctionNotFoundError: there is no such function, or it is only declared.
            PtxSyntaxError: its text is wrong.
        """
        found = self._bodies.get(border.instance("a function's name", name, str))
        if found is None:
            span = self._function(name).span
            if span is None:
                raise FunctionNotFoundError(f"function {name!r} is only declared")
            found = self._bodies[name] = parse_body(self._clean, span, self._lines)
        return found

    def body_text(self, name: str) -> str:
        """The text of a function's body without its comments, "" where it is only declared."""
        span = self._function(name).span
        return "" if span is None else self._clean[span[0] : span[1]]

    def uses(self, name: str) -> Uses:
        """What a function's body uses, read once: many kernels may call one function."""
        found = self._uses.get(border.instance("a function's name", name, str))
        if found is None:
            text = self.body_text(name)
            shared: list[Variable] = []
            for match in _SHARED.finditer(text):
                shared += variables(Cursor(match.group()), Linkage.NONE, 0)
            found = Uses(frozenset(_WORD.findall(text)), tuple(shared))
            if name in self.device_functions:
                self._uses[name] = found
        return found

    def _function(self, name: str) -> Function:
        found = self.functions.get(border.instance("a function's name", name, str))
        if found is None:
            known = ", ".join(list(self.functions)[:10]) or "none"
            raise FunctionNotFoundError(f"the PTX has no function {name!r}; it has: {known}")
        return found


class _ModuleReader:
    """Reads the module-level directives; a body is passed over by counting its braces."""

    def __init__(self, module: PtxModule, text: str, lines: LineIndex) -> None:
        self._module = module
        self._text = text
        self._lines = lines

    def read(self) -> None:
        """Split the text into stretches of directives and function bodies."""
        at, text = 0, self._text
        function = _FUNCTION.search(text)
        while at < len(text):
            if function is not None and function.start() < at:
                function = _FUNCTION.search(text, at)
            section = _SECTION.search(text, at, function.start() if function else len(text))
            if section is not None:
                self._directives(at, section.start())
                opening = section.end() - 1
                at = self._closing(opening) + 1 if text[opening] == "{" else section.end()
            elif function is None:
                self._directives(at, len(text))
                at = len(text)
            else:
                linkage = self._linkage_before(at, function.start())
                at = self._function(function.start(), linkage)

    def _linkage_before(self, start: int, end: int) -> Linkage:
        """Read the directives before a function; the last may be its linkage."""
        stretch = self._text[start:end].rstrip()
        for word, linkage in LINKAGES.items():
            if stretch.endswith(word):
                self._directives(start, start + len(stretch) - len(word))
                return linkage
        self._directives(start, end)
        return Linkage.NONE

    def _closing(self, opening: int) -> int:
        """The offset of the brace that closes the one at `opening`."""
        depth = 0
        for found in _BRACE.finditer(self._text, opening):
            brace = found.group()
            depth += (brace == "{") - (brace == "}")
            if depth == 0:
                return found.start()
        raise syntax_error(self._text, opening, "this brace is never closed")

    def _function(self, start: int, linkage: Linkage) -> int:
        """`.entry|.func [(returns)] name [(params)] {directive} ({ body } | ;)`; gives its end."""
        text = self._text
        brace, semicolon = text.find("{", start), text.find(";", start)
        defined = brace >= 0 and (semicolon < 0 or brace < semicolon)
        stop = brace if defined else semicolon
        if stop < 0:
            raise syntax_error(text, start, "this function has neither a body nor a semicolon")
        cursor = Cursor(text, start, stop)
        is_entry = cursor.advance() == ".entry"
        returns = () if is_entry else parameter_list(cursor)
        line = self._lines.line(cursor.offset)
        name = cursor.expect_kind("word")
        params = parameter_list(cursor)
        directives = self._tuning(cursor)
        span = (brace, self._closing(brace) + 1) if defined else None
        known = self._module.functions.get(name)
        if known is not None and known.span is not None and span is not None:
            raise syntax_error(text, start, f"{name} is defined twice")
        if known is None or span is not None:
            self._module.functions[name] = Function(
                name, is_entry, linkage, returns, params, directives, span, line
            )
        return span[1] if span is not None else stop + 1

    @staticmethod
    def _tuning(cursor: Cursor) -> dict[str, tuple[int, ...]]:
        """`{.directive [n {, n}]}` between a function's parameters and its body."""
        found: dict[str, tuple[int, ...]] = {}
        while cursor.kind != "end":
            name = cursor.expect_kind("directive")
            values: list[int] = []
            if name not in _TUNING_WITHOUT_NUMBERS:
                while cursor.kind in ("integer", "string"):
                    if cursor.kind == "string":
                        cursor.advance()
                    else:
                        values.append(integer(cursor))
                    cursor.accept(",")
            cursor.accept(";")
            found[name[1:]] = tuple(values)
        return found

    def _directives(self, start: int, end: int) -> None:
        """Everything at module level that is no function and no debug section."""
        if not self._text[start:end].strip():
            return
        cursor = Cursor(self._text, start, end, TOKEN_OR_TABLE)
        linkage = Linkage.NONE
        while cursor.kind != "end":
            word = cursor.word
            if word in LINKAGES:
                linkage = LINKAGES[cursor.advance()]
                continue
            if word in SPACES and SPACES[word] is not Space.REG:
                line = self._lines.line(cursor.offset)
                for variable in variables(cursor, linkage, line):
                    known = self._module.variables.get(variable.name)
                    if known is None or known.linkage is Linkage.EXTERN:
                        self._module.variables[variable.name] = variable
            else:
                self._directive(cursor)
            linkage = Linkage.NONE

    def _directive(self, cursor: Cursor) -> None:
        word = cursor.word
        if word == ".version":
            cursor.advance()
            self._module.version = cursor.advance()
        elif word == ".target":
            cursor.advance()
            self._module.target = cursor.expect_kind("word")
            while cursor.accept(","):
                cursor.expect_kind("word")
        elif word == ".address_size":
            cursor.advance()
            self._module.address_size = integer(cursor)
        elif word == ".file":
            cursor.advance()
            integer(cursor)
            cursor.expect_kind("string")
            while cursor.accept(","):
                integer(cursor)
        elif word == ".pragma":
            while not cursor.accept(";"):
                cursor.advance()
        elif word == ".alias":
            cursor.advance()
            name = cursor.expect_kind("word")
            cursor.expect(",")
            self._module.aliases[name] = cursor.expect_kind("word")
            cursor.expect(";")
        elif not cursor.accept(";"):
            cursor.fail(f"expected a module directive, found {word!r}")


def parse(text: str) -> PtxModule:
    """The module of a PTX text; function bodies are parsed when they are asked for.

    Raises:
        PtxSyntaxError: the text is wrong at module level.
    """
    module = PtxModule(text)
    if not module.version:
        raise PtxSyntaxError(
            "this is no PTX: it has no .version directive",
            line=1,
            column=1,
            source_line=text.split("\n", 1)[0],
        )
    return module
