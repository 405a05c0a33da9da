"""The module: its directives are read at once, its function bodies on first use."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from ptx.argument_checks import checks
from ptx.errors import FunctionNotFoundError
from ptx.isa.body import parse_body
from ptx.isa.declarations import LINKAGES, SPACES, integer, parameter_list, variables
from ptx.isa.errors import shortened, syntax_error
from ptx.isa.lexer import TOKEN_OR_TABLE, Cursor, LineIndex, without_comments
from ptx.isa.model import Body, Function, Linkage, Parameter, Space, Variable

_BRACE = re.compile(r'"[^"\n]*"|[{}]')
_SECTION = re.compile(r"(?m)^[ \t]*\.section\b[^\n{]*(?:\s*\{)?")
_FUNCTION = re.compile(r"\.(?:entry|func)(?![\w$])")
_FILE = re.compile(r'(?m)^[ \t]*\.file[ \t]+(\d+)[ \t]+"([^"\n]*)"')
_WORD = re.compile(r"[A-Za-z_$%][\w$]*")
# A declaration, not an instruction such as ld.shared.b32, whose `.shared` follows a word. The
# pattern begins with plain characters, which are searched for ten times faster.
_SHARED = re.compile(r"\.shared(?<![\w$]\.shared)\s(?:(?!\.shared\s)[^;])*+;")
# At the start of a line or a statement, after a guard. Each pattern begins with one character,
# which is searched for ten times faster than any of them. None reads blank lines that another match
# reads again: time stays linear.
_STATEMENT_WORDS = tuple(
    re.compile(rf"{start}*+(?:@!?[\w$%]+\s+)?([a-z]\w*(?:(?:\.|::)\w+)+)")
    for start in (r"\n[^\S\n]", r";\s", r"\{\s", r"\}\s", r":(?<!::)\s")
)
_TUNING_WITHOUT_NUMBERS = {".noreturn", ".explicitcluster", ".blocksareclusters"}
# The most numbers of these directives, all of which must be positive.
_POSITIVE = {".maxntid": 3, ".reqntid": 3, ".maxnreg": 1, ".minnctapersm": 1}
_VERSION = re.compile(r"\d{1,3}\.\d{1,3}", re.ASCII)
_TARGET = re.compile(r"(?:sm|compute)_\d{2,3}[af]?", re.ASCII)
_OF_TARGETS = {"debug", "map_f64_to_f32", "texmode_independent", "texmode_unified"}


@dataclass(frozen=True, slots=True)
class NamesUsed:
    """The names that occur in a function's body, and the shared variables that it declares."""

    names: frozenset[str]
    shared: tuple[Variable, ...]


class PtxModule:
    """One PTX text: its declarations, and each function's body on demand.

    Attributes:
        text: the text as given.
        version, target, address_size: of the three opening directives; target without options.
        files: the CUDA source of each `.file` number.
        functions: by name; a definition hides its declaration.
        variables: module-scope variables by name.
    """

    def __init__(self, text: str) -> None:
        self.text: str = checks.instance_of("PTX", text, str)
        self.version = ""
        self.target = ""
        self.address_size = 64
        self.functions: dict[str, Function] = {}
        self.variables: dict[str, Variable] = {}
        self.aliases: dict[str, str] = {}
        self._clean = without_comments(text)
        self._lines = LineIndex(text)
        self._bodies: dict[str, Body] = {}
        self._uses: dict[str, NamesUsed] = {}
        self.files: dict[int, str] = {
            int(match[1]): match[2] for match in _FILE.finditer(self._clean)
        }
        _ModuleReader(self, self._clean, self._lines).read()

    @property
    def entries(self) -> tuple[Function, ...]:
        """The kernels, in the order of the text."""
        return tuple(function for function in self.functions.values() if function.is_entry)

    @cached_property
    def device_functions(self) -> frozenset[str]:
        """The names of the functions that are no kernels."""
        return frozenset(name for name, function in self.functions.items() if not function.is_entry)

    @cached_property
    def shared_places(self) -> dict[str, int]:
        """The position of each shared variable among the module's variables."""
        variables = enumerate(self.variables.values())
        return {v.name: position for position, v in variables if v.space is Space.SHARED}

    @cached_property
    def instruction_words(self) -> frozenset[str]:
        """The dotted words of all instructions, such as `ld.global.f32`; no body is read."""
        return frozenset().union(*(words.findall(self._clean) for words in _STATEMENT_WORDS))

    def uses_special(self, name: str) -> bool:
        """Return whether a special register such as `%clusterid` occurs outside of comments."""
        special = re.escape(checks.text("PtxModule.uses_special: name", name))
        return re.search(rf"{special}(?!\w)", self._clean) is not None

    def line_of(self, word: str) -> int:
        """The line that the first instruction of this word, or the first use of a name, is on."""
        exact = re.escape(checks.text("PtxModule.line_of: word", word))
        use = re.search(rf"(?<![\w.:%$]){exact}(?![\w:])(?!\.(?![xyzw]\b))", self._clean)
        return self._lines.line(use.start()) if use else 1

    def body(self, name: str) -> Body:
        """The parsed body of a function that is defined here.

        Raises:
            FunctionNotFoundError: there is no such function, or it is only declared.
            PtxSyntaxError: its text is wrong.
        """
        parsed = self._bodies.get(checks.instance_of("a function's name", name, str))
        if parsed is None:
            function = self._function(name)
            if function.span is None:
                raise FunctionNotFoundError(f"function {name!r} is only declared")
            parameters = [parameter.name for parameter in (*function.returns, *function.params)]
            parsed = parse_body(self._clean, function.span, self._lines, parameters, self.variables)
            self._bodies[name] = parsed
        return parsed

    def body_text(self, name: str) -> str:
        """The text of a function's body without its comments, "" where it is only declared."""
        span = self._function(name).span
        return "" if span is None else self._clean[span[0] : span[1]]

    def uses(self, name: str) -> NamesUsed:
        """Return the names that a function's body uses, read once for all kernels that call it."""
        names_used = self._uses.get(checks.instance_of("a function's name", name, str))
        if names_used is None:
            shared: list[Variable] = []
            for match in _SHARED.finditer(self._clean, *(self._function(name).span or (0, 0))):
                shared += variables(Cursor(self._clean, *match.span()), Linkage.NONE, 0)
            names_used = NamesUsed(frozenset(_WORD.findall(self.body_text(name))), tuple(shared))
            if name in self.device_functions:
                self._uses[name] = names_used
        return names_used

    def _function(self, name: str) -> Function:
        function = self.functions.get(checks.instance_of("a function's name", name, str))
        if function is None:
            names = ", ".join(list(self.functions)[:10]) or "none"
            raise FunctionNotFoundError(f"the PTX has no function {name!r}; it has: {names}")
        return function


