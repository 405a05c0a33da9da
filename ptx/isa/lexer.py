"""Tokens of PTX: a table of named patterns, and a cursor over them.

PTX ISA, "Source Format", "Identifiers", "Constants".
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NoReturn

from ptx.isa.errors import PtxSyntaxError, shortened, syntax_error

# A dotted word is one token: `ld.global.f32`, `%tid.x`, `mbarrier::complete_tx::bytes`.
PATTERNS: tuple[tuple[str, str], ...] = (
    ("word", r"(?:[A-Za-z][\w$]*|[_$%][\w$]+|_)(?:(?:\.|::)[\w$]+)*"),
    ("directive", r"\.[A-Za-z_][\w$]*(?:::[\w$]+)*"),
    ("float", r"0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b"),
    ("decimal", r"(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+"),
    ("integer", r"0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+U?"),
    ("string", r'"[^"\n]*"'),
    ("punctuation", r"<<|>>|[<>=!]=|&&|\|\||[{}()\[\];:,@!|+\-<>=*/%~&^?]"),
    ("bad", r"\S"),
)
# Long blanks, such as comments leave, are passed over at once; they have no name.
_BLANKS = r"\s{16,}+"
TOKEN = re.compile("|".join((*(f"(?P<{name}>{pattern})" for name, pattern in PATTERNS), _BLANKS)))
# Initialisers of hundreds of thousands of bytes are common (the tables of cuRAND); as one token
# they are read ten times faster. A number that more than a comma or brace follows is left out, and
# so is one of more than 64 bits.
_DECIMAL = r"-?(?:0|[1-9]\d{0,19})"
TOKEN_OR_TABLE = re.compile(
    rf"(?P<integers>(?:{_DECIMAL}\s*,\s*){{15,}}{_DECIMAL}(?=\s*[,}}]))|{TOKEN.pattern}"
)
# Words that ptxas takes as no name anywhere.
_KEYWORDS = ("WARP_SZ", "function_name", "inlined_at")
NAME = rf"(?!(?:{'|'.join(_KEYWORDS)})(?![\w$]))(?:[A-Za-z][\w$]*|[_$%][\w$]+)"
"""A name, in whatever place."""

_NAME = re.compile(NAME)
# Line markers of C preprocessors, such as `# 1 "kernel.ptx" 2`, are comments too.
_MARKER = r'#[ \t]*(?:line[ \t]+)?\d+[ \t]+"[^"\n]*"[^\n]*'
_COMMENT = re.compile(rf'"[^"\n]*"|//[^\n]*|/\*.*?(?:\*/|(\Z))|{_MARKER}', re.DOTALL)


_INLINE = re.compile(r"// begin inline asm\n.*?// end inline asm", re.DOTALL)
_PLACE = re.compile(r"^[ \t]*\.loc[ \t][^\n]*", re.MULTILINE)


def _without_places(match: re.Match[str]) -> str:
    """Blank the `.loc` of inline PTX, for whose lines NVRTC counts lines of CUDA up."""
    return _PLACE.sub(lambda place: " " * len(place.group()), match.group())


def _blank(match: re.Match[str]) -> str:
    token = match.group()
    if token[0] == '"':
        return token
    if match[1] is not None:
        raise syntax_error(match.string, match.start(), "this comment is never closed", 2)
    return "\n".join([" " * len(line) for line in token.split("\n")])


def without_comments(text: str) -> str:
    """Return the text with comments blanked, so that every offset keeps its line and column.

    Raises:
        PtxSyntaxError: a comment is never closed.
    """
    return _COMMENT.sub(_blank, _INLINE.sub(_without_places, text))


class LineIndex:
    """Line numbers of offsets in one text."""

    __slots__ = ("_starts",)

    def __init__(self, text: str) -> None:
        self._starts = [match.end() for match in re.finditer(r"\n", text)]

    def line(self, offset: int) -> int:
        """The 1-based line of character `offset`."""
        return bisect_right(self._starts, offset) + 1


class Cursor:
    """The tokens of `text[start:end]`, read from left to right.

    `words` and `kinds` end with one empty sentinel of kind "end". `tokens` is the pattern to read
    by: with `TOKEN_OR_TABLE` a list of many integers is one token of kind "integers".
    """

    __slots__ = ("index", "kinds", "starts", "text", "words")

    def __init__(
        self,
        text: str,
        start: int = 0,
        end: int | None = None,
        tokens: re.Pattern[str] = TOKEN,
    ) -> None:
        stop = len(text) if end is None else end
        self.text: str = text
        self.words: list[str] = []
        self.kinds: list[str] = []
        self.starts: list[int] = []
        for match in tokens.finditer(text, start, stop):
            kind = match.lastgroup
            if kind is not None:
                self.words.append(match.group())
                self.kinds.append(kind)
                self.starts.append(match.start())
        self.words.append("")
        self.kinds.append("end")
        self.starts.append(stop)
        self.index: int = 0
        if "integers" in self.kinds:
            self._split_tables()

    def _split_tables(self) -> None:
        """Split the first number off each table that continues an expression: `a+4, 0, 0, …`."""
        for index in range(len(self.kinds) - 1, 0, -1):
            if self.kinds[index] != "integers" or self.words[index - 1] in ("{", ","):
                continue
            start, table = self.starts[index], self.words[index]
            comma = start + table.index(",")
            rest = TOKEN_OR_TABLE.finditer(self.text, comma)
            parts = [*TOKEN.finditer(self.text, start, comma), next(rest)]
            while parts[-1].end() < start + len(table):
                parts.append(next(rest))
            parts = [match for match in parts if match.lastgroup]
            self.words[index : index + 1] = [match.group() for match in parts]
            self.kinds[index : index + 1] = [match.lastgroup or "" for match in parts]
            self.starts[index : index + 1] = [match.start() for match in parts]

    @property
    def word(self) -> str:
        """The current token, "" at the end."""
        return self.words[self.index]

    @property
    def kind(self) -> str:
        """The pattern that the current token matches."""
        return self.kinds[self.index]

    @property
    def found(self) -> str:
        """The part of an error message that names the current token, "" at the end."""
        return f", found {shortened(self.word, _MOST_SHOWN)!r}" if self.word else ""

    @property
    def offset(self) -> int:
        """The offset of the current token in the text."""
        return self.starts[self.index]

    def advance(self) -> str:
        """The current token; the next becomes current."""
        word = self.words[self.index]
        if self.kinds[self.index] == "end":
            self.fail("the text ends here, in the middle of a statement")
        self.index += 1
        return word

    def accept(self, word: str) -> bool:
        """Return whether the current token is `word`, which is then passed."""
        if self.words[self.index] == word:
            self.index += 1
            return True
        return False

    def expect(self, word: str) -> None:
        """Pass `word`.

        Raises:
            PtxSyntaxError: the current token is another one.
        """
        if self.words[self.index] != word:
            self.fail(f"expected {word!r}{self.found}")
        self.index += 1

    def expect_kind(self, kind: str) -> str:
        """Pass a token of `kind` and return it."""
        if self.kinds[self.index] != kind:
            self.fail(f"expected {_ARTICLE.get(kind, kind)}{self.found}")
        return self.advance()

    def expect_name(self) -> str:
        """Pass a name and return it; `_`, keywords and dotted words are none."""
        if self.kinds[self.index] != "word" or _NAME.fullmatch(self.words[self.index]) is None:
            self.fail(f"expected a name{self.found}")
        return self.advance()

    def error(self, message: str, index: int | None = None) -> PtxSyntaxError:
        """The error at token `index`, the current one by default."""
        word_index = self.index if index is None else index
        return syntax_error(
            self.text, self.starts[word_index], message, len(self.words[word_index])
        )

    def fail(self, message: str) -> NoReturn:
        """Raise the error at the current token."""
        raise self.error(message)


_ARTICLE = {
    "word": "a name",
    "integer": "an integer",
    "directive": "a directive",
    "string": "a string",
}
_MOST_SHOWN = 40  # characters of a token in an error
