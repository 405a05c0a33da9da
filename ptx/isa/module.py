"""The module: its directives are read at once, its function bodies on first use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ptx.argument_checks import checks
from ptx.errors import FunctionNotFoundError
from ptx.isa.body import parse_body
from ptx.isa.call_checks import CallChecks
from ptx.isa.constant_expressions import integer_literal, source_number
from ptx.isa.declarations import (
    LINKAGES,
    SPACES,
    ParameterOwner,
    fault_of_passed,
    parameter_list,
    result_list,
    variables,
)
from ptx.isa.directives import (
    DirectivePlace,
    directive_of,
    fault_of_directives,
    pragma,
    read_directives,
)
from ptx.isa.errors import PtxSyntaxError, shortened, syntax_error
from ptx.isa.lexer import TOKEN_OR_TABLE, Cursor, LineIndex, without_comments
from ptx.isa.model import Body, Function, Linkage, Space, SymbolValue, Variable
from ptx.isa.names import STATIC_SPACES, fault_of_function_address
from ptx.isa.passed_registers import PassedRegisters
from ptx.isa.sections import SECTION, section_end
from ptx.isa.special_registers import fault_of_name
from ptx.read_only import Guarded, ReadOnly

_BRACE = re.compile(r'"[^"\n]*"|[{}]')
_FUNCTION = re.compile(r"\.(?:entry|func)(?![\w$])")
_FILE = re.compile(r'(?m)^[ \t]*\.file[ \t]+(\d+)[ \t]+"([^"\n]*)"')
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|(.))")
_WORD = re.compile(r"[A-Za-z_$%][\w$]*")
# A declaration, not an instruction such as ld.shared.b32, whose `.shared` follows a word. The
# pattern begins with plain characters, which are searched for ten times faster.
_SHARED = re.compile(r"\.shared(?<![\w$]\.shared)\s(?:(?!\.shared\s)[^;])*+;")
_PARAMETER = re.compile(r"\.param\s")
# The same of variables of the whole module that a function declares.
_STATIC = re.compile(r"\.(?:const|global)(?<![\w$]\.const)(?<![\w$]\.global)\s")
# At the start of a line or a statement, after a guard. Each pattern begins with one character,
# which is searched for ten times faster than any of them. None reads blank lines that another match
# reads again: time stays linear.
_STATEMENT_WORDS = tuple(
    re.compile(rf"{start}*+(?:@!?[\w$%]+\s+)?([a-z]\w*(?:(?:\.|::)\w+)+)")
    for start in (r"\n[^\S\n]", r";\s", r"\{\s", r"\}\s", r":(?<!::)\s")
)
# Where ptxas does not compare types with the version: it makes no code of them.
_ELSEWHERE = re.compile(
    r"\.extern\s+\.(?:func|entry)(?![\w$])[^;{]*;|\.callprototype(?![\w$])[^;]*;"
)
_VERSION = re.compile(r"\d{1,3}\.\d{1,3}", re.ASCII)
_TARGET = re.compile(r"(?:sm|compute)_\d{2,3}[af]?", re.ASCII)
_TEXTURE_MODES = {"texmode_independent", "texmode_unified"}
_OF_TARGETS = {"debug", *_TEXTURE_MODES}
_AFTER_HEADER = re.compile(r"\.(?!(?:version|target|address_size)\b)[A-Za-z]")
# A header ends at the first of these characters, but for the semicolons of pragmas.
_END_OF_HEADER = re.compile(r'(?:\.pragma(?:[^;"{]|"[^"]*")*;|[^;{])*')
_HEADER_DIRECTIVES = (".version", ".target", ".address_size")
_PRAGMAS = {'"nounroll"'}


@dataclass(frozen=True, slots=True)
class NamesUsed:
    """The names that occur in a function's body, and the shared variables that it declares."""

    names: frozenset[str]
    shared: tuple[Variable, ...]


