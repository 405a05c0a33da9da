"""The C++ types of kernels' parameters, read from mangled names and from the source.

A mangled name has the types of its kernel (Itanium C++ ABI, "External Names (a.k.a. Mangling)"). A
name that cannot be parsed is unknown as a whole, as later parts may refer to earlier ones.

The name of an ``extern "C"`` kernel has no types: they are read from its declaration. A declaration
counts only if it is certainly the kernel's own:

- It has C linkage.
- It is outside of every conditional of the preprocessor and every namespace.
- No macro of the source or of the options replaces any of its words.

All other types are unknown, and so is a type that is no name of the language or of CUDA.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from ptx.signature import KernelParam, KernelSignature

_BUILTIN: Final = frozenset("vbahcstijlmxyfdw")
_CHARACTERS: Final = ("Du", "Ds", "Di")  # char8_t, char16_t, char32_t
_QUALIFIERS: Final = frozenset("rVK")


class _NotUnderstoodError(Exception):
    """The name or the source is written in a way that this file does not read. Never leaves it."""


def mangled_types(name: str) -> tuple[str, ...] | None:
    """The types of a function's parameters in the ABI's own letters, such as "PKf", "i".

    References to earlier parts are replaced by those parts.

    Returns:
        None for a name that is not mangled, or that is not understood.
    """
    if not name.startswith("_Z"):
        return None
    reader = _Reader(name[2:])
    try:
        return reader.parameters()
    except (_NotUnderstoodError, IndexError):
        return None


class _Reader:
    """A name while it is read, with what later parts may refer to."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._known: list[str] = []
        self._arguments: list[str] = []

    def parameters(self) -> tuple[str, ...]:
        """<encoding> ::= <name> <bare-function-type>, which has the result first in a template."""
        if self._name():
            self._type()
        types: list[str] = []
        while self._at < len(self._text):
            types.append(self._type())
        return () if types == ["v"] else tuple(types)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, letter: str) -> bool:
        if self._peek() != letter:
            return False
        self._at += 1
        return True

    def _name(self) -> bool:
        """<name>; whether it has template arguments of its own."""
        if not self._take("N"):
            scope = self._source_name()
            if self._peek() != "I":
                return False
            self._known.append(scope)
            self._arguments = self._template_arguments()
            return True
        prefix, is_template = self._source_name(), False
        while not self._take("E"):
            # Later parts may refer to a prefix of the name, but not to the whole name of a
            # function.
            self._known.append(prefix)
            if self._peek() == "I":
                self._arguments, is_template = self._template_arguments(), True
                prefix += f"I{''.join(self._arguments)}E"
            else:
                prefix, is_template = prefix + self._source_name(), False
        return is_template

    def _source_name(self) -> str:
        """<source-name> ::= <length> <identifier>; others, as of operators, are not understood."""
        start = self._at
        while self._peek().isdecimal():
            self._at += 1
        digits = self._text[start : self._at]
        if not digits:
            raise _NotUnderstoodError
        end = self._at + int(digits)
        if end > len(self._text) or self._text.startswith("_GLOBAL_", self._at):
            raise _NotUnderstoodError
        self._at = end
        return self._text[start:end]

    def _template_arguments(self) -> list[str]:
        """I <template-arg>+ E: types, and literals as they stand."""
        arguments: list[str] = []
        self._take("I")
        while not self._take("E"):
            if self._take("L"):
                end = self._text.find("E", self._at)
                if end < 0 or self._peek() not in _BUILTIN:  # such as of an enumeration
                    raise _NotUnderstoodError
                arguments.append(f"L{self._text[self._at : end]}E")
                self._at = end + 1
            else:
                arguments.append(self._type())
        return arguments

    def _type(self) -> str:
        letter = self._peek()
        if letter in _BUILTIN:
            self._at += 1
            return letter
        if self._text[self._at : self._at + 2] in _CHARACTERS:
            self._at += 2
            return f"D{self._text[self._at - 1]}"
        if letter == "S":
            return self._reference()
        if letter == "T":
            mangled = self._template_parameter()
        elif letter in ("P", "R"):  # a reference is passed as a pointer
            self._at += 1
            mangled = f"P{self._type()}"
        elif letter in _QUALIFIERS:
            start = self._at
            while self._peek() in _QUALIFIERS:
                self._at += 1
            mangled = self._text[start : self._at] + self._type()
        else:
            return self._class()
        self._known.append(mangled)
        return mangled

    def _class(self) -> str:
        """A class by its name, with its template arguments."""
        if self._take("N"):
            if self._peek() == "S":
                prefix = self._reference(with_arguments=False)
            else:
                prefix = self._source_name()
                self._known.append(prefix)
            while not self._take("E"):
                prefix += self._part()
                self._known.append(prefix)
            return prefix
        class_name = self._source_name()
        self._known.append(class_name)
        if self._peek() == "I":
            class_name += self._part()
            self._known.append(class_name)
        return class_name

    def _part(self) -> str:
        if self._peek() == "I":
            return f"I{''.join(self._template_arguments())}E"
        return self._source_name()

    def _reference(self, *, with_arguments: bool = True) -> str:
        """S_, S0_, S1_, ...: an earlier part; abbreviations of std are not understood."""
        mangled = self._known[self._number("S")]
        if with_arguments and self._peek() == "I":
            mangled += f"I{''.join(self._template_arguments())}E"
            self._known.append(mangled)
        return mangled

    def _template_parameter(self) -> str:
        """T_, T0_, ...: a template argument, which must be a type."""
        argument = self._arguments[self._number("T")]
        if argument.startswith("L"):
            raise _NotUnderstoodError
        return argument

    def _number(self, letter: str) -> int:
        """<seq-id> of base 36 after S, a decimal number after T; one less than the position."""
        self._take(letter)
        end = self._text.find("_", self._at)
        digits = self._text[self._at : end]
        if end < 0 or not all(digit.isdecimal() or digit.isupper() for digit in digits):
            raise _NotUnderstoodError
        self._at = end + 1
        return int(digits, 36 if letter == "S" else 10) + 1 if digits else 0


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
    "uint32_t": "j", "int64_t": "x", "uint64_t": "y", "size_t": "m", "wchar_t": "w",
    "char8_t": "Du", "char16_t": "Ds", "char32_t": "Di",
}  # fmt: skip
_WORDS: Final = frozenset(word for name in _NUMBERS for word in name.split()) | {"int", "signed"}
_SIGNS: Final = ("signed", "unsigned")
_CLASSES: Final = re.compile(
    r"(u?char|u?short|u?int|u?long|u?longlong|float|double)[1-4]|__half2?|__nv_bfloat162?"
    r"|__nv_fp8_e4m3|__nv_fp8_e5m2|__nv_fp8_e8m0|__nv_fp6_e2m3|__nv_fp6_e3m2|__nv_fp4_e2m1"
)
# Other names of these classes in CUDA's headers.
_ALIASES: Final = {
    "half": "__half", "half2": "__half2", "__nv_half": "__half", "__nv_half2": "__half2",
    "nv_half": "__half", "nv_half2": "__half2", "nv_bfloat16": "__nv_bfloat16",
    "nv_bfloat162": "__nv_bfloat162",
}  # fmt: skip
# The next word is the name of a type.
_TAGS: Final = ("struct", "class", "union", "enum")
_NAMING: Final = frozenset(("struct", "class", "union", "enum", "using", "typename"))