class _ModuleReader:
    """Reads the module-level directives; a body is passed over by counting its braces."""

    def __init__(self, module: PtxModule, text: str, lines: LineIndex) -> None:
        self._module = module
        self._text = text
        self._lines = lines
        self._has_address_size = False

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
        for match in _BRACE.finditer(self._text, opening):
            brace = match.group()
            depth += (brace == "{") - (brace == "}")
            if depth == 0:
                return match.start()
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
        function = Function(name, is_entry, linkage, returns, params, directives, span, line)
        declared = self._module.functions.get(name)
        fault = self._fault_of_function(function, declared)
        if fault:
            raise syntax_error(text, start, fault)
        if declared is None or span is not None:
            self._module.functions[name] = function
        return span[1] if span is not None else stop + 1

    def _fault_of_function(self, function: Function, declared: Function | None) -> str:
        """Why a function is none that a GPU takes, "" where it is; `declared` has the same name."""
        name, is_defined = function.name, function.span is not None
        if declared is not None and declared.span is not None and is_defined:
            return f"{name} is defined twice"
        if name in self._module.variables or (
            declared is not None and declared.is_entry != function.is_entry
        ):
            return f"{name} is declared twice"
        if function.linkage is Linkage.EXTERN and is_defined:
            return f"{name} is .extern and has a body"
        if {"maxntid", "reqntid"} <= function.directives.keys():
            return ".maxntid and .reqntid do not go together"
        names = set[str]()
        for parameter in (*function.returns, *function.params):
            if parameter.name in names:
                return f"parameter {parameter.name} is declared twice"
            names.add(parameter.name)
        if not function.is_entry:
            return ""
        return next(filter(None, map(_fault_of_parameter, function.params)), "")

    @staticmethod
    def _tuning(cursor: Cursor) -> dict[str, tuple[int, ...]]:
        """`{.directive [n {, n}]}` between a function's parameters and its body."""
        directives: dict[str, tuple[int, ...]] = {}
        while cursor.kind != "end":
            at = cursor.index
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
            most = _POSITIVE.get(name)
            if most is not None and not (1 <= len(values) <= most and min(values) > 0):
                numbers = "a positive integer" if most == 1 else f"1 to {most} positive integers"
                raise cursor.error(f"{name} takes {numbers}", at)
            directives[name[1:]] = tuple(values)
        return directives

    def _directives(self, start: int, end: int) -> None:
        """Everything at module level that is no function and no debug section."""
        if not self._text[start:end].strip():
            return
        cursor = Cursor(self._text, start, end, TOKEN_OR_TABLE)
        linkage = Linkage.NONE
        try:
            while cursor.kind != "end":
                word = cursor.word
                if word in LINKAGES:
                    if linkage is not Linkage.NONE:
                        cursor.fail(f"expected one linkage, found a second, {word}")
                    linkage = LINKAGES[cursor.advance()]
                    continue
                if word in SPACES and SPACES[word] is not Space.REG:
                    self._variables(cursor, linkage)
                else:
                    self._directive(cursor)
                linkage = Linkage.NONE
        except RecursionError:
            raise cursor.error("this nests too deeply") from None

    def _variables(self, cursor: Cursor, linkage: Linkage) -> None:
        """A declaration of variables; one that follows a definition is passed over."""
        if cursor.word in (".local", ".param"):
            cursor.fail(f"{cursor.word} variables stand in functions only")
        first, by_name = cursor.index, self._module.variables
        line = self._lines.line(cursor.offset)
        for variable in variables(cursor, linkage, line, self._fault_of_address):
            name, former = variable.name, by_name.get(variable.name)
            if name in self._module.functions or (
                former is not None and Linkage.EXTERN not in (linkage, former.linkage)
            ):
                raise cursor.error(f"{name} is declared twice", first)
            if former is None or (
                former.linkage is Linkage.EXTERN and linkage is not Linkage.EXTERN
            ):
                if former is not None and linkage is Linkage.NONE:
                    raise cursor.error(f"{name} is .extern above, and not .visible here", first)
                by_name[name] = variable

    def _fault_of_address(self, name: str) -> str:
        """Why no initialiser has the address of a name, "" where one may."""
        variable = self._module.variables.get(name)
        if variable is None:
            return "" if name in self._module.functions else "is not declared before"
        if variable.space in (Space.GLOBAL, Space.CONST):
            return ""
        return f"is a .{variable.space.value} variable, whose address is not known here"

    def _directive(self, cursor: Cursor) -> None:
        word = cursor.word
        if word == ".version":
            self._version(cursor)
        elif word == ".target":
            self._target(cursor)
        elif word == ".address_size":
            self._address_size(cursor)
        elif word == ".file":
            cursor.advance()
            integer(cursor)
            cursor.expect_kind("string")
            while cursor.accept(","):
                integer(cursor)
        elif word == ".pragma":
            cursor.advance()
            cursor.expect_kind("string")
            while cursor.accept(","):
                cursor.expect_kind("string")
            cursor.expect(";")
        elif word == ".alias":
            cursor.advance()
            name = cursor.expect_kind("word")
            cursor.expect(",")
            target = cursor.expect_kind("word")
            if target not in self._module.functions:
                raise cursor.error(f"{target} is not a function declared before", cursor.index - 1)
            self._module.aliases[name] = target
            cursor.expect(";")
        elif not cursor.accept(";"):
            cursor.fail(f"expected a module directive{cursor.found}")

    def _version(self, cursor: Cursor) -> None:
        """`.version major.minor`."""
        if self._module.version:
            cursor.fail("a second .version")
        cursor.advance()
        if not _VERSION.fullmatch(cursor.word):
            cursor.fail(f".version takes a version such as 8.0{cursor.found}")
        self._module.version = cursor.advance()

    def _target(self, cursor: Cursor) -> None:
        """`.target architecture {, option}`."""
        cursor.advance()
        if not _TARGET.fullmatch(cursor.word):
            cursor.fail(f".target takes an architecture such as sm_90{cursor.found}")
        self._module.target = cursor.advance().replace("compute_", "sm_")
        while cursor.accept(","):
            option = cursor.expect_kind("word")
            if option not in _OF_TARGETS and not _TARGET.fullmatch(option):
                option = shortened(option, 40)
                raise cursor.error(f"{option} is not an option of .target", cursor.index - 1)

    def _address_size(self, cursor: Cursor) -> None:
        """`.address_size 32|64`."""
        if self._has_address_size:
            cursor.fail("a second .address_size")
        self._has_address_size = True
        cursor.advance()
        self._module.address_size = integer(cursor)
        if self._module.address_size not in (32, 64):
            raise cursor.error(".address_size takes 32 or 64", cursor.index - 1)


