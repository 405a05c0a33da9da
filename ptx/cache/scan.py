"""Which headers a text can include, whatever its conditionals say.

A superset is sought: a directive in a comment or a raw string does no harm, a missed one would
give a stale image. So the text is not preprocessed but searched for all that NVRTC's front end
takes as a directive: after comments, with digraph, trigraph and spliced lines (each tried on it).
Whether lines are spliced depends on the standard and on blanks behind the backslash, so a text with
splices is searched both ways.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_SPLICES = tuple(
    re.compile(splice) for splice in (rb"\\\r?\n", rb"(?:\\|\?\?/)\r?\n", rb"\\[ \t\v\f]*\r?\n")
)
_MARK_OF_UTF8 = b"\xef\xbb\xbf"
_FROM_COMPILER = (b"__FILE__", b"__BASE_FILE__", b"__FILE_NAME__")
# Atomic: a comment ends at its first */, and going back to look for another takes quadratic time.
_BLANK = rb"(?>[ \t\v\f]|/\*.*?\*/)*+"
# The tail only looks ahead, so that what seems a comment in there hides no directive.
_DIRECTIVE = re.compile(
    rb"(?:#|%:|\?\?=)(?=" + (_BLANK + rb"(include_next|include|embed)\b" + _BLANK + rb"([^\n]*))"),
    re.DOTALL,
)
_HEADER_NAME = re.compile(rb'<([^>\n]+)>|"([^"\n]+)"')
_OBJECT_MACRO = re.compile(rb"([A-Za-z_]\w*)[ \t]*(?:\r?$|//|/\*)")
_HAS = re.compile(rb"has_(?:include|embed)\w*" + _BLANK + rb"\(" + _BLANK + rb"([^\n]*)", re.DOTALL)
_IN_PARENTHESES = re.compile(
    rb"\(" + _BLANK + rb'(?:<([\w./+\-]+)>|"([\w./+\-]+)")' + _BLANK + rb"\)", re.DOTALL
)
_ONE_HEADER = re.compile(rb'[ \t]+(?:<[^>]+>|"[^"]+")[ \t]*\r?(?://|/\*|$)')
_DEFINITION = re.compile(
    rb"define" + _BLANK + rb'([A-Za-z_]\w*)[ \t]+(<[^>\n]+>|"[^"\n]+")[ \t]*\r?(?:\n|//|/\*|$)',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class References:
    """What one text refers to.

    `quoted`, `angled` and `following` are the names in `#include "…"`, `<…>` and `#include_next`.
    `computed` are macros that stand where a name belongs; `opaque` says that some name there is
    put together in a way that is not followed. `definitions` are (macro, header in its quotes or
    brackets) pairs, which a computed name may mean.
    """

    quoted: tuple[str, ...] = ()
    angled: tuple[str, ...] = ()
    following: tuple[str, ...] = ()
    computed: tuple[str, ...] = ()
    definitions: tuple[tuple[str, str], ...] = ()
    opaque: bool = False


def scan(text: bytes) -> References:
    """The references of a header or a source."""
    found = _Found()
    for reading in _readings(text):
        for match in _DIRECTIVE.finditer(reading):
            if _begins_line(reading, match.start()):
                found.directive(match[1], match[2])
        for match in _HAS.finditer(reading):
            found.question(match[1])
        # HAVE(<x.h>), where HAVE wraps __has_include in another file.
        for match in _IN_PARENTHESES.finditer(reading):
            found.header(match)
        for match in _DEFINITION.finditer(reading):
            found.definitions[match[1].decode(), os.fsdecode(match[2])] = None
    return found.references()


def _readings(text: bytes) -> Iterable[bytes]:
    """The text, and what it is with its spliced lines joined."""
    return dict.fromkeys((text, *(splice.sub(b"", text) for splice in _SPLICES)))


@dataclass(slots=True)
class _Found:
    """References while they are collected, each once and in the order of the text."""

    quoted: dict[str, None] = field(default_factory=dict)
    angled: dict[str, None] = field(default_factory=dict)
    following: dict[str, None] = field(default_factory=dict)
    computed: dict[str, None] = field(default_factory=dict)
    definitions: dict[tuple[str, str], None] = field(default_factory=dict)
    opaque: bool = False

    def directive(self, kind: bytes, operand: bytes) -> None:
        if name := _HEADER_NAME.match(operand):
            if kind == b"include_next":
                self.following[os.fsdecode(name[1] or name[2])] = None
            else:
                self.header(name)
        elif macro := _OBJECT_MACRO.match(operand):
            self.macro(macro[1])
        elif operand.strip():
            self.opaque = True

    def question(self, operand: bytes) -> None:
        if name := _HEADER_NAME.match(operand):
            self.header(name)
        elif macro := re.match(rb"([A-Za-z_]\w*)\s*\)", operand):
            self.macro(macro[1])
        elif re.match(rb"[A-Za-z_]\w*\s*\(", operand):
            self.opaque = True

    def header(self, name: re.Match[bytes]) -> None:
        (self.angled if name[1] else self.quoted)[os.fsdecode(name[1] or name[2])] = None

    def macro(self, name: bytes) -> None:
        if name in _FROM_COMPILER:
            self.opaque = True
        else:
            self.computed[name.decode()] = None

    def references(self) -> References:
        return References(
            tuple(self.quoted),
            tuple(self.angled),
            tuple(self.following),
            tuple(self.computed),
            tuple(self.definitions),
            self.opaque,
        )


def defined_otherwise(text: bytes, macros: frozenset[str]) -> set[str]:
    """Which of these macros a text defines as something else than one header's name."""
    names = b"|".join(re.escape(macro.encode()) for macro in sorted(macros))
    pattern = rb"define" + _BLANK + rb"(" + names + rb")(?!\w)([^\n]*)"
    return {
        match[1].decode()
        for reading in _readings(text)
        for match in re.finditer(pattern, reading, re.DOTALL)
        if not _ONE_HEADER.match(match[2])
    }


def _begins_line(text: bytes, at: int) -> bool:
    """Whether only blanks and comments stand before this place of its line."""
    before = text[text.rfind(b"\n", 0, at) + 1 : at].removeprefix(_MARK_OF_UTF8)
    return not before[before.rfind(b"*/") + 2 if b"*/" in before else 0 :].strip()