class PtxModule(Guarded):
    """One PTX text: its declarations, and each function's body on demand.

    Attributes:
        text: the text as given.
        version, target, address_size: of the three opening directives; target without options.
        files: the CUDA source of each `.file` number.
        functions: by name; a definition hides its declaration.
        variables: module-scope variables by name.
        aliases: the function that each name of an `.alias` means.
    """

    text: ReadOnly[str] = ReadOnly("_text")
    version: ReadOnly[str] = ReadOnly("_version")
    target: ReadOnly[str] = ReadOnly("_target")
    address_size: ReadOnly[int] = ReadOnly("_address_size")
    functions: ReadOnly[dict[str, Function]] = ReadOnly("_functions")
    variables: ReadOnly[dict[str, Variable]] = ReadOnly("_variables")
    aliases: ReadOnly[dict[str, str]] = ReadOnly("_aliases")
    files: ReadOnly[dict[int, str]] = ReadOnly("_files")

    def __init__(self, text: str) -> None:
        self._text: str = checks.instance_of("PTX", text, str)
        self._version = ""
        self._target = ""
        self._address_size = 64
        self._functions: dict[str, Function] = {}
        self._variables: dict[str, Variable] = {}
        self._aliases: dict[str, str] = {}
        self._declared_at: dict[str, int] = {}  # by name, the first offset
        self._clean = without_comments(text)
        self._is_debug = False
        self._sections: list[tuple[int, int]] = []  # offsets in the text
        self._lines = LineIndex(text)
        self._bodies: dict[str, Body] = {}
        self._uses: dict[str, NamesUsed] = {}
        self._files: dict[int, str] = {
            int(match[1]): _file_name(match[2]) for match in _FILE.finditer(self._clean)
        }
        _ModuleReader(self, self._clean, self._lines).read()

    @property
    def entries(self) -> tuple[Function, ...]:
        """The kernels, in the order of the text."""
        return tuple(function for function in self._functions.values() if function.is_entry)

    @property
    def lacks_sections(self) -> bool:
        """Whether `.target` has the option `debug` and no section has debug information."""
        return self._is_debug and not self._sections

    def in_sections(self, pattern: re.Pattern[str]) -> str:
        """The first text of a pattern in sections of debug information, "" without one."""
        found = (pattern.search(self._clean, *span) for span in self._sections)
        return next((match[0] for match in found if match), "")

    @cached_property
    def device_functions(self) -> frozenset[str]:
        """The names of the functions that are no kernels."""
        return frozenset(
            name for name, function in self._functions.items() if not function.is_entry
        )

    @cached_property
    def static_variables(self) -> tuple[Variable, ...]:
        """The `.global` and `.const` variables of the module, then those of its functions."""
        own = [v for v in self._variables.values() if v.space in STATIC_SPACES]
        for function in self._functions.values():
            if function.span is not None and _STATIC.search(self._clean, *function.span):
                declared = self.body(function.name).variables
                own += [v for v in declared if v.space in STATIC_SPACES]
        return tuple(own)

    @cached_property
    def shared_places(self) -> dict[str, int]:
        """The position of each shared variable among the module's variables."""
        variables = enumerate(self._variables.values())
        return {v.name: position for position, v in variables if v.space is Space.SHARED}

    @cached_property
    def instruction_words(self) -> frozenset[str]:
        """The dotted words of all instructions, such as `ld.global.f32`; no body is read."""
        return frozenset().union(*(words.findall(self._clean) for words in _STATEMENT_WORDS))

    def uses_special(self, name: str) -> bool:
        """Return whether a special register such as `%clusterid` occurs outside of comments."""
        special = re.escape(checks.text("PtxModule.uses_special: name", name))
        return re.search(rf"{special}(?!\w)", self._clean) is not None

    def declares(self, ptx_type: str, *, arrays: bool) -> bool:
        """Return whether a declaration outside of comments has a type, one of arrays as well.

        Declarations of vectors are left out and, without arrays, parameters of external functions
        and of prototypes.
        """
        name = checks.text("PtxModule.declares: type", ptx_type)
        behind = "" if arrays else r"(?:\s+(?:\.\w+|\d+))*\s+[\w$%]+\s*(?:<[^>]*>\s*)?[;,)=]"
        declared = rf"(?<![\w:])(?<!\.v[24] )\.{re.escape(name)}(?![\w:.]){behind}"
        if f".{name}" not in self._clean:
            return False
        text = self._clean if arrays else _ELSEWHERE.sub("", self._clean)
        return re.search(declared, text) is not None

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
            parsed = parse_body(
                self._clean,
                function.span,
                self._lines,
                (*function.returns, *function.params),
                self._variables,
                self._functions,
                self._declared_at,
            )
            parsed = self._bodies[name] = self._with_calls(function, parsed)
        return parsed

    def _with_calls(self, function: Function, body: Body) -> Body:
        """A body whose calls and indirect branches are right, and pass no registers."""
        text = self.body_text(function.name)
        has_parameters = bool(
            _PARAMETER.search(text) if function.is_entry else function.returns or function.params
        )
        if "call" not in text and "brx" not in text and not has_parameters:
            return body
        fault, line = CallChecks(function, body, self._functions, self._aliases).fault()
        if fault:
            at = line or function.line
            source = self._text.split("\n")[at - 1]
            raise PtxSyntaxError(fault, line=at, column=1, source_line=source)
        return PassedRegisters(function, body, self._functions, self._aliases).body()

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
        function = self._functions.get(checks.instance_of("a function's name", name, str))
        if function is None:
            names = ", ".join(list(self._functions)[:10]) or "none"
            raise FunctionNotFoundError(f"the PTX has no function {name!r}; it has: {names}")
        return function