def _fault_of_parameter(param: Parameter) -> str:
    """Why a kernel cannot have a parameter, "" where it can."""
    if param.space is not Space.PARAM:
        return f"parameter {param.name} of a kernel is not a .param"
    if param.ptx_type == "pred":
        return f"parameter {param.name} of a kernel is a predicate"
    return "" if param.count else f"parameter {param.name} of a kernel has no elements"


def parse(text: str) -> PtxModule:
    """Return the module of a PTX text; function bodies are parsed on first use.

    Raises:
        PtxSyntaxError: the text is wrong at module level.
    """
    module = PtxModule(text)
    for name, value in ((".version", module.version), (".target", module.target)):
        if not value:
            raise syntax_error(text, 0, f"this is not PTX: it has no {name} directive")
    return module


# CUDA C++ Programming Guide, "Launch Bounds": of a kernel with one of these the option is ignored.
_LAUNCH_BOUNDS = {"maxnreg", "maxntid", "reqntid", "minnctapersm"}


def with_register_limit(text: str, registers: int) -> str:
    """Return PTX whose kernels may use so many registers a thread; lines keep their numbers.

    NVRTC's `--maxrregcount` is for machine code; its PTX does not mention the limit.

    Raises:
        PtxSyntaxError: the text is wrong at module level.
    """
    places = [
        entry.span[0]
        for entry in parse(text).entries
        if entry.span is not None and not _LAUNCH_BOUNDS & entry.directives.keys()
    ]
    parts: list[str] = []
    start = 0
    for offset in sorted(places):
        parts += [text[start:offset], f".maxnreg {registers} "]
        start = offset
    return "".join([*parts, text[start:]])