class _Token(NamedTuple):
    text: str
    # True inside a conditional of the preprocessor.
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
        tokens = list(_tokens(source, macros))
        # A type that the source declares is its own, even if it has a name of CUDA's.
        own = frozenset(_own_types([token.text for token in tokens]))
        return dict(_declarations(tokens, macros, own))
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


def _own_types(texts: Sequence[str]) -> Iterator[str]:
    """Yield the names of the types that the source declares, and some other words."""
    for index, text in enumerate(texts):
        if text in _NAMING:
            at = index + 1
            while texts[at + 1 : at + 2] == ["("]:  # alignas(16), __align__(16)
                at = _end(texts, at + 1)
            yield from texts[at : at + 1]
        elif text == "typedef":
            depth, at = 0, index
            while at + 1 < len(texts) and (depth or texts[at + 1] != ";"):
                at += 1
                depth += (texts[at] == "{") - (texts[at] == "}")
            yield texts[at]


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
    """Return how many braces are open after a directive."""
    directive = words[0] if words else ""
    if directive == "define":
        macros.add(words[1] if len(words) > 1 else "")
        if words.count("{") != words.count("}"):
            raise _NotUnderstoodError
    elif directive in ("if", "ifdef", "ifndef"):
        opened.append([depth])
    elif directive in ("elif", "else", "elifdef", "elifndef", "endif"):
        # A branch with unbalanced braces changes the scope of everything after it.
        if not opened or depth != opened[-1][0]:
            raise _NotUnderstoodError
        if directive == "endif":
            opened.pop()
    return depth