class _ModuleReader:
    """Reads the module-level directives; a body is passed over by counting its braces."""

    def __init__(self, module: PtxModule, text: str, lines: LineIndex) -> None:
        self._module = module
        self._text = text
        self._lines = lines
        self._has_samplers = False
        self._files: set[int] = set()

    def read(self) -> None:
        """Split the text into stretches of directives and function bodies."""
        text = self._text
        at = self._header()
        labels = set[str]()
        function = _FUNCTION.search(text, at)
        while at < len(text):
            if function is not None and function.start() < at:
                function = _FUNCTION.search(text, at)
            section = self._section(at, function.start() if function else len(text))
            if section >= 0:
                self._directives(at, section)
                at = section_end(text, section, labels)
                self._module._sections.append((section, at))
            elif function is None:
                self._directives(at, len(text))
                at = len(text)
            else:
                linkage = self._linkage_before(at, function.start())
                at = self._function(function.start(), linkage)

    def _section(self, start: int, end: int) -> int:
        """The offset of the first section, -1 without one."""
        for match in SECTION.finditer(self._text, start, end):
            if match[1]:
                return match.start()
        return -1

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
        header = _END_OF_HEADER.match(text, start)
        stop = header.end() if header else len(text)
        if stop == len(text):
            raise syntax_error(text, start, "this function has neither a body nor a semicolon")
        cursor = Cursor(text, start, stop)
        function = self._function_header(cursor, linkage)
        is_defined = text[stop] == "{"
        if not is_defined and function.is_entry and function.directives:
            raise cursor.error(f"{function.name} has directives and no body")
        span = (stop, self._closing(stop) + 1) if is_defined else None
        function = replace(function, span=span)
        declared = self._module.functions.get(function.name)
        fault = self._fault_of_function(function, declared)
        if fault:
            raise syntax_error(text, start, fault)
        self._module.functions[function.name] = function
        self._module._declared_at.setdefault(function.name, start)
        return span[1] if span is not None else stop + 1

    def _function_header(self, cursor: Cursor, linkage: Linkage) -> Function:
        """A function up to its body or semicolon."""
        is_entry = cursor.advance() == ".entry"
        owner = ParameterOwner.ENTRY if is_entry else ParameterOwner.FUNCTION
        if linkage is Linkage.COMMON:
            cursor.fail("no function is .common")
        returns = () if is_entry else result_list(cursor, owner)
        line = self._lines.line(cursor.offset)
        name = cursor.expect_name()
        params = parameter_list(cursor, owner)
        place = DirectivePlace.ENTRY if is_entry else DirectivePlace.FUNCTION
        directives = read_directives(cursor, place)
        if cursor.kind != "end":
            cursor.fail(f"expected a directive or a body{cursor.found}")
        return Function(name, is_entry, linkage, returns, params, directives, None, line)

    def _fault_of_function(self, function: Function, declared: Function | None) -> str:
        """Why a function is none that a GPU takes, "" where it is; `declared` has the same name."""
        name, is_defined = function.name, function.span is not None
        if name in self._module.variables:
            return f"{name} is declared twice"
        if fault_of_name(name):
            return fault_of_name(name)
        if declared is not None:
            fault = _fault_of_declarations(function, declared)
            if fault:
                return fault
        if function.linkage is Linkage.EXTERN and is_defined:
            return f"{name} is .extern and has a body"
        fault = fault_of_directives(function.directives)
        if fault:
            return fault
        if len(function.returns) > 1:
            return f"{name} has more than one result"
        return _fault_of_parameters(function) if is_defined or function.is_entry else ""

    def _directives(self, start: int, end: int) -> None:
        """Everything at module level that is no function and no debug section."""
        if not self._text[start:end].strip():
            return
        cursor = Cursor(self._text, start, end, TOKEN_OR_TABLE)
        try:
            while cursor.kind != "end":
                if cursor.word in LINKAGES:
                    linkage = LINKAGES[cursor.advance()]
                    self._variables(cursor, linkage)
                elif cursor.word in SPACES or cursor.word in (".align", ".attribute"):
                    self._variables(cursor, Linkage.NONE)
                else:
                    self._directive(cursor)
        except RecursionError:
            raise cursor.error("this nests too deeply") from None

    def _variables(self, cursor: Cursor, linkage: Linkage) -> None:
        """A declaration of variables; one that follows a definition is passed over."""
        first, by_name = cursor.index, self._module.variables
        at = cursor.offset
        line = self._lines.line(cursor.offset)
        if cursor.word in (".local", ".param", ".reg"):
            raise cursor.error(f"{cursor.word} variables stand in functions only", first)
        for variable in variables(cursor, linkage, line, self._fault_of_address):
            former = by_name.get(variable.name)
            fault = self._fault_of_variable(variable, former)
            if fault:
                raise cursor.error(fault, first)
            if former is None or linkage is not Linkage.EXTERN:
                by_name[variable.name] = variable
            self._module._declared_at.setdefault(variable.name, at)

    def _fault_of_variable(self, variable: Variable, former: Variable | None) -> str:
        """Why a module cannot have a variable, "" where it can; `former` has the same name."""
        name, linkage = variable.name, variable.linkage
        if fault_of_name(name):
            return fault_of_name(name)
        if variable.ptx_type == "samplerref" and not self._has_samplers:
            return ".samplerref needs the target option texmode_independent"
        if name in self._module.functions or (
            former is not None and Linkage.EXTERN not in (linkage, former.linkage)
        ):
            return f"{name} is declared twice"
        if former is None:
            return ""
        if former.linkage is Linkage.EXTERN and linkage is Linkage.NONE:
            return f"{name} is .extern above, and not .visible here"
        if not _are_of_one_type(former, variable):
            return f"{name} is declared twice, with different types"
        return ""

    def _fault_of_address(self, symbol: SymbolValue) -> str:
        """Why no initialiser has an address, "" where one may have it."""
        return fault_of_address(symbol, self._module.variables, self._module.functions)

    def _directive(self, cursor: Cursor) -> None:
        """`.file`, `.pragma` or `.alias`."""
        directive = directive_of(cursor, DirectivePlace.MODULE)
        if directive.name == ".file":
            self._file(cursor)
        elif directive.name == ".pragma":
            first = cursor.index
            for text in pragma(cursor):
                if text not in _PRAGMAS:
                    raise cursor.error(f"{text} is no pragma of a module", first)
        elif directive.name == ".alias":
            self._alias(cursor)
        else:
            cursor.fail(f"{directive.name} stands at the start of a module only")

    def _file(self, cursor: Cursor) -> None:
        """`.file n string [, timestamp [, size]]`."""
        cursor.advance()
        number = source_number(cursor)
        if number in self._files:
            raise cursor.error(f"a second .file {number}", cursor.index - 1)
        self._files.add(number)
        cursor.expect_kind("string")
        for _ in range(2):
            if cursor.accept(","):
                integer_literal(cursor)

    def _alias(self, cursor: Cursor) -> None:
        """`.alias name, function ;`."""
        cursor.advance()
        first, functions = cursor.index, self._module.functions
        name = cursor.expect_name()
        cursor.expect(",")
        target = cursor.expect_name()
        cursor.expect(";")
        fault = next(
            (
                f"{each} is not a function declared before"
                for each in (target, name)
                if each not in functions or functions[each].is_entry
            ),
            "",
        )
        if not fault and (functions[name].span is not None or name in self._module.aliases):
            fault = f"{name} is defined already"
        if not fault and functions[target].linkage is Linkage.WEAK:
            fault = f"{target} is .weak, and has no aliases"
        if not fault and _prototype(functions[name]) != _prototype(functions[target]):
            fault = f"{name} and {target} have different parameters"
        if fault:
            raise cursor.error(fault, first)
        self._module.aliases[name] = target

    def _header(self) -> int:
        """`.version` `.target` {`.target`} [`.address_size`]; gives its end."""
        after = _AFTER_HEADER.search(self._text)
        cursor = Cursor(self._text, 0, after.start() if after else len(self._text))
        self._version(cursor)
        while cursor.word == ".target":
            self._target(cursor)
        if self._module.target and cursor.accept(".address_size"):
            self._module._address_size = integer_literal(cursor)
            if self._module.address_size not in (32, 64):
                raise cursor.error(".address_size takes 32 or 64", cursor.index - 1)
        for name, value in ((".version", self._module.version), (".target", self._module.target)):
            if not value:
                message = f"this is not PTX: it has no {name} directive"
                raise syntax_error(self._text, 0, message)
        end = cursor.offset
        if cursor.kind != "end":
            last = cursor.word if cursor.word in _HEADER_DIRECTIVES else ""
            cursor.fail(f"a second {last}" if last else f"expected a directive{cursor.found}")
        return end

    def _version(self, cursor: Cursor) -> None:
        """`.version major.minor`."""
        if not cursor.accept(".version"):
            return
        if not _VERSION.fullmatch(cursor.word):
            cursor.fail(f".version takes a version such as 8.0{cursor.found}")
        self._module._version = cursor.advance()

    def _target(self, cursor: Cursor) -> None:
        """`.target architecture {, option}`, where the last architecture counts."""
        cursor.advance()
        modes = set[str]()
        while True:
            option = cursor.word
            if _TARGET.fullmatch(option):
                self._module._target = option.replace("compute_", "sm_")
            elif option not in _OF_TARGETS or not self._module.target:
                option = shortened(option, 40)
                cursor.fail(
                    f"{option} is not an option of .target"
                    if self._module.target
                    else f".target takes an architecture such as sm_90{cursor.found}"
                )
            modes |= {option} & _TEXTURE_MODES
            self._module._is_debug |= option == "debug"
            if len(modes) > 1:
                cursor.fail(f"{' and '.join(sorted(modes))} do not go together")
            cursor.advance()
            if not cursor.accept(","):
                break
        self._has_samplers |= "texmode_independent" in modes


