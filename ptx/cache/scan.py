"""Which headers a text can include, whatever its conditionals say.

A superset is sought: a directive in a comment or a raw string does no harm, a missed one would
give a stale image. So the text is not preprocessed but searched for all that NVRTC's front end
takes as a directive: after comments, with digraph, trigraph and spliced lines (each tried on it).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

_SPLICE = re.compile(rb"(?:\\|\?\?/)[ \t\v\f]*\r?\n")
# Atomic: a comment ends at its first */, and going back to look for another takes quadratic time.
_BLANK = rb"(?>[ \t\v\f]|/\*.*?\*/)*+"
_DIRECTIVE = re.compile(
    rb"(?:#|%:|\?\?=)" + _BLANK + rb"(include_next|include|embed)\b" + _BLANK + rb"([^\n]*)",
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
    if _SPLICE.search(text):
        text = _SPLICE.sub(b"", text)
    quoted: dict[str, None] = {}
    angled: dict[str, None] = {}
    following: dict[str, None] = {}
    computed: dict[str, None] = {}
    opaque = False
    for match in _DIRECTIVE.finditer(text):
        if not _begins_line(text, match.start()):
            continue
        if name := _HEADER_NAME.match(match[2]):
            into = following if match[1] == b"include_next" else angled if name[1] else quoted
            into[os.fsdecode(name[1] or name[2])] = None
        elif macro := _OBJECT_MACRO.match(match[2]):
            computed[macro[1].decode()] = None
        elif match[2].strip():
            opaque = True
    for match in _HAS.finditer(text):
        if name := _HEADER_NAME.match(match[1]):
            (angled if name[1] else quoted)[os.fsdecode(name[1] or name[2])] = None
        elif macro := re.match(rb"([A-Za-z_]\w*)\s*\)", match[1]):
            computed[macro[1].decode()] = None
        elif re.match(rb"[A-Za-z_]\w*\s*\(", match[1]):
            opaque = True
    # HAVE(<x.h>), where HAVE wraps __has_include in another file.
    for match in _IN_PARENTHESES.finditer(text):
        (angled if match[1] else quoted)[os.fsdecode(match[1] or match[2])] = None
    definitions = {(m[1].decode(), os.fsdecode(m[2])): None for m in _DEFINITION.finditer(text)}
    return References(
        tuple(quoted), tuple(angled), tuple(following), tuple(computed), tuple(definitions), opaque
    )


def defined_otherwise(text: bytes, macros: frozenset[str]) -> set[str]:
    """Which of these macros a text defines as something else than one header's name."""
    names = b"|".join(re.escape(macro.encode()) for macro in sorted(macros))
    pattern = rb"define" + _BLANK + rb"(" + names + rb")(?!\w)([^\n]*)"
    found = re.finditer(pattern, _SPLICE.sub(b"", text), re.DOTALL)
    return {match[1].decode() for match in found if not _ONE_HEADER.match(match[2])}


def _begins_line(text: bytes, at: int) -> bool:
    """Whether only blanks and comments stand before this place of its line."""
    before = text[text.rfind(b"\n", 0, at) + 1 : at]
    return not before[before.rfind(b"*/") + 2 if b"*/" in before else 0 :].strip()