def _declarations(
    tokens: Sequence[_Token], macros: set[str], own: frozenset[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    enclosing: list[bool] = []  # whether each open brace is of an extern "C" block
    begin = 0  # of the present declaration
    texts = [token.text for token in tokens]
    for index, (text, conditional) in enumerate(tokens):
        if text == "{":
            enclosing.append(texts[max(index - 2, 0) : index] == ["extern", _C_LINKAGE])
        elif text == "}":
            if not enclosing:
                raise _NotUnderstoodError
            enclosing.pop()
        elif text == "__global__" and not conditional and all(enclosing):
            has_c_linkage = enclosing or _C_LINKAGE in texts[begin:index]
            declared = _kernel(texts, begin, index, macros, own) if has_c_linkage else None
            if declared is not None:
                yield declared
        if text in ("{", "}", ";"):
            begin = index + 1


def _kernel(
    texts: Sequence[str], begin: int, at: int, macros: set[str], own: frozenset[str]
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
            types = tuple(_type(param, own) if macros.isdisjoint(param) else "" for param in params)
            return text, () if inside in ([], ["void"]) else types
        else:
            return None
    return None


def _end(texts: Sequence[str], opening: int) -> int:
    """The position after the bracket that closes the one at a position."""
    depth = 0
    for index in range(opening, len(texts)):
        depth += (texts[index] in "([{") - (texts[index] in ")]}")
        if not depth:
            return index + 1
    raise _NotUnderstoodError


def _parameters(texts: Sequence[str]) -> list[list[str]]:
    """The parameters between two brackets, parted at the commas that are in no other brackets."""
    parameters: list[list[str]] = [[]]
    depth = 0
    for text in texts:
        depth += (text in "([{<") - (text in ")]}>")
        if text == "," and not depth:
            parameters.append([])
        else:
            parameters[-1].append(text)
    return parameters


def _type(words: Sequence[str], own: frozenset[str]) -> str:
    """The letters of a parameter's type: a number, or a pointer to something; else ""."""
    declared = [word for word in words if word not in _IGNORED and word not in _TAGS]
    base: list[str] = []
    while declared and _names_type(declared[0], base):
        base.append(declared.pop(0))
    stars = 0
    while declared and declared[0] in ("*", "&", "const"):
        stars += declared.pop(0) != "const"  # a reference is passed as a pointer
    if declared and re.fullmatch(r"[A-Za-z_]\w*", declared[0]):
        declared.pop(0)
    if declared[:1] == ["["] and declared[-1] == "]" and declared.count("[") == 1:
        stars, declared = stars + 1, []
    letters = _letters([word for word in base if word != "const"], own)
    # What a name stands for that is not CUDA's is not known, but what it points to may be const.
    is_other = letters is not None and letters[:1].isdigit() and not _CLASS_NAME.fullmatch(letters)
    if declared or letters is None or (is_other and not stars):
        return ""
    return f"{'P' * stars}{'K' * (stars > 0 and 'const' in base)}{letters}"


def _names_type(word: str, base: Sequence[str]) -> bool:
    """Whether a word belongs to the type, after the words before it."""
    if word in _WORDS or word == "const":
        return True
    # One name, before the parameter's.
    return re.fullmatch(r"[A-Za-z_]\w*", word) is not None and {*base} <= {"const"}


def _is_class(word: str) -> bool:
    return _CLASSES.fullmatch(_ALIASES.get(word, word)) is not None


def _letters(base: Sequence[str], own: frozenset[str]) -> str | None:
    """The letters of a type's words, which may stand in any order."""
    if len(base) == 1 and base[0] not in _NUMBERS and base[0] not in _WORDS:
        word = base[0]
        if word not in own and _is_class(word):
            word = _ALIASES.get(word, word)
        elif _is_class(word):
            word = f"_{word}"  # of the source, with a name of CUDA's
        return f"{len(word)}{word}"
    words_left = [word for word in base if word != "int"]
    if "signed" in words_left and "char" not in words_left:
        words_left.remove("signed")
    if not base:
        return None
    return _NUMBERS.get(" ".join(sorted(words_left, key=lambda word: word not in _SIGNS)))


_CLASS_NAME: Final = re.compile(rf"\d+(?:{_CLASSES.pattern})")
# Bytes of each type that is no pointer, and what PTX calls its parameter.
_NBYTES: Final = {
    **dict.fromkeys("bach", 1),
    **dict.fromkeys("st", 2),
    **dict.fromkeys("ijfw", 4),
    **dict.fromkeys("lmxyd", 8),
    "Du": 1,
    "Ds": 2,
    "Di": 4,
}


def with_types(
    signatures: Mapping[str, KernelSignature], source: str, flags: Sequence[str]
) -> dict[str, KernelSignature]:
    """The signatures with the types of their parameters.

    Args:
        signatures: the kernels' signatures from PTX.
        source: the text that they were compiled from.
        flags: the compiler's options.
    """
    declared: Mapping[str, tuple[str, ...]] | None = None
    typed: dict[str, KernelSignature] = {}
    for name, signature in signatures.items():
        types = mangled_types(name)
        if types is None:
            if declared is None:
                declared = declared_types(source, _macros(flags))
            types = declared.get(name, ())
        typed[name] = _typed(signature, types)
    return typed


def _typed(signature: KernelSignature, types: tuple[str, ...]) -> KernelSignature:
    """The signature with types, or as it was, where they are not of its parameters."""
    types = tuple(cpp_type.lstrip("rVK") for cpp_type in types)  # a constant value is a value
    params = signature.params
    if len(types) != len(params) or not all(map(_may_be, params, types)):
        return signature
    return replace(signature, params=tuple(map(_with_type, params, types)))


def _may_be(param: KernelParam, cpp_type: str) -> bool:
    if cpp_type.startswith("P"):
        return param.nbytes == 8 and param.is_pointer is not False
    nbytes = _NBYTES.get(cpp_type)
    if nbytes is None:
        return True
    is_float = cpp_type in ("f", "d")
    kinds = "fb" if is_float else "sub"
    return param.count == 1 and param.nbytes == nbytes and param.ptx_type[0] in kinds


def _with_type(param: KernelParam, cpp_type: str) -> KernelParam:
    if cpp_type.startswith("P"):
        return replace(param, cpp_type=cpp_type, is_pointer=True)
    if cpp_type in _NBYTES or (param.is_array and _CLASS_NAME.fullmatch(cpp_type)):
        return replace(param, cpp_type=cpp_type)
    return param


def _macros(flags: Sequence[str]) -> list[str]:
    """The names that the options define; an option may stand apart from its value."""
    names = []
    for flag, behind in zip(flags, (*flags[1:], ""), strict=True):
        for spelling in ("--define-macro", "-D"):
            if flag.startswith(spelling):
                definition = flag.removeprefix(spelling).removeprefix("=") or behind
                names.append(definition.partition("=")[0].partition("(")[0].strip())
    return names