def _are_of_one_type(a: Variable, b: Variable) -> bool:
    """Return whether two declarations of a variable agree; a first `[]` is of any extent."""
    if a.ptx_type != b.ptx_type or len(a.shape) != len(b.shape) or a.shape[1:] != b.shape[1:]:
        return False
    if 0 in (a.count, b.count):
        return True
    return a.count == b.count and a.shape == b.shape


def fault_of_address(
    symbol: SymbolValue, by_name: Mapping[str, Variable], functions: Mapping[str, Function]
) -> str:
    """Return why no initialiser has an address, "" where one may have it.

    Only what is declared before has one, and an address within a function has none.
    """
    variable = by_name.get(symbol.name)
    if variable is None:
        return fault_of_function_address(symbol, functions)
    if variable.space in STATIC_SPACES:
        return ""
    return f"is a .{variable.space.value} variable, whose address is not known here"


def _prototype(function: Function) -> tuple[object, ...]:
    """The parameters of a function, without their names."""
    return tuple(
        tuple((p.space, p.ptx_type, p.align, p.count, p.is_pointer) for p in formals)
        for formals in (function.returns, function.params)
    )


def _fault_of_parameters(function: Function) -> str:
    """Why a kernel, or a function with a body, cannot have its parameters, "" where it can."""
    names = set[str]()
    for parameter in (*function.returns, *function.params):
        if parameter.name in names:
            return f"parameter {parameter.name} is declared twice"
        names.add(parameter.name)
        fault = "" if function.is_entry else fault_of_passed(parameter)
        if fault:
            return fault
    return ""


def _fault_of_declarations(function: Function, declared: Function) -> str:
    """Why a function does not go with its former declaration, "" where it does."""
    name = function.name
    if declared.span is not None:
        return f"{name} is {'defined' if function.span is not None else 'declared'} twice"
    if declared.is_entry != function.is_entry:
        return f"{name} is declared twice"
    if declared.linkage is not function.linkage and (
        declared.linkage is not Linkage.VISIBLE or function.linkage is not Linkage.NONE
    ):
        return f"{name} is declared twice, with different linkage"
    if _prototype(declared) != _prototype(function):
        return f"{name} is declared twice, with different parameters"
    if ("noreturn" in declared.directives) != ("noreturn" in function.directives):
        return f"{name} is declared twice, once with .noreturn"
    return ""


def parse(text: str) -> PtxModule:
    """Return the module of a PTX text; function bodies are parsed on first use.

    Raises:
        PtxSyntaxError: the text is wrong at module level.
    """
    return PtxModule(text)


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


def _file_name(text: str) -> str:
    """Return the name that NVRTC's escapes mean, of bytes in UTF-8.

    A name with control characters, or of other bytes, stays as it is written: it is shown to users.
    """
    if "\\" not in text:
        return text
    written = text.encode(errors="surrogateescape")
    name = _ESCAPE.sub(_escaped_byte, written).decode(errors="surrogateescape")
    return name if name.isprintable() else text


def _escaped_byte(match: re.Match[bytes]) -> bytes:
    if match[1]:
        return bytes([int(match[1], 8) & 0xFF])
    return b"\0" if match[2].isalpha() else match[2]  # \\n, \\t: control characters
